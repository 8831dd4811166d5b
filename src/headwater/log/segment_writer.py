"""What the segment thread does: run the operations that the loop decided, sync, write checkpoints.

Operations, in the order in which they are given:
    ("dir", path, topic id)          make a partition's directory; one of another topic is moved to quarantine
    ("create", path)                 make an empty file
    ("write", path, position, bufs)  write, not synced
    ("file", path, bytes)            a small file that only Kafka reads (its truth is our checkpoint): never synced
    ("trim", path, size)             cut the file to its size and give reserved space back; the file is complete
    ("snapshots", path, names)       remove producer snapshots that are not among these
    ("unlink", path)                 remove a file, if it is there
    ("move_dir", old, new)           rename a directory; its name is durable at the next checkpoint
    ("remove_dir", path)             remove a directory and the files in it
    ("quarantine", path, folder)     move a damaged file away, under a name that says where it was
    ("ready", journal, file)         make a journal file ready
    ("checkpoint", head, lines)      sync everything above, then replace the checkpoint and its copy
Nobody else writes to these files. Handles are kept open for the files written last.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from headwater.core.disk import Buffer, Disk, Handle, read_file, replace_file
from headwater.log import checkpoint
from headwater.log.journal import Journal, JournalFile

RESERVE_FROM_BYTES = 1 << 20  # a file that has this much gets its space ahead: small partitions stay small
RESERVE_BYTES = 16 << 20
FILE_NAME_MAX = 255  # of every file system that matters
QUARANTINE_NAME_MAX = FILE_NAME_MAX - 10  # room for a number

Operation = tuple[Any, ...]


class SegmentWriter:
    def __init__(self, disk: Disk, root: str, handles_max: int) -> None:
        self._disk = disk
        self._root = root
        self._handles_max = handles_max
        self._handles: dict[str, Handle] = {}  # in order of last use
        self._reserved: dict[str, int] = {}
        self._dirty: dict[str, None] = {}
        self._dirty_dirs: dict[str, None] = {}
        self._run: dict[str, Callable[..., None]] = {
            "dir": self._dir,
            "create": self._create,
            "write": self._write,
            "file": self._file,
            "trim": self._trim,
            "snapshots": self._snapshots,
            "unlink": self._unlink,
            "move_dir": self._move_dir,
            "remove_dir": self._remove_dir,
            "quarantine": self._quarantine,
            "ready": self._ready,
            "checkpoint": self._checkpoint,
        }

    def run(self, operations: Sequence[Operation]) -> None:
        for operation in operations:
            self._run[operation[0]](*operation[1:])

    def close(self) -> None:
        for handle in self._handles.values():
            self._disk.close(handle)
        self._handles.clear()

    def _handle(self, path: str) -> Handle:
        handle = self._handles.pop(path, None)
        if handle is None:
            while len(self._handles) >= self._handles_max:
                oldest = next(iter(self._handles))
                self._disk.close(self._handles.pop(oldest))
            handle = self._disk.open(path, create=True, write=True)
        self._handles[path] = handle
        return handle

    def _forget(self, path: str) -> None:
        handle = self._handles.pop(path, None)
        if handle is not None:
            self._disk.close(handle)
        self._reserved.pop(path, None)
        self._dirty.pop(path, None)

    def _forget_dir(self, path: str) -> None:
        inside = path + "/"
        for known in [name for name in (*self._handles, *self._dirty) if name.startswith(inside)]:
            self._forget(known)
        self._dirty_dirs.pop(path, None)

    def _dir(self, path: str, topic_id: str) -> None:
        if belongs_to(self._disk, path) not in ("", topic_id):
            folder = f"{self._root}/quarantine"
            quarantine(self._disk, path, folder)
            self._dirty_dirs[folder] = None
        self._disk.make_dir(path)
        self._dirty_dirs[os.path.dirname(path)] = None
        self._dirty_dirs[path] = None

    def _create(self, path: str) -> None:
        self._handle(path)
        self._dirty_dirs[os.path.dirname(path)] = None

    def _write(self, path: str, position: int, buffers: Sequence[Buffer]) -> None:
        handle = self._handle(path)
        if path not in self._dirty:
            self._dirty[path] = None
            if position == 0:
                self._dirty_dirs[os.path.dirname(path)] = None
        if position >= RESERVE_FROM_BYTES:
            end = position + sum(map(len, buffers))
            if end > self._reserved.get(path, 0):
                self._disk.allocate(handle, position, end - position + RESERVE_BYTES)
                self._reserved[path] = end + RESERVE_BYTES
        self._disk.write(handle, position, buffers)

    def _file(self, path: str, content: bytes) -> None:
        handle = self._handle(path)
        self._disk.truncate(handle, 0)
        self._disk.write(handle, 0, [content])
        self._dirty_dirs[os.path.dirname(path)] = None
        self._disk.close(self._handles.pop(path))  # it will not be written again soon

    def _trim(self, path: str, size: int) -> None:
        self._disk.truncate(self._handle(path), size)
        self._dirty[path] = None
        self._reserved.pop(path, None)
        self._disk.close(self._handles.pop(path))

    def _unlink(self, path: str) -> None:
        self._forget(path)
        if self._disk.file_size(path) is not None:
            self._disk.unlink(path)

    def _snapshots(self, path: str, names: set[str]) -> None:
        for name in self._disk.list(path):
            if name.endswith(".snapshot") and name not in names:
                self._unlink(f"{path}/{name}")

    def _move_dir(self, old: str, new: str) -> None:
        self._forget_dir(old)
        if self._disk.exists(old):
            if self._disk.exists(new):  # the run before ended before remove_dir, and a replay made `old` again
                remove_flat_dir(self._disk, new)
            self._disk.rename(old, new)
            self._dirty_dirs[os.path.dirname(new)] = None

    def _remove_dir(self, path: str) -> None:
        self._forget_dir(path)
        if self._disk.exists(path):
            remove_flat_dir(self._disk, path)

    def _quarantine(self, path: str, folder: str) -> None:
        self._forget(path)
        if self._disk.file_size(path) is not None:
            quarantine(self._disk, path, folder)
            self._dirty_dirs[os.path.dirname(path)] = None
            self._dirty_dirs[folder] = None

    def _ready(self, journal: Journal, file: JournalFile) -> None:
        journal.create(file)

    def _checkpoint(self, head: dict[str, Any], lines: list[str]) -> None:
        self.sync()
        content = checkpoint.encode(head, lines)
        replace_file(self._disk, f"{self._root}/checkpoint", content)
        replace_file(self._disk, f"{self._root}/checkpoint.copy", content)

    def sync(self) -> None:
        """Everything that was written so far, and its names, become durable."""
        for path in self._dirty:
            handle = self._handles.get(path)
            if handle is not None:
                self._disk.sync(handle)
                continue
            handle = self._disk.open(path, write=True)
            try:
                self._disk.sync(handle)
            finally:
                self._disk.close(handle)
        self._dirty.clear()
        for path in self._dirty_dirs:
            self._disk.sync_dir(path)
        self._dirty_dirs.clear()


def belongs_to(disk: Disk, folder: str) -> str:
    """The topic id in a partition's directory; "" if there is none, or a power cut left the file empty."""
    path = f"{folder}/partition.metadata"
    if disk.file_size(path) is None:
        return ""
    _, mark, rest = read_file(disk, path).decode("ascii", "replace").partition("topic_id: ")
    identity, end, _ = rest.partition("\n")
    return identity if mark and end and len(identity) == 22 else ""


def remove_flat_dir(disk: Disk, path: str) -> None:
    for name in disk.list(path):
        disk.unlink(f"{path}/{name}")
    disk.remove_dir(path)


def quarantine(disk: Disk, path: str, folder: str) -> str:
    """Where the damaged file is now."""
    disk.make_dir(folder)
    parent, name = os.path.split(path)
    kept = f"{os.path.basename(parent)}.{name}"[-QUARANTINE_NAME_MAX:]  # its end tells the partition and the file
    target = f"{folder}/{kept}"
    number = 0
    while disk.exists(target if not number else f"{target}.{number}"):
        number += 1
    target = target if not number else f"{target}.{number}"
    disk.rename(path, target)
    return target
