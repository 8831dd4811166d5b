"""The newest batches of one partition in memory, as they came: what a consumer that keeps up is answered from.

Views of the received buffers, never copied. Batches leave at the old end only, and only after the segment
thread has written them (the log sees to both, for all partitions together).
"""

from __future__ import annotations

from bisect import bisect_right

_COMPACT_AT = 1024  # gone batches at the front are dropped from the lists in groups of this many


class Tail:
    __slots__ = ("_first", "offsets", "views")

    def __init__(self) -> None:
        self.offsets: list[int] = []  # base offset of each batch
        self.views: list[memoryview] = []
        self._first = 0

    def start(self) -> int:
        """Base offset of the oldest batch here; -1 if there is none."""
        return self.offsets[self._first] if self._first < len(self.offsets) else -1

    def read(self, offset: int, max_bytes: int, limit_offset: int) -> tuple[list[memoryview], int]:
        """(batches, bytes) from the one that holds `offset`, at least one, all below `limit_offset`."""
        offsets, views = self.offsets, self.views
        index = bisect_right(offsets, offset, self._first) - 1
        stop = len(offsets)
        pieces: list[memoryview] = []
        size = 0
        while index < stop and offsets[index] < limit_offset:
            view = views[index]
            length = len(view)
            if size and size + length > max_bytes:
                break
            pieces.append(view)
            size += length
            index += 1
        return pieces, size

    def from_offset(self, offset: int) -> list[memoryview]:
        """All batches that begin at `offset` or later."""
        return self.views[max(bisect_right(self.offsets, offset - 1), self._first) :]

    def drop(self, count: int) -> int:
        """Let the `count` oldest batches go; their bytes."""
        first = self._first
        last = min(first + count, len(self.views))
        size = 0
        for index in range(first, last):
            size += len(self.views[index])
            self.views[index] = _NOTHING
        if last > _COMPACT_AT or last == len(self.views):
            del self.views[:last], self.offsets[:last]
            self._first = 0
        else:
            self._first = last
        return size

    def clear(self) -> None:
        self.offsets.clear()
        self.views.clear()
        self._first = 0


_NOTHING = memoryview(b"")
