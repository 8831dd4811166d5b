"""Records of a batch v2, in Python: the twin of `_records.c`, fallback where no compiler was, oracle in tests.

One record, all integers zigzag varints (v) but the attributes byte:

    length v | attributes 1 | timestamp delta v64 | offset delta v | key length v | key |
    value length v | value | header count v | (key length v | key | value length v | value) ...

A record is valid iff every varint ends within 5 bytes (timestamp delta: 10) without overflowing 32 (64)
bits, key and value lengths are >= -1 (-1 = null), header count and header key lengths are >= 0, and the
fields end exactly where `length` says. The records of a batch are valid iff there are exactly `count` of
them up to the end of the buffer. Java tolerates lengths below -1 and overflowing varints where other
clients do not: what is stored must be readable by every client, so they are errors here.

Both twins return the same values for the same bytes, errors included. They know nothing of headers,
codecs and sums: see `batch`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview
Headers: TypeAlias = list[tuple[str, bytes | None]]

INTERFACE = 1  # of both twins: a stale _records.so with another number is not used

# What walk() finds wrong. The order is part of the twins' interface.
OK = 0
TRUNCATED = 1
BAD_VARINT = 2
BAD_LENGTH = 3
BAD_OFFSET_DELTA = 4
BAD_KEY_LENGTH = 5
BAD_VALUE_LENGTH = 6
BAD_HEADER_COUNT = 7
BAD_HEADER_KEY_LENGTH = 8
BAD_HEADER_VALUE_LENGTH = 9
TRAILING_BYTES = 10

ERROR_TEXTS = (
    "fine",
    "the records end too early",
    "an integer is longer than it may be",
    "the length of a record is not the length of its fields",
    "the offset deltas are not 0, 1, 2, ...",
    "a key length is below -1 or beyond the record",
    "a value length is below -1 or beyond the record",
    "a header count is negative or larger than the record can hold",
    "a header key length is negative or beyond the record",
    "a header value length is below -1 or beyond the record",
    "bytes follow the last record",
)

_HEADER = 61  # of a batch; scan_batches() hops from one to the next
_SMALLEST_LENGTH = _HEADER - 12
_EMPTY = (0, -1, 0, -1)
_PADDING = b"\xff" * 32


class Malformed(ValueError):
    """Records that must be valid, because they were checked before they were stored, are not."""


def malformed(kind: int, position: int) -> Malformed:
    return Malformed(f"{ERROR_TEXTS[kind]} (at byte {position})")


class Record(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = []  # shared, never changed: a record without headers is the normal case


class _Bad(Exception):
    def __init__(self, kind: int, position: int) -> None:
        self.kind = kind
        self.position = position


def _varint(data: bytes, at: int, end: int, most: int, bits: int) -> tuple[int, int]:
    """A zigzag varint of at most `most` bytes and `bits` bits before `end`; (value, position after it)."""
    result = 0
    for index in range(most):
        if at + index >= end:
            raise _Bad(TRUNCATED, at)
        byte = data[at + index]
        result |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if result >> bits:
                break
            return (result >> 1) ^ -(result & 1), at + index + 1
    raise _Bad(BAD_VARINT, at)


def _int32(data: bytes, at: int, end: int) -> tuple[int, int]:
    return _varint(data, at, end, 5, 32)


def _skip(data: bytes, at: int, end: int, kind: int, least: int) -> tuple[int, int]:
    """A length of `least` or more and as many bytes; (length, position after the bytes)."""
    length, after = _int32(data, at, end)
    if length < least or length > end - after:
        raise _Bad(kind, at)
    return length, after + max(length, 0)


def _skip_headers(data: bytes, at: int, end: int) -> int:
    count, after = _int32(data, at, end)
    # A header is two bytes at least: an absurd count must not become an absurd loop.
    if count < 0 or count > (end - after) // 2:
        raise _Bad(BAD_HEADER_COUNT, at)
    for _ in range(count):
        _, after = _skip(data, after, end, BAD_HEADER_KEY_LENGTH, 0)
        _, after = _skip(data, after, end, BAD_HEADER_VALUE_LENGTH, -1)
    return after


def _begin(data: bytes, at: int, limit: int) -> tuple[int, int]:
    """(position of the attributes, end) of the record at `at`."""
    length, body = _int32(data, at, limit)
    if length < 0:
        raise _Bad(BAD_LENGTH, at)
    if length > limit - body:
        raise _Bad(TRUNCATED, at)
    if length == 0:
        raise _Bad(BAD_LENGTH, at)
    return body, body + length


def _record(data: bytes, at: int, limit: int, expected: int) -> tuple[int, int, int, bool]:
    """Every rule, one record: (end, timestamp delta, offset delta, key is null). expected -1: any offset from 0."""
    body, end = _begin(data, at, limit)
    timestamp, position = _varint(data, body + 1, end, 10, 64)
    place = position
    offset, position = _int32(data, place, end)
    if offset < 0 or (expected >= 0 and offset != expected):
        raise _Bad(BAD_OFFSET_DELTA, place)
    key, position = _skip(data, position, end, BAD_KEY_LENGTH, -1)
    _, position = _skip(data, position, end, BAD_VALUE_LENGTH, -1)
    position = _skip_headers(data, position, end)
    if position != end:
        raise _Bad(BAD_LENGTH, at)
    return end, timestamp, offset, key < 0


def walk(
    buffer: Buffer, position: int, count: int, consecutive: bool, /
) -> tuple[int, int, int, int, int, int, int]:
    """Validate `count` records from `position` to the end of the buffer.

    (kind, index of the record, position, greatest timestamp delta, offset delta of the first record that has
    it, least timestamp delta, index of the first record without a key or -1). `consecutive` demands the
    offset deltas 0, 1, 2, ... as in every batch that a client sends; compaction leaves gaps.
    A kind other than OK is followed by where it is, and by nothing that may be used.
    """
    limit = len(buffer)
    if not 0 <= position <= limit:
        raise ValueError("the position is outside the buffer")
    # Padding lets the short cut read a few bytes ahead without asking; it never decides on them.
    data = b"".join((buffer, _PADDING))
    at = position
    greatest = least = 0
    greatest_at = keyless = -1
    index = 0
    try:
        for index in range(count):
            # The short cut: lengths up to 3 bytes, deltas up to 3 or 4, no headers, nothing wrong. Whatever it
            # does not know goes to _record, which alone decides.
            n = data[at]
            p = at + 1
            if n > 127:
                b = data[p]
                n = n & 127 | b << 7
                p += 1
                if b > 127:
                    n = n & 16383 | data[p] << 14
                    p += 1
            end = p + (n >> 1)
            t = data[p + 1]
            p += 2
            if t > 127:
                b = data[p] if p < limit else 0
                t = t & 127 | b << 7
                p += 1
                if b > 127:
                    b = data[p]
                    t = t & 16383 | b << 14
                    p += 1
            o = data[p] if p < limit else 0
            p += 1
            if o > 127:
                b = data[p]
                o = o & 127 | b << 7
                p += 1
                if b > 127:
                    o = o & 16383 | data[p] << 14
                    p += 1
            k = data[p] if p < limit else 255
            p += 1
            if k > 127:
                k = k & 127 | data[p] << 7
                p += 1
            v_at = p + (k >> 1) if k != 1 else p
            v = 255
            if v_at < limit:
                v = data[v_at]
                p = v_at + 1
                if v > 127:
                    b = data[p]
                    v = v & 127 | b << 7
                    p += 1
                    if b > 127:
                        v = v & 16383 | data[p] << 14
                        p += 1
                if v != 1:
                    p += v >> 1
            if (
                p + 1 != end
                or end > limit
                or data[p]
                or n & 1
                or n >= 2097152
                or t >= 2097152
                or o != index << 1
                or k >= 16384
                or (k & 1 and k != 1)
                or v >= 2097152
                or (v & 1 and v != 1)
            ):
                end, delta, offset, null = _record(data, at, limit, index if consecutive else -1)
                if null and keyless < 0:
                    keyless = index
            else:
                delta = (t >> 1) ^ -(t & 1)
                offset = index
                if k == 1 and keyless < 0:
                    keyless = index
            if delta > greatest or not index:
                greatest = delta
                greatest_at = offset
                if not index:
                    least = delta
            elif delta < least:
                least = delta
            at = end
        if at != limit:
            raise _Bad(TRAILING_BYTES, at)
    except _Bad as bad:
        return (bad.kind, max(count, 0) if bad.kind == TRAILING_BYTES else index, bad.position, *_EMPTY)
    return OK, max(count, 0), at, greatest, greatest_at, least, keyless


def first_at_or_after(buffer: Buffer, position: int, count: int, delta: int, /) -> tuple[int, int] | None:
    """(timestamp delta, offset delta) of the first record whose timestamp delta is `delta` or more."""
    data = bytes(buffer)
    limit = len(data)
    try:
        for _ in range(count):
            position, found, offset, _ = _record(data, position, limit, -1)
            if found >= delta:
                return found, offset
    except _Bad as bad:
        raise malformed(bad.kind, bad.position) from None
    return None


def scan_batches(buffer: Buffer, limit_offset: int, position: int = 0, /) -> int:
    """The end of the whole batches from `position` on whose base offset is below `limit_offset`."""
    limit = len(buffer)
    if not 0 <= position <= limit:
        raise ValueError("the position is outside the buffer")
    while limit - position >= _HEADER and buffer[position + 16] == 2:
        length = int.from_bytes(buffer[position + 8 : position + 12], "big", signed=True)
        base = int.from_bytes(buffer[position : position + 8], "big", signed=True)
        if length < _SMALLEST_LENGTH or length > limit - position - 12 or base >= limit_offset:
            break
        position += 12 + length
    return position


def _unzigzag(data: bytes, at: int) -> tuple[int, int]:
    """A varint in records that were walked: nothing is left to check."""
    result = data[at] & 127
    shift = 7
    while data[at] > 127:
        at += 1
        result |= (data[at] & 127) << shift
        shift += 7
    return (result >> 1) ^ -(result & 1), at + 1


def _bytes_at(data: bytes, at: int) -> tuple[bytes | None, int]:
    length, at = _unzigzag(data, at)
    return (None, at) if length < 0 else (data[at : at + length], at + length)


def _headers_at(data: bytes, at: int) -> tuple[Headers, int]:
    count, at = _unzigzag(data, at)
    headers: Headers = []
    for _ in range(count):
        key, at = _bytes_at(data, at)
        value, at = _bytes_at(data, at)
        # Nobody checks header keys, Kafka included: what is not UTF-8 must survive being read and written.
        headers.append(((key or b"").decode("utf-8", "surrogateescape"), value))
    return headers, at


def decode(
    buffer: Buffer, position: int, count: int, base_offset: int, base_timestamp: int
) -> Iterator[Record]:
    """The records as values; Malformed where one breaks a rule (the offsets may have gaps), before the first."""
    kind, _, bad, *_ = walk(buffer, position, count, False)
    if kind != OK:
        raise malformed(kind, bad)
    data = bytes(buffer)
    at = position
    for _ in range(count):
        while data[at] > 127:
            at += 1
        at += 2  # the length was checked, the attributes mean nothing
        timestamp = data[at]
        at += 1
        if timestamp > 127:
            timestamp, at = _unzigzag(data, at - 1)
        else:
            timestamp = (timestamp >> 1) ^ -(timestamp & 1)
        offset, at = _unzigzag(data, at) if data[at] > 127 else (data[at] >> 1, at + 1)
        # One byte lengths, the usual case, are read in place; 1 is null.
        length = data[at]
        key: bytes | None = None
        if length > 127:
            key, at = _bytes_at(data, at)
        elif length == 1:
            at += 1
        else:
            begin = at + 1
            at = begin + (length >> 1)
            key = data[begin:at]
        length = data[at]
        value: bytes | None = None
        if length > 127:
            value, at = _bytes_at(data, at)
        elif length == 1:
            at += 1
        else:
            begin = at + 1
            at = begin + (length >> 1)
            value = data[begin:at]
        headers: Headers = []
        if data[at]:
            headers, at = _headers_at(data, at)
        else:
            at += 1
        yield Record(base_offset + offset, base_timestamp + timestamp, key, value, headers)


def _encoded(value: int) -> bytes:
    """`value` as a zigzag varint."""
    value = (value << 1) ^ (value >> 63)
    if value < 128:
        return _ONE_BYTE[value]
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


_ONE_BYTE = [bytes((value,)) for value in range(128)]
_NULL = _encoded(-1)
_NO_HEADERS = _encoded(0)


def _field(value: Buffer | None) -> bytes:
    return _NULL if value is None else _encoded(len(value)) + bytes(value)


def encode(
    offset_delta: int, timestamp_delta: int, key: Buffer | None, value: Buffer | None, headers: Any
) -> bytes:
    """One record as bytes; the inverse of what decode() reads."""
    tail = _NO_HEADERS
    if headers:
        parts = [_encoded(len(headers))]
        for name, content in headers:
            parts += (_field(name.encode("utf-8", "surrogateescape")), _field(content))
        tail = b"".join(parts)
    body = b"".join(
        (b"\0", _encoded(timestamp_delta), _encoded(offset_delta), _field(key), _field(value), tail)
    )
    return _encoded(len(body)) + body
