"""The commit journal: a few files of fixed size, written in a circle, one frame and one sync per window.

A sync of blocks that were written once before costs half of a sync of a growing file (measured), so a file is
filled with zeros when it is made and used again when a checkpoint has made its frames unnecessary. A frame
larger than a file gets a file of its own, which is removed instead of used again. The loop decides where a
frame goes (reserve), the writer thread puts it there (write); one frame is in flight at a time, hence at
most the last one can be torn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headwater.core.disk import Buffer, Disk
from headwater.log import journal_frame

SUFFIX = ".journal"


class JournalFile:
    __slots__ = ("exists", "handle", "last_sequence", "path", "recyclable", "size")

    def __init__(self, path: str, size: int, *, exists: bool, recyclable: bool) -> None:
        self.path = path
        self.size = size
        self.exists = exists
        self.recyclable = recyclable
        self.last_sequence = -1
        self.handle = -1


class Placement(NamedTuple):
    file: JournalFile
    position: int
    sequence: int


class Journal:
    """`sequence` is the last one given out, `chain` what the next frame must name."""

    def __init__(
        self, disk: Disk, folder: str, key: bytes, *, file_bytes: int, sequence: int, chain: int, next_name: int = 0
    ) -> None:
        self._disk = disk
        self._folder = folder
        self._key = key
        self._file_bytes = file_bytes
        self._next_name = next_name
        self._active: JournalFile | None = None
        self._position = 0
        self._used: list[JournalFile] = []  # full, waiting for a checkpoint; oldest first
        self._free: list[JournalFile] = []
        self.sequence = sequence
        self.chain = chain
        self.bytes_written = 0  # ever, by this process: what a checkpoint is measured against

    def new_file(self, size: int, *, recyclable: bool) -> JournalFile:
        path = f"{self._folder}/{self._next_name:08d}{SUFFIX}"
        self._next_name += 1
        return JournalFile(path, size, exists=False, recyclable=recyclable)

    def add_free(self, file: JournalFile) -> None:
        self._free.append(file)

    def spare_wanted(self) -> bool:
        """Whether a file should be made ready now, so that no window has to wait for one."""
        active = self._active
        return not self._free and active is not None and self._position * 2 > active.size

    def reserve(self, length: int) -> Placement:
        """[loop] The place of the next frame."""
        span = journal_frame.span(length)
        active = self._active
        if active is None or self._position + span > active.size:
            active = self._next_file(span)
        self.sequence += 1
        placement = Placement(active, self._position, self.sequence)
        active.last_sequence = self.sequence
        self._position += span
        self.bytes_written += span
        return placement

    def _next_file(self, span: int) -> JournalFile:
        if self._active is not None:
            self._used.append(self._active)
        chosen = next((file for file in self._free if file.size >= span), None)
        if chosen is not None:
            self._free.remove(chosen)
        else:
            fits = span <= self._file_bytes
            chosen = self.new_file(self._file_bytes if fits else span, recyclable=fits)
        self._active = chosen
        self._position = 0
        return chosen

    def write(self, placement: Placement, count: int, parts: Sequence[Buffer], length: int) -> None:
        """[writer thread] One write, one sync. Raises OSError; after that nothing here may be trusted."""
        file = placement.file
        if not file.exists:
            self.create(file)
        if file.handle < 0:
            file.handle = self._disk.open(file.path, write=True)
        buffers, chain = journal_frame.encode(
            placement.sequence, self.chain, self._key, count, parts, length
        )
        self._disk.write(file.handle, placement.position, buffers)
        self._disk.sync(file.handle)
        self.chain = chain

    def create(self, file: JournalFile) -> None:
        """[writer or segment thread] The file, full of zeros, and its name, durable."""
        handle = self._disk.open(file.path, create=True, write=True)
        try:
            if file.recyclable:
                self._disk.zero(handle, file.size)
                self._disk.sync(handle)
        finally:
            self._disk.close(handle)
        self._disk.sync_dir(self._folder)
        file.exists = True

    def release(self, sequence: int) -> list[str]:
        """[loop] A checkpoint made all frames up to `sequence` unnecessary. Paths of files to remove."""
        gone: list[str] = []
        kept: list[JournalFile] = []
        for file in self._used:
            if file.last_sequence > sequence:
                kept.append(file)
            elif file.recyclable and file.size == self._file_bytes:
                self._free.append(file)
            else:
                self._close(file)
                gone.append(file.path)
        self._used = kept
        return gone

    def close(self) -> None:
        for file in [*self._used, *self._free, *([self._active] if self._active else [])]:
            self._close(file)

    def _close(self, file: JournalFile) -> None:
        if file.handle >= 0:
            self._disk.close(file.handle)
            file.handle = -1
