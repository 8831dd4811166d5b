"""A disk in memory that knows what would survive a power cut, and that fails when it is told to.

It keeps, for every file, the content that was synced and the writes since; for every directory, the names that
were synced and the changes since. crash_image(seed) is the disk after a power cut: of the unsynced writes a
random part survives, some torn at sectors or inside one; of the unsynced names a random part is there. So the
bytes that a program may rely on are exactly those that it synced, names included.

A failed sync drops its writes from what a later sync makes durable, as Linux does: trusting it again loses data.
Every operation that changes something counts; `crash_at=n` cuts the power just before the n-th one.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Sequence

from headwater.core.disk import Buffer, Handle

SECTOR_BYTES = 512


class PowerCut(BaseException):
    """The machine is off. Not an OSError: nothing may handle it."""


class _File:
    def __init__(self) -> None:
        self.durable = bytearray()
        self.current = bytearray()
        self.pending: list[tuple[int, bytes] | int] = []  # writes, or truncations to a size
        self.doomed: list[tuple[int, bytes] | int] = []  # of a failed sync: may reach the disk, never promised


class _Directory:
    def __init__(self) -> None:
        self.durable: dict[str, _File | _Directory] = {}
        self.current: dict[str, _File | _Directory] = {}


class _Rename:
    """Unsynced changes of names happen whole or not at all: (directory, name, what is there afterwards)."""

    def __init__(self, changes: list[tuple[_Directory, str, _File | _Directory | None]]) -> None:
        self.changes = changes


class FaultyDisk:
    """`ignore_sync` and `ignore_sync_dir` are disks that lie: for showing that a checker would notice."""

    def __init__(
        self,
        *,
        seed: int = 0,
        crash_at: int | None = None,
        fail_sync_at: int | None = None,
        fail_write_at: int | None = None,
        short_write_at: int | None = None,
        fail_errno: int = errno.EIO,
        capacity_bytes: int | None = None,
        ignore_sync: bool = False,
        ignore_sync_dir: bool = False,
        nowait: bool = True,
    ) -> None:
        self.seed = seed
        self.crash_at = crash_at
        self.fail_sync_at = fail_sync_at
        self.fail_write_at = fail_write_at
        self.short_write_at = short_write_at
        self.fail_errno = fail_errno
        self.capacity_bytes = capacity_bytes
        self.ignore_sync = ignore_sync
        self.ignore_sync_dir = ignore_sync_dir
        self.nowait = nowait
        self.operations = 0
        self.syncs = 0
        self.writes = 0
        self.trace: list[str] = []
        self.locked: set[str] = set()
        self._root = _Directory()
        self._renames: list[_Rename] = []
        self._handles: dict[Handle, _File] = {}
        self._names: dict[Handle, str] = {}
        self._next = 3
        self._off = False

    # what a test does

    def crash_image(self, seed: int) -> FaultyDisk:
        """The disk after a power cut now. The same seed gives the same image."""
        chance = random.Random(seed)
        image = FaultyDisk(seed=seed)
        keep = chance.choice((0.0, 0.2, 0.5, 0.8, 1.0))
        names: dict[int, dict[str, _File | _Directory]] = {}

        def of(directory: _Directory) -> dict[str, _File | _Directory]:
            return names.setdefault(id(directory), dict(directory.durable))

        for rename in self._renames:
            if chance.random() < keep:
                for directory, name, target in rename.changes:
                    if target is None:
                        of(directory).pop(name, None)
                    else:
                        of(directory)[name] = target
        copies: dict[int, _File | _Directory] = {}

        def copy(node: _File | _Directory) -> _File | _Directory:
            if id(node) not in copies:
                if isinstance(node, _File):
                    copies[id(node)] = _survivor(node, chance, keep)
                else:
                    made = copies[id(node)] = _Directory()
                    made.durable = {name: copy(child) for name, child in of(node).items()}
                    made.current = dict(made.durable)
            return copies[id(node)]

        root = copy(self._root)
        assert isinstance(root, _Directory)
        image._root = root
        return image

    def settle(self) -> None:
        """Time passes with the power on: the system writes everything to the disk."""
        for rename in self._renames:
            for directory, name, target in rename.changes:
                if target is None:
                    directory.durable.pop(name, None)
                else:
                    directory.durable[name] = target
        self._renames = []
        for path in self.files():
            file = self._file(path)
            file.durable[:] = file.current
            file.pending, file.doomed = [], []

    def restarted(self) -> FaultyDisk:
        """The disk after the process alone was killed: the system still has every write."""
        image = FaultyDisk(seed=self.seed)
        image._root, image._renames = self._root, self._renames
        return image

    def damage(self, path: str, position: int, mask: int = 0xFF) -> None:
        """Flip bits of a stored byte."""
        file = self._file(path)
        file.current[position] ^= mask
        file.durable[:] = file.current
        file.pending.clear()

    def cut(self, path: str, size: int) -> None:
        """Make a stored file shorter."""
        file = self._file(path)
        del file.current[size:]
        file.durable[:] = file.current
        file.pending.clear()

    def content(self, path: str) -> bytes:
        return bytes(self._file(path).current)

    def put(self, path: str, content: bytes) -> None:
        file = self._file(path)
        file.current[:] = content
        file.durable[:] = content
        file.pending.clear()

    def files(self, folder: str = "/") -> list[str]:
        """Every file below `folder`, by full path."""
        found: list[str] = []
        for name in sorted(self.list(folder)):
            path = f"{folder.rstrip('/')}/{name}"
            if isinstance(self._find(path), _Directory):
                found += self.files(path)
            else:
                found.append(path)
        return found

    # Disk

    def open(self, path: str, *, create: bool = False, write: bool = False) -> Handle:
        node = self._find(path)
        if node is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            self._count(f"create {path}")
            node = _File()
            self._set(path, node)
        if isinstance(node, _Directory):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        self._next += 1
        self._handles[self._next] = node
        self._names[self._next] = path
        return self._next

    def close(self, handle: Handle) -> None:
        del self._handles[handle], self._names[handle]

    def read(self, handle: Handle, position: int, count: int) -> bytearray:
        return self._handles[handle].current[position : position + count]

    def read_now(self, handle: Handle, position: int, count: int) -> memoryview | None:
        if not self.nowait:
            return None
        found = memoryview(self.read(handle, position, count))
        return found if len(found) == count else None

    def write(self, handle: Handle, position: int, buffers: Sequence[Buffer]) -> None:
        data = b"".join(buffers)
        self._count(f"write {self._names[handle]} {position} {len(data)}")
        self.writes += 1
        if self.writes == self.fail_write_at:
            raise OSError(self.fail_errno, os.strerror(self.fail_errno))
        if self.writes == self.short_write_at:
            self._put(handle, position, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if self.capacity_bytes is not None and self._used() + len(data) > self.capacity_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._put(handle, position, data)

    def _put(self, handle: Handle, position: int, data: bytes) -> None:
        file = self._handles[handle]
        _apply(file.current, (position, data))
        file.pending.append((position, data))

    def zero(self, handle: Handle, count: int) -> None:
        self.write(handle, 0, [bytes(count)])

    def sync(self, handle: Handle) -> None:
        self._count(f"sync {self._names[handle]}")
        self.syncs += 1
        file = self._handles[handle]
        if self.syncs == self.fail_sync_at:
            file.doomed += file.pending
            file.pending = []
            raise OSError(self.fail_errno, os.strerror(self.fail_errno))
        if self.ignore_sync:
            return
        for change in file.pending:
            _apply(file.durable, change)
        file.pending = []

    def allocate(self, handle: Handle, position: int, count: int) -> None:
        pass

    def truncate(self, handle: Handle, size: int) -> None:
        file = self._handles[handle]
        if size == len(file.current):
            return
        self._count(f"truncate {self._names[handle]} {size}")
        _apply(file.current, size)
        file.pending.append(size)

    def size(self, handle: Handle) -> int:
        return len(self._handles[handle].current)

    def file_size(self, path: str) -> int | None:
        node = self._find(path)
        return len(node.current) if isinstance(node, _File) else None

    def modified_ms(self, path: str) -> int:
        return 0

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def list(self, path: str) -> list[str]:
        node = self._find(path)
        if not isinstance(node, _Directory):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return list(node.current)

    def make_dir(self, path: str) -> None:
        if self._find(path) is None:
            self._count(f"mkdir {path}")
            self._set(path, _Directory())

    def rename(self, old: str, new: str) -> None:
        self._count(f"rename {old} {new}")
        node = self._find(old)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), old)
        (source, name), (target, new_name) = self._place(old), self._place(new)
        del source.current[name]
        target.current[new_name] = node
        self._renames.append(_Rename([(source, name, None), (target, new_name, node)]))

    def unlink(self, path: str) -> None:
        self._count(f"unlink {path}")
        if not isinstance(self._find(path), _File):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        self._set(path, None)

    def remove_dir(self, path: str) -> None:
        self._count(f"rmdir {path}")
        if self.list(path):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
        self._set(path, None)

    def sync_dir(self, path: str) -> None:
        self._count(f"syncdir {path}")
        node = self._find(path or "/")
        if not isinstance(node, _Directory):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if self.ignore_sync_dir:
            return
        rest = []
        for rename in self._renames:
            if not any(directory is node for directory, _, _ in rename.changes):
                rest.append(rename)
                continue
            for directory, name, target in rename.changes:
                if target is None:
                    directory.durable.pop(name, None)
                else:
                    directory.durable[name] = target
        self._renames = rest

    def lock(self, path: str) -> bool:
        if path in self.locked:
            return False
        self.locked.add(path)
        return True

    def unlock(self) -> None:
        self.locked.clear()

    def free_bytes(self, path: str) -> int:
        return 1 << 40 if self.capacity_bytes is None else self.capacity_bytes - self._used()

    # inside

    def _count(self, what: str) -> None:
        if self._off:
            raise PowerCut
        self.operations += 1
        self.trace.append(what)
        if self.operations == self.crash_at:
            self._off = True
            raise PowerCut

    def _used(self) -> int:
        return sum(len(self._file(path).current) for path in self.files())

    def _find(self, path: str) -> _File | _Directory | None:
        node: _File | _Directory | None = self._root
        for name in path.split("/"):
            if name:
                node = node.current.get(name) if isinstance(node, _Directory) else None
        return node

    def _file(self, path: str) -> _File:
        node = self._find(path)
        assert isinstance(node, _File), f"no file {path}"
        return node

    def _place(self, path: str) -> tuple[_Directory, str]:
        parent, name = os.path.split(path)
        node = self._find(parent)
        if not isinstance(node, _Directory):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), parent)
        return node, name

    def _set(self, path: str, node: _File | _Directory | None) -> None:
        directory, name = self._place(path)
        if node is None:
            del directory.current[name]
        else:
            directory.current[name] = node
        self._renames.append(_Rename([(directory, name, node)]))


def _apply(content: bytearray, change: tuple[int, bytes] | int) -> None:
    if isinstance(change, int):
        if change < len(content):
            del content[change:]
        else:
            content += bytes(change - len(content))
        return
    position, data = change
    if len(content) < position:
        content += bytes(position - len(content))
    content[position : position + len(data)] = data


def _survivor(file: _File, chance: random.Random, keep: float) -> _File:
    """The file as the disk has it: what was synced, and of the rest what chance left."""
    made = _File()
    made.durable[:] = file.durable
    for change in [*file.doomed, *file.pending]:
        fate = chance.random()
        if fate < keep * 0.6:
            _apply(made.durable, change)
        elif fate < keep and isinstance(change, tuple):
            for piece in _torn(change, chance):
                _apply(made.durable, piece)
    made.current[:] = made.durable
    return made


def _torn(change: tuple[int, bytes], chance: random.Random) -> list[tuple[int, bytes]]:
    """Some sectors of a write, or one end of it, cut anywhere."""
    position, data = change
    style = chance.randrange(3)
    if style == 0:
        return [(position, data[: chance.randrange(len(data) + 1)])]
    if style == 1:
        start = chance.randrange(len(data) + 1)
        return [(position + start, data[start:])]
    pieces = []
    at = 0
    while at < len(data):
        size = SECTOR_BYTES - (position + at) % SECTOR_BYTES
        if chance.random() < 0.5:
            pieces.append((position + at, data[at : at + size]))
        at += size
    return pieces
