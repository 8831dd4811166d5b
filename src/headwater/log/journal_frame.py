"""The journal's frame: what one commit window looks like on disk.

    header, 64 bytes, big-endian
     0  magic          8   "HWJRNL" 00 01
     8  sequence       8   the previous frame's + 1
    16  length         8   payload bytes
    24  chain          8   header sum << 32 | payload sum of the previous frame
    32  directory key 16   random, of this data directory; never leaves it
    48  entry count    4
    52  payload sum    4   CRC-32C of the payload
    56  header sum     4   CRC-32C of bytes 0..56
    60  zero           4
    payload: entries, each a 44-byte head and a body
     0  kind 1 | 1 flags 1 | 2 zero 2 | 4 body length 4 | 8 topic id 16 | 24 partition 4 | 28 offset 8 |
    36  next offset 8

A frame stands at a multiple of 4096, because a drive may tear a whole 4096-byte sector and a frame must not
share one with an earlier frame that was acknowledged. It is valid iff magic, key and both sums hold. It is
the next one iff also its sequence and its chain say so. docs/formats/journal.md is normative.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Any, NamedTuple

from headwater.core.disk import Buffer
from headwater.core.ids import ZERO
from headwater.wire.crc import crc32c

MAGIC = b"HWJRNL\x00\x01"
HEADER_BYTES = 64
ALIGNMENT = 4096
KEY_BYTES = 16

BATCH = 1
LOG_START = 2
TOPIC = 3
TOPIC_DELETED = 4
FACT = 5

ROLLED = 1  # flag of a batch: it is the first of a new segment. Replay must cut segments where the first run did

_HEADER = Struct(">8sQQQ16sIIII")
_SUMMED = 56
HEAD = Struct(">BB2xI16siqq")
HEAD_BYTES = HEAD.size
pack_head = HEAD.pack

JOIN_BELOW_BYTES = 8192  # an average entry smaller than this is copied together: iovecs cost more than bytes
_ZEROS = memoryview(bytes(ALIGNMENT))


class Header(NamedTuple):
    magic: bytes
    sequence: int
    length: int
    chain: int
    key: bytes
    entry_count: int
    payload_sum: int
    header_sum: int
    zero: int

    @property
    def own_chain(self) -> int:
        """What the next frame's `chain` must be."""
        return self.header_sum << 32 | self.payload_sum

    @property
    def span(self) -> int:
        return span(self.length)


class Entry(NamedTuple):
    kind: int
    flags: int
    topic_id: bytes
    partition: int
    offset: int
    next_offset: int
    body: memoryview


def span(length: int) -> int:
    """Bytes that a frame with a payload of `length` takes up in its file."""
    return -(-(HEADER_BYTES + length) // ALIGNMENT) * ALIGNMENT


def to_json(content: dict[str, Any]) -> str:
    return json.dumps(content, separators=(",", ":"))


def json_entry(kind: int, topic_id: bytes, content: dict[str, Any]) -> tuple[bytes, bytes]:
    body = to_json(content).encode()
    return pack_head(kind, 0, len(body), topic_id, -1, -1, -1), body


def fact_entry(key: str, value: Any) -> tuple[bytes, bytes]:
    return json_entry(FACT, ZERO, {"key": key, "value": value})


def encode(
    sequence: int, chain: int, key: bytes, count: int, parts: Sequence[Buffer], length: int
) -> tuple[list[Buffer], int]:
    """(buffers to write, chain for the next frame)."""
    body: list[Buffer]
    if len(parts) > 16 and length < JOIN_BELOW_BYTES * len(parts):
        joined = b"".join(parts)
        payload_sum = crc32c(joined)
        body = [joined]
    else:
        payload_sum = 0
        for part in parts:
            payload_sum = crc32c(part, payload_sum)
        body = list(parts)
    fields = (MAGIC, sequence, length, chain, key, count, payload_sum)
    header_sum = crc32c(_HEADER.pack(*fields, 0, 0)[:_SUMMED])
    buffers: list[Buffer] = [_HEADER.pack(*fields, header_sum, 0), *body]
    # Whole sectors: a partial one not in memory would have to be read from the disk first.
    padding = span(length) - HEADER_BYTES - length
    if padding:
        buffers.append(_ZEROS[:padding])
    return buffers, header_sum << 32 | payload_sum


def parse_header(content: memoryview, position: int, key: bytes) -> Header | None:
    """None unless a valid header of this directory stands there."""
    if len(content) - position < HEADER_BYTES or content[position : position + 8] != MAGIC:
        return None
    header = Header(*_HEADER.unpack_from(content, position))
    if header.key != key or crc32c(content[position : position + _SUMMED]) != header.header_sum:
        return None
    return header


def payload_holds(content: memoryview, position: int, header: Header) -> bool:
    start = position + HEADER_BYTES
    payload = content[start : start + header.length]
    return len(payload) == header.length and crc32c(payload) == header.payload_sum


def entries(content: memoryview, position: int, header: Header) -> Iterator[Entry]:
    """The entries of a valid frame."""
    at = position + HEADER_BYTES
    for _ in range(header.entry_count):
        kind, flags, length, topic_id, partition, offset, next_offset = HEAD.unpack_from(content, at)
        at += HEAD_BYTES
        yield Entry(kind, flags, topic_id, partition, offset, next_offset, content[at : at + length])
        at += length
