"""Kafka's .txnindex file: 34-byte entries, one for each aborted transaction whose marker is in the segment.

    0 version int16 = 0 | 2 producer id 8 | 10 first offset 8 | 18 last offset 8 (the marker) | 26 last stable offset 8
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

ENTRY_BYTES = 34
_ENTRY = Struct(">hqqqq")
_LAST_OFFSET = Struct(">q")


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int


class IndexEntry(NamedTuple):
    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def pack(producer_id: int, first_offset: int, last_offset: int, last_stable_offset: int) -> bytes:
    return _ENTRY.pack(0, producer_id, first_offset, last_offset, last_stable_offset)


def entries(content: bytes | bytearray) -> Iterator[IndexEntry]:
    for position in range(0, len(content) - ENTRY_BYTES + 1, ENTRY_BYTES):
        yield IndexEntry(*_ENTRY.unpack_from(content, position))


def bytes_before_offset(content: bytes | bytearray, end: int, start: int = 0) -> int:
    """How many bytes of `content`, from `start` on, belong to markers below `end`."""
    size = len(content)
    while start < size and _LAST_OFFSET.unpack_from(content, start + 18)[0] < end:
        start += ENTRY_BYTES
    return start
