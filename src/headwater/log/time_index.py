"""Kafka's .timeindex file: 12-byte entries (timestamp int64, offset - base offset int32), both ascending.

An entry says: the greatest timestamp up to here is this one, in the batch that ends at this offset.
"""

from __future__ import annotations

from struct import Struct

ENTRY_BYTES = 12
_ENTRY = Struct(">qi")
pack = _ENTRY.pack
unpack_from = _ENTRY.unpack_from


def lookup(entries: bytes | bytearray, timestamp: int) -> int:
    """Relative offset of the last entry not younger than `timestamp`; 0 if there is none."""
    low, high = 0, len(entries) // ENTRY_BYTES
    while low < high:
        middle = (low + high) >> 1
        if unpack_from(entries, middle * ENTRY_BYTES)[0] <= timestamp:
            low = middle + 1
        else:
            high = middle
    return int(unpack_from(entries, (low - 1) * ENTRY_BYTES)[1]) if low else 0


def bytes_before_offset(entries: bytes | bytearray, relative_end: int, start: int = 0) -> int:
    """How many bytes of `entries`, from `start` on, name offsets below `relative_end`."""
    size = len(entries)
    while start < size and unpack_from(entries, start)[1] < relative_end:
        start += ENTRY_BYTES
    return start
