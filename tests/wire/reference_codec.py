"""A slow second encoder, a random message maker and the list of all messages, for the tests of the compiled codecs.

The encoder walks the fields one at a time and knows where it wrote each length and count, so that a test can put
a lie in its place.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from struct import pack
from typing import Any

from headwater.wire.messages import APIS, offsets_topic, request_class, response_class, transaction_state
from headwater.wire.schema import Field, Schema, schema_of

ANY = (1 << 63) - 1
NUMBERS = {"b": 8, "h": 16, "i": 32, "q": 64}
RECORD_CLASSES = [
    offsets_topic.OffsetCommitKey,
    offsets_topic.OffsetCommitValue,
    offsets_topic.GroupMetadataKey,
    offsets_topic.GroupMetadataValue,
    transaction_state.TransactionLogKey,
    transaction_state.TransactionLogValue,
]


def every_class() -> list[type]:
    """Requests, responses and the records of internal topics."""
    of_apis = [find(key) for key in APIS for find in (request_class, response_class)]
    return [cls for cls in of_apis if cls is not None] + RECORD_CLASSES


def every_version() -> Iterator[tuple[type, int]]:
    for cls in every_class():
        low, high = schema_of(cls).versions
        for version in range(low, high + 1):
            yield cls, version


# --- a random message ----------------------------------------------------------------------------------------


def random_message(cls: type, version: int, chance: random.Random) -> Any:
    """A message with a value in every field that the version has; small arrays, some nulls, some defaults."""
    values = {}
    for each in schema_of(cls).fields:
        if each.exists_in(version) and chance.random() < 0.9:
            values[each.name] = random_value(each, version, chance)
    return cls(**values)


def random_value(each: Field, version: int, chance: random.Random) -> Any:
    if each.is_nullable_in(version) and chance.random() < 0.25:
        return None
    if each.is_array:
        return [random_one(each, version, chance) for _ in range(chance.choice([0, 1, 1, 2, 3]))]
    return random_one(each, version, chance)


def random_one(each: Field, version: int, chance: random.Random) -> Any:
    if each.schema is not None:
        return random_message(each.schema.cls, version, chance)
    if each.fmt in NUMBERS:
        top = 1 << NUMBERS[each.fmt] - 1
        return chance.choice([0, 1, -1, top - 1, -top, chance.randrange(-top, top)])
    if each.type_name == "String":
        return chance.choice(["", "orders", "größe", "x" * 127, "y" * 126, "\U0001f30a" * 80])
    return {
        "Uint16": lambda: chance.choice([0, 1, 9092, 65535]),
        "Float64": lambda: chance.choice([0.0, -1.5, 1e300]),
        "Bool": lambda: chance.random() < 0.5,
        "Uuid": lambda: chance.randbytes(16),
        "Bytes": lambda: chance.randbytes(chance.choice([0, 1, 40, 127, 128, 200])),
        "Records": lambda: chance.randbytes(chance.choice([0, 61, 130, 5000])),
    }[each.type_name]()


# --- the second encoder --------------------------------------------------------------------------------------


class Reference:
    """Encodes one message. `lies` puts other numbers in the places of its lengths and counts.

    `marks` names these places in order, each with the largest number that can be written there, and whether -1 may be.
    """

    def __init__(self, message: Any, version: int, lies: dict[int, int] | None = None) -> None:
        schema = schema_of(type(message))
        self.version = version
        self.flexible = version >= schema.flexible
        self.lies = lies or {}
        self.marks: list[tuple[str, int, bool]] = []
        self.bytes = self.struct(schema, message)

    def told(self, what: str, true: int, largest: int = ANY, nullable: bool = False) -> int:
        self.marks.append((what, largest, nullable))
        return self.lies.get(len(self.marks) - 1, true)

    def length(self, each: Field, true: int, width: int, nullable: bool) -> bytes:
        if self.flexible:
            return uvarint(self.told(each.name, true, ANY, nullable) + 1)
        number = self.told(each.name, true, (1 << 8 * width - 1) - 1, nullable)
        return (number & (1 << 8 * width) - 1).to_bytes(width, "big")

    def struct(self, schema: Schema, message: Any) -> bytes:
        here = [each for each in schema.fields if each.exists_in(self.version)]
        out = b"".join(self.value(each, getattr(message, each.name)) for each in here if each.tag is None)
        if not self.flexible:
            return out
        tagged = [each for each in here if each.tag is not None and getattr(message, each.name) != each.default]
        out += uvarint(self.told("tagged fields", len(tagged)))
        for each in sorted(tagged, key=lambda each: each.tag or 0):
            place = len(self.marks)
            self.marks.append((f"size of {each.name}", ANY, False))
            value = self.value(each, getattr(message, each.name))
            out += uvarint(each.tag or 0) + uvarint(self.lies.get(place, len(value))) + value
        return out

    def value(self, each: Field, value: Any) -> bytes:
        if each.is_array:
            nullable = each.is_nullable_in(self.version)
            count = self.length(each, -1 if value is None else len(value), 4, nullable)
            return count + b"".join(self.one(each, element) for element in value or ())
        if each.schema is not None and each.is_nullable_in(self.version):
            return b"\xff" if value is None else b"\x01" + self.one(each, value)
        return self.one(each, value)

    def one(self, each: Field, value: Any) -> bytes:
        if each.fmt:
            return pack(">" + each.fmt, value)
        if each.schema is not None:
            return self.struct(each.schema, value)
        is_string = each.type_name == "String"
        nullable = each.is_nullable_in(self.version) and not each.is_array  # elements never are
        data = b"" if value is None else value.encode() if is_string else bytes(value)
        return self.length(each, -1 if value is None else len(data), 2 if is_string else 4, nullable) + data


def uvarint(number: int) -> bytes:
    """Up to ten bytes, so that a test can write numbers that are too long."""
    number &= (1 << 70) - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)
