"""What compiled codecs call: varints, tagged fields, records.

Positions are bytes into the buffer. Reading past its end raises IndexError, which `schema.decode` turns into
`Malformed`; whatever is compared here raises `Malformed` itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct, pack, unpack_from
from typing import Any, TypeAlias

STRING_BYTES_MAX = 0x7FFF  # Kafka refuses longer strings in every version, although a varint could say more
PIECE_BYTES_MIN = 4096  # below this a copy costs less than one more entry in the gathered write
ELEMENTS_MAX = 1 << 20  # array elements and tagged fields of a message: tiny ones must not become gigabytes
REQUEST_ELEMENTS_MAX = 1 << 18  # anybody may send those: at about 200 bytes each they stay below 64 MB

Piece: TypeAlias = bytes | bytearray | memoryview


class Malformed(Exception):
    """Bytes from a peer that are not the message they claim to be."""


def put_uvarint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def rest_of_uvarint(buffer: memoryview, position: int) -> tuple[int, int]:
    """The value and the end of a varint of two to five bytes, the first of which is at position - 1."""
    value = buffer[position - 1] & 0x7F
    for shift in (7, 14, 21, 28):
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise Malformed(f"the varint at byte {position - 5} is longer than 5 bytes")


def skip_tagged_fields(buffer: memoryview, position: int, count: int, most: int) -> tuple[int, int]:
    """Passes over tagged fields that nobody here knows. `count` is the byte at position - 1.

    Gives the position, and how many more of `most` elements the message may have.
    """
    if count > 0x7F:
        count, position = rest_of_uvarint(buffer, position)
    if count > most or count > (len(buffer) - position) >> 1:
        raise Malformed(f"{count} tagged fields, it says before byte {position}, are too many or are not there")
    for _ in range(count):
        _, position, size = tagged_field(buffer, position)
        position += size
    return position, most - count


def tagged_field(buffer: memoryview, position: int) -> tuple[int, int, int]:
    """The tag, where its value begins, and the value's size, which is there."""
    tag = buffer[position]
    position += 1
    if tag > 0x7F:
        tag, position = rest_of_uvarint(buffer, position)
    size = buffer[position]
    position += 1
    if size > 0x7F:
        size, position = rest_of_uvarint(buffer, position)
    if size > len(buffer) - position:
        raise Malformed(f"tagged field {tag} says {size} bytes at byte {position}, where fewer follow")
    return tag, position, size


def put_tagged_fields(out: bytearray, tagged: list[tuple[int, bytearray]]) -> None:
    put_uvarint(out, len(tagged))
    for tag, value in tagged:
        put_uvarint(out, tag)
        put_uvarint(out, len(value))
        out += value


def put_long_string_length(out: bytearray, length_and_one: int) -> None:
    if length_and_one > STRING_BYTES_MAX + 1:
        raise ValueError(f"a string of {length_and_one - 1} bytes: Kafka's longest is {STRING_BYTES_MAX}")
    put_uvarint(out, length_and_one)


def put_records(
    out: bytearray, pieces: list[Piece], records: Piece | Sequence[Piece], flexible: bool
) -> bytearray:
    """Writes the length and the bytes. Gives the buffer to go on with: a new one after a piece of its own."""
    parts: Sequence[Piece] = [records] if isinstance(records, bytes | bytearray | memoryview) else records
    size = 0
    for part in parts:
        size += len(part)
    if flexible:
        put_uvarint(out, size + 1)
    else:
        out += size.to_bytes(4, "big")
    for part in parts:
        if len(part) > PIECE_BYTES_MIN:
            if out:
                pieces.append(out)
                out = bytearray()
            pieces.append(part)
        else:
            out += part
    return out


def join_uuids(uuids: Sequence[bytes]) -> bytes:
    joined = b"".join(uuids)
    if len(joined) != 16 * len(uuids):
        raise ValueError("a uuid is 16 bytes")
    return joined


NAMES: dict[str, Any] = {
    "join_uuids": join_uuids,
    "new": object.__new__,
    "pack": pack,
    "put_long_string_length": put_long_string_length,
    "put_records": put_records,
    "put_tagged_fields": put_tagged_fields,
    "put_uvarint": put_uvarint,
    "rest_of_uvarint": rest_of_uvarint,
    "skip_tagged_fields": skip_tagged_fields,
    "Struct": Struct,
    "tagged_field": tagged_field,
    "unpack_from": unpack_from,
}
