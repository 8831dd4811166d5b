"""One index of one segment in memory: what an earlier run left in the file, and what was added since.

The loop adds to `data`. The part that is only in the file (`base` bytes) is loaded by whoever needs it, in any
thread, into `prefix`: that assignment is the only change that does not happen on the loop. It holds iff its
CRC-32C is the one that the checkpoint (or this process) noted; if not, the caller rebuilds it from the segment.
"""

from __future__ import annotations

from headwater.core.disk import Buffer, Disk, read_file
from headwater.wire.crc import crc32c


class Index:
    __slots__ = ("_sum", "_summed", "base", "data", "file_sum", "prefix", "suffix", "taken")

    def __init__(self, suffix: str, file_bytes: int = 0, file_sum: int = 0) -> None:
        self.suffix = suffix  # of the file's name
        self.base = file_bytes
        self.file_sum = file_sum
        self.prefix: bytes | None = None if file_bytes else b""
        self.data = bytearray()
        self.taken = file_bytes  # handed to the segment thread
        self._sum = file_sum
        self._summed = file_bytes

    @property
    def size(self) -> int:
        return self.base + len(self.data)

    def checksum(self) -> int:
        """Of all entries; what was added since the last call is read."""
        if self._summed < self.size:
            self._sum = crc32c(self.data[self._summed - self.base :], self._sum)
            self._summed = self.size
        return self._sum

    def take(self, end: int) -> tuple[int, bytes] | None:
        """(position, bytes) to be written so that the file has `end` bytes."""
        if end <= self.taken:
            return None
        start, self.taken = self.taken, end
        return start, bytes(self.data[start - self.base : end - self.base])

    def load(self, disk: Disk, path: str) -> bytes | None:
        """The part from the file; None if it is damaged or not there."""
        if self.prefix is not None:
            return self.prefix
        try:
            content = read_file(disk, path)[: self.base]
        except FileNotFoundError:
            return None
        if len(content) != self.base or crc32c(content) != self.file_sum:
            return None
        self.prefix = content
        return content

    def rest_on_disk(self) -> None:
        """Everything is in the file and nothing will be added: memory is given back."""
        self.file_sum = self.checksum()
        self.base = self.size
        self.data = bytearray()
        self.prefix = None if self.base else b""

    def cut_at_position(self, end: int) -> None:
        """[an offset index whose segment lost its end] Entries beyond point nowhere; the file is made again on use."""
        if end == 0:
            self.base = 0
            self.prefix = b""
            self.data = bytearray()

    def replace(self, content: Buffer) -> None:
        """The rebuilt content of a damaged index; written in full with the next operations."""
        self.data = bytearray(content)  # first: a reader in between then finds every entry, some of them twice
        self.base = 0
        self.prefix = b""
        self.taken = 0
        self._summed = 0
        self._sum = 0
