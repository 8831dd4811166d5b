"""Kafka's .index file: 8-byte entries (offset - base offset int32, position int32), ascending.

An entry names the last offset of a batch and where that batch begins; entries are some 4 KB of log apart.
"""

from __future__ import annotations

from struct import Struct

ENTRY_BYTES = 8
_ENTRY = Struct(">ii")
pack = _ENTRY.pack
unpack_from = _ENTRY.unpack_from


def lookup(entries: bytes | bytearray, relative_offset: int) -> tuple[int, int] | None:
    """The last entry at or before the offset: (relative offset, position)."""
    low, high = 0, len(entries) // ENTRY_BYTES
    while low < high:
        middle = (low + high) >> 1
        if unpack_from(entries, middle * ENTRY_BYTES)[0] <= relative_offset:
            low = middle + 1
        else:
            high = middle
    if not low:
        return None
    relative, position = unpack_from(entries, (low - 1) * ENTRY_BYTES)
    return relative, position


def bytes_before_position(entries: bytes | bytearray, end: int, start: int = 0) -> int:
    """How many bytes of `entries`, from `start` on, belong to batches that begin before `end`."""
    size = len(entries)
    while start < size and unpack_from(entries, start)[1] < end:
        start += ENTRY_BYTES
    return start
