"""Every disk call of the log, behind one interface, so that tests can put a failing disk under the real code.

Rules that callers rely on:
* write() returns when all bytes are handed to the system, or raises OSError; nothing is durable before sync().
* A new, renamed or removed name is durable only after sync_dir() of the directory that holds it.
* After a failed sync() nobody may trust a later one (Linux marks the pages clean): callers stop for good.
* lock() is gone when the process is gone, and is not inherited by a forked child; a forked child that
  inherited a locked Disk cannot write through it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import weakref
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview
Handle: TypeAlias = int

IOV_MAX = 1024  # POSIX promises 16; Linux and macOS have 1024
ZERO_CHUNK_BYTES = 1 << 20


class Disk(Protocol):
    def open(self, path: str, *, create: bool = False, write: bool = False) -> Handle: ...
    def close(self, handle: Handle) -> None: ...
    def read(self, handle: Handle, position: int, count: int) -> bytearray:
        """Up to `count` bytes; fewer only at the end of the file."""
        ...

    def read_now(self, handle: Handle, position: int, count: int) -> memoryview | None:
        """Exactly `count` bytes if memory holds them; None if that would wait for the disk (or is unknown)."""
        ...

    def write(self, handle: Handle, position: int, buffers: Sequence[Buffer]) -> None: ...
    def zero(self, handle: Handle, count: int) -> None: ...
    def sync(self, handle: Handle) -> None: ...
    def allocate(self, handle: Handle, position: int, count: int) -> None:
        """Reserve blocks without changing the size; where that is not possible, nothing happens."""
        ...

    def truncate(self, handle: Handle, size: int) -> None: ...
    def size(self, handle: Handle) -> int: ...
    def file_size(self, path: str) -> int | None:
        """None if there is no such file."""
        ...

    def modified_ms(self, path: str) -> int: ...
    def exists(self, path: str) -> bool: ...
    def list(self, path: str) -> list[str]: ...
    def make_dir(self, path: str) -> None:
        """The last component only; an existing directory is fine."""
        ...

    def rename(self, old: str, new: str) -> None: ...
    def unlink(self, path: str) -> None: ...
    def remove_dir(self, path: str) -> None: ...
    def sync_dir(self, path: str) -> None: ...
    def lock(self, path: str) -> bool: ...
    def unlock(self) -> None: ...
    def free_bytes(self, path: str) -> int: ...


def read_file(disk: Disk, path: str) -> bytes:
    handle = disk.open(path)
    try:
        return bytes(disk.read(handle, 0, disk.size(handle)))
    finally:
        disk.close(handle)


def replace_file(disk: Disk, path: str, content: Buffer) -> None:
    """After this the file has either its old content or the new one, whatever happens, and lasts."""
    temporary = path + ".tmp"
    handle = disk.open(temporary, create=True, write=True)
    try:
        disk.truncate(handle, 0)
        disk.write(handle, 0, [content])
        disk.sync(handle)
    finally:
        disk.close(handle)
    disk.rename(temporary, path)
    disk.sync_dir(os.path.dirname(path))


class RealDisk:
    """The machine's file system."""

    def __init__(self) -> None:
        self._lock: tuple[int, str] | None = None
        self._lost = False  # True in a forked child: the parent owns the files

    def open(self, path: str, *, create: bool = False, write: bool = False) -> Handle:
        flags = os.O_RDWR if write else os.O_RDONLY
        if create:
            self._check_owner()
            flags |= os.O_CREAT
        return os.open(path, flags | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0), 0o644)

    def close(self, handle: Handle) -> None:
        os.close(handle)

    def read(self, handle: Handle, position: int, count: int) -> bytearray:
        found = bytearray(count)
        view = memoryview(found)
        done = 0
        while done < count:
            got = _read_into(handle, view[done:], position + done)
            if got == 0:
                view.release()
                del found[done:]
                return found
            done += got
        return found

    def read_now(self, handle: Handle, position: int, count: int) -> memoryview | None:
        if _RWF_NOWAIT is None:
            return None
        view = memoryview(bytearray(count))
        try:
            got = os.preadv(handle, [view], position, _RWF_NOWAIT)
        except OSError:  # EAGAIN: not in memory; EOPNOTSUPP: this file system cannot say
            return None
        return view if got == count else None  # short = partly in memory; the two are not told apart

    def write(self, handle: Handle, position: int, buffers: Sequence[Buffer]) -> None:
        self._check_owner()
        for start in range(0, len(buffers), IOV_MAX):
            group = list(buffers[start : start + IOV_MAX])
            total = sum(len(buffer) for buffer in group)
            done = self._pwritev(handle, group, position)
            if done < total:
                self._finish(handle, position, group, done)
            position += total

    def _finish(self, handle: Handle, position: int, group: list[Buffer], done: int) -> None:
        """The rest of a short write, in one piece: rare, and usually ends in ENOSPC."""
        rest = memoryview(b"".join(group))
        while done < len(rest):
            written = self._pwritev(handle, [rest[done:]], position + done)
            if written == 0:
                raise OSError(errno.EIO, "the system wrote nothing and said nothing")
            done += written

    def _pwritev(self, handle: Handle, buffers: Sequence[Buffer], position: int) -> int:
        if _HAS_VECTORS:
            return os.pwritev(handle, buffers, position)
        return os.pwrite(handle, b"".join(buffers), position)

    def zero(self, handle: Handle, count: int) -> None:
        zeros = memoryview(bytes(min(count, ZERO_CHUNK_BYTES)))
        for position in range(0, count, ZERO_CHUNK_BYTES):
            self.write(handle, position, [zeros[: count - position]])

    def sync(self, handle: Handle) -> None:
        self._check_owner()
        if sys.platform == "darwin":
            import fcntl

            # fsync there leaves the bytes in the drive's own memory.
            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
        else:
            os.fdatasync(handle)

    def allocate(self, handle: Handle, position: int, count: int) -> None:
        if _FALLOCATE is not None:
            _FALLOCATE(handle, position, count)

    def truncate(self, handle: Handle, size: int) -> None:
        self._check_owner()
        os.ftruncate(handle, size)

    def size(self, handle: Handle) -> int:
        return os.fstat(handle).st_size

    def file_size(self, path: str) -> int | None:
        try:
            return os.stat(path).st_size
        except (FileNotFoundError, NotADirectoryError):
            return None

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def exists(self, path: str) -> bool:
        return os.path.lexists(path)

    def list(self, path: str) -> list[str]:
        return os.listdir(path)

    def make_dir(self, path: str) -> None:
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o755)

    def rename(self, old: str, new: str) -> None:
        self._check_owner()
        os.replace(old, new)

    def unlink(self, path: str) -> None:
        self._check_owner()
        os.unlink(path)

    def remove_dir(self, path: str) -> None:
        os.rmdir(path)

    def sync_dir(self, path: str) -> None:
        self._check_owner()
        if os.name == "nt":
            return  # directories cannot be opened there; NTFS journals its names
        handle = os.open(path or ".", os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def lock(self, path: str) -> bool:
        """False if another process has it, or this one already, through another Disk."""
        import fcntl

        name = os.path.realpath(path)
        if name in _locked_here:
            return False
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            # A POSIX record lock, not flock(): a forked child does not inherit it.
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(handle)
            if error.errno in (errno.EACCES, errno.EAGAIN):
                return False
            raise
        os.ftruncate(handle, 0)
        os.pwrite(handle, b"%d\n" % os.getpid(), 0)
        self._lock = (handle, name)
        _locked_here.add(name)
        _owners.add(self)
        return True

    def unlock(self) -> None:
        if self._lock is not None:
            handle, name = self._lock
            self._lock = None
            _locked_here.discard(name)
            _owners.discard(self)
            os.close(handle)

    def free_bytes(self, path: str) -> int:
        found = os.statvfs(path)
        return found.f_bavail * found.f_frsize

    def _check_owner(self) -> None:
        if self._lost:
            raise OSError(errno.EPERM, "this process was forked from the one that owns the data directory")


def _read_into(handle: Handle, view: memoryview, position: int) -> int:
    if _HAS_VECTORS:
        return os.preadv(handle, [view], position)
    found = os.pread(handle, len(view), position)
    view[: len(found)] = found
    return len(found)


_HAS_VECTORS = hasattr(os, "preadv")  # not on older macOS
_locked_here: set[str] = set()  # POSIX record locks do not hold against their own process; this does
_owners: weakref.WeakSet[RealDisk] = weakref.WeakSet()
_RWF_NOWAIT: int | None = getattr(os, "RWF_NOWAIT", None)


def _forked() -> None:
    """In the child: the parent's locks are not ours, and its files must not be touched."""
    for disk in list(_owners):
        disk._lost = True
        disk._lock = None
    _owners.clear()
    _locked_here.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def _find_fallocate() -> Any:
    """fallocate(KEEP_SIZE) by ctypes would cost 15 ms of start; it is looked up on first use instead."""
    if sys.platform != "linux":
        return None

    def allocate(handle: int, position: int, count: int) -> None:
        global _FALLOCATE
        import ctypes

        call = ctypes.CDLL(None, use_errno=True).fallocate
        call.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]

        def reserve(handle: int, position: int, count: int) -> None:
            keep_size = 1
            call(handle, keep_size, position, count)  # a refusal costs speed only: the write will tell

        _FALLOCATE = reserve
        reserve(handle, position, count)

    return allocate


_FALLOCATE: Any = _find_fallocate()
