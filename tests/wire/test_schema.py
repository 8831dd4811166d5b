"""The schema's own rules, on two messages that have every kind of field."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import headwater.wire
from headwater.wire.messages.create_partitions import CreatePartitionsRequest
from headwater.wire.primitives import PIECE_BYTES_MIN, REQUEST_ELEMENTS_MAX
from headwater.wire.schema import (
    Bool,
    Bytes,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Malformed,
    RecordPieces,
    String,
    Uint16,
    Uuid,
    decode,
    encode,
    field,
    message,
    schema_of,
    struct,
)

SOURCES = str(Path(headwater.wire.__path__[0]).parents[1])


@struct
class Point:
    x: Int32 = -1
    label: String | None = field(since=1, default=None, ignorable=True)


@message(key=999, versions=(0, 3), flexible=2)
class EverythingRequest:
    flag: Bool = False
    small: Int8 = 0
    port: Uint16 = 0
    big: Int64 = 0
    share: Float64 = 0.0
    topic_id: Uuid = field(since=1, ignorable=True)
    name: String = ""
    note: String | None = field(nullable_since=1)
    secret: Bytes = b""
    points: list[Point] = field()
    numbers: list[Int16] | None = None
    ids: list[Uuid] = field()
    names: list[String] = field()
    where: Point = field()
    maybe: Point | None = field(since=1, default=None)
    hint: Point = field(since=2, tag=1)
    count: Int32 = field(since=3, tag=0, default=7)


@message(versions=(0, 2), flexible=1)
class Batches:
    data: RecordPieces | None = None
    after: Int8 = 0


FULL: dict[str, Any] = {
    "flag": True,
    "small": -2,
    "port": 65535,
    "big": 1 << 62,
    "share": 0.5,
    "topic_id": bytes(range(16)),
    "name": "größe",
    "note": None,
    "secret": b"s",
    "points": [Point(x=1, label="a"), Point(x=2)],
    "numbers": [1, -1],
    "ids": [b"\x01" * 16, b"\x02" * 16],
    "names": ["", "b"],
    "where": Point(x=9),
    "maybe": Point(x=8),
}
TAGGED: dict[str, Any] = {"hint": Point(x=3, label="h"), "count": 1}
FIXED_V1 = (
    "01 fe ffff 4000000000000000 3fe0000000000000 000102030405060708090a0b0c0d0e0f"
    "0007 6772c3b6c39f65 ffff 00000001 73"
    "00000002 00000001 0001 61 00000002 ffff"
    "00000002 0001 ffff 00000002" + "01" * 16 + "02" * 16 + "00000002 0000 0001 62"
    "00000009 ffff 01 00000008 ffff"
)
FLEXIBLE_V3 = (
    "01 fe ffff 4000000000000000 3fe0000000000000 000102030405060708090a0b0c0d0e0f"
    "08 6772c3b6c39f65 00 02 73"
    "03 00000001 02 61 00 00000002 00 00"
    "03 0001 ffff 03" + "01" * 16 + "02" * 16 + "03 01 02 62"
    "00000009 00 00 01 00000008 00 00"
    "02 00 04 00000001 01 07 00000003 02 68 00"
)


def read(cls: type, version: int, data: bytes) -> object:
    return decode(cls, version, memoryview(data))


def written(value: object, version: int) -> bytes:
    return b"".join(encode(value, version))


# --- values --------------------------------------------------------------------------------------------------


def test_a_constructor_fills_in_defaults_and_every_object_gets_its_own_lists() -> None:
    one, other = EverythingRequest(), EverythingRequest()
    one.points.append(Point())
    assert (one.count, one.note, one.numbers, one.maybe) == (7, "", None, None)
    assert other.points == []
    assert one != other


def test_a_constructor_refuses_names_that_are_not_fields() -> None:
    with pytest.raises(TypeError):
        EverythingRequest(nmae="x")  # type: ignore[call-arg]


def test_an_object_has_no_room_for_other_names() -> None:
    with pytest.raises(AttributeError):
        EverythingRequest().nmae = "x"  # type: ignore[attr-defined]


def test_the_default_of_a_struct_field_is_shared_and_refuses_changes() -> None:
    first, second = EverythingRequest(), EverythingRequest()
    assert first.where is second.where
    assert first.where == Point()
    with pytest.raises(AttributeError, match="assign a new one"):
        first.where.x = 5
    first.where = Point(x=5)
    assert second.where.x == -1


def test_a_message_shows_what_differs_from_the_defaults() -> None:
    assert repr(EverythingRequest(name="a", where=Point(x=3))) == "EverythingRequest(name='a', where=Point(x=3))"
    assert repr(Batches(data=memoryview(b"abc"))) == "Batches(data=<3 bytes>)"


# --- versions ------------------------------------------------------------------------------------------------


def test_every_kind_of_field_in_fixed_bytes() -> None:
    message = EverythingRequest(**FULL)
    assert written(message, 1).hex() == bytes.fromhex(FIXED_V1).hex()
    assert read(EverythingRequest, 1, bytes.fromhex(FIXED_V1)) == message


def test_every_kind_of_field_in_flexible_bytes() -> None:
    message = EverythingRequest(**FULL, **TAGGED)
    assert written(message, 3).hex() == bytes.fromhex(FLEXIBLE_V3).hex()
    assert read(EverythingRequest, 3, bytes.fromhex(FLEXIBLE_V3)) == message


def test_a_field_that_the_version_lacks_is_dropped_only_if_it_is_ignorable() -> None:
    assert read(EverythingRequest, 0, written(EverythingRequest(topic_id=b"\x01" * 16), 0)) == EverythingRequest()
    with pytest.raises(ValueError, match=r"maybe = Point.* does not exist in version 0"):
        encode(EverythingRequest(maybe=Point()), 0)
    with pytest.raises(ValueError, match="count = 8 does not exist in version 2"):
        encode(EverythingRequest(count=8), 2)


@pytest.mark.parametrize("version", [-1, 4])
def test_a_version_that_a_message_does_not_have_is_the_callers_mistake(version: int) -> None:
    with pytest.raises(ValueError, match="EverythingRequest has versions 0 to 3"):
        encode(EverythingRequest(), version)
    with pytest.raises(ValueError, match="EverythingRequest has versions 0 to 3"):
        read(EverythingRequest, version, b"")


@pytest.mark.parametrize(
    ("version", "wrong"),
    [
        (0, {"note": None}),
        (3, {"name": None}),
        (3, {"small": 128}),
        (3, {"port": -1}),
        (3, {"name": "x" * 32_768}),
        (0, {"name": "x" * 32_768}),
        (3, {"ids": [b"short"]}),
        (3, {"where": None}),
        (3, {"name": "\ud800"}),
    ],
)
def test_a_value_that_does_not_fit_its_type_raises_value_error(version: int, wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        encode(EverythingRequest(**wrong), version)  # type: ignore[arg-type]


# --- tagged fields -------------------------------------------------------------------------------------------


def test_unknown_tagged_fields_are_passed_over_wherever_they_are() -> None:
    plain = written(EverythingRequest(), 3)
    assert plain[-1] == 0
    unknown = plain[:-1] + bytes.fromhex("02 05 03 616263 8801 00")
    assert read(EverythingRequest, 3, unknown) == EverythingRequest()
    inside = written(EverythingRequest(points=[Point(x=1)]), 3)
    at = inside.index(bytes.fromhex("02 00000001 00 00")) + 6
    assert read(EverythingRequest, 3, inside[:at] + bytes.fromhex("01 09 00") + inside[at + 1 :]) == (
        EverythingRequest(points=[Point(x=1)])
    )


@pytest.mark.parametrize(
    "tail",
    [
        "01 00 03 00000001",  # the value is longer than it says
        "01 00 05 00000001 00",  # or shorter
        "01 00 04 0000",  # or not all there
        "01 63 05 00",
        "7f",
        "ffffffffff01",
        "01",
        "01 00",
        "02 00 04 00000001",
    ],
)
def test_a_tagged_part_that_lies_is_malformed(tail: str) -> None:
    plain = written(EverythingRequest(), 3)
    with pytest.raises(Malformed):
        read(EverythingRequest, 3, plain[:-1] + bytes.fromhex(tail))


# --- bytes ---------------------------------------------------------------------------------------------------


def test_bytes_are_slices_of_the_buffer_and_not_copies() -> None:
    buffer = bytearray(written(Batches(data=b"abcd"), 0))
    decoded = decode(Batches, 0, memoryview(buffer))
    assert isinstance(decoded.data, memoryview)
    buffer[4] = ord("z")
    assert decoded.data == b"zbcd"


@pytest.mark.parametrize("version", [0, 1])
def test_records_may_come_in_pieces_and_large_ones_are_passed_through(version: int) -> None:
    large, small = memoryview(b"L" * (PIECE_BYTES_MIN + 1)), b"small"
    pieces = encode(Batches(data=[small, large, large, small], after=3), version)
    assert [piece is large for piece in pieces] == [False, True, True, False]
    whole = b"".join([small, large, large, small])
    assert decode(Batches, version, memoryview(b"".join(pieces))) == Batches(data=whole, after=3)
    assert written(Batches(data=whole, after=3), version) == b"".join(pieces)


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("data", [None, b"", [], b"x" * PIECE_BYTES_MIN])
def test_small_records_stay_in_one_piece_and_empty_is_not_null(version: int, data: bytes | None) -> None:
    pieces = encode(Batches(data=data), version)
    assert len(pieces) == 1
    decoded = decode(Batches, version, memoryview(b"".join(pieces)))
    assert decoded.data == (b"" if data == [] else data)


def test_encoding_goes_on_where_a_header_ends() -> None:
    head = bytearray(b"head")
    pieces = encode(Batches(data=b"d" * 9000), 0, head)
    assert pieces[0] is head
    assert bytes(head) == b"head" + (9000).to_bytes(4, "big")


@pytest.mark.parametrize(
    ("version", "data"),
    [
        (1, "05 616263 00 00"),  # longer than what is left
        (1, "808080808001 00 00"),  # a varint of six bytes
        (1, "ffffffff0f 00 00"),
        (1, ""),
        (0, "7fffffff 00"),
        (0, "00000001"),
        (0, "000000"),
    ],
)
def test_lengths_that_lie_are_malformed(version: int, data: str) -> None:
    with pytest.raises(Malformed):
        read(Batches, version, bytes.fromhex(data))


@pytest.mark.parametrize("version", [0, 1])
def test_a_count_is_refused_before_a_single_element_is_read(version: int) -> None:
    points = written(EverythingRequest(points=[Point(x=1)]), version)
    at = points.index(bytes.fromhex("00000001 00000001"))
    with pytest.raises(Malformed, match=r"points, .* has 99 elements, it says, and they are not there"):
        read(EverythingRequest, version, points[:at] + (99).to_bytes(4, "big") + points[at + 4 :])


def test_a_count_of_unknown_tagged_fields_is_refused_before_one_is_read() -> None:
    plain = written(CreatePartitionsRequest(), 3)
    with pytest.raises(Malformed, match="2 tagged fields, it says"):
        read(CreatePartitionsRequest, 3, plain[:-1] + bytes.fromhex("02 6300 64"))


def test_strings_must_be_utf_8_and_short() -> None:
    good = written(EverythingRequest(name="abc"), 3)
    with pytest.raises(Malformed, match="UTF-8"):
        read(EverythingRequest, 3, good.replace(b"abc", b"a\xffc"))
    at = good.index(b"\x04abc")
    long = good[:at] + bytes.fromhex("818002") + b"x" * 32_768 + good[at + 4 :]
    with pytest.raises(Malformed, match="name"):
        read(EverythingRequest, 3, long)


def test_a_request_with_too_many_tiny_elements_is_malformed_although_they_are_there() -> None:
    lists = written(EverythingRequest(names=[""]), 3)
    at = lists.index(bytes.fromhex("02 01 ffffffff 00 00"))  # with `where`, which follows
    count = REQUEST_ELEMENTS_MAX + 1
    length = bytes([count + 1 & 127 | 128, count + 1 >> 7 & 127 | 128, count + 1 >> 14])
    with pytest.raises(Malformed, match="names"):
        read(EverythingRequest, 3, lists[:at] + length + b"\x01" * count + lists[at + 2 :])


@pytest.mark.parametrize("cls", [EverythingRequest, CreatePartitionsRequest])
def test_a_request_with_too_many_tagged_fields_is_malformed_although_they_are_there(cls: type) -> None:
    plain = written(cls(), 3)
    most = REQUEST_ELEMENTS_MAX
    for count in (most, most + 1):
        length = bytes([count & 127 | 128, count >> 7 & 127 | 128, count >> 14])
        data = plain[:-1] + length + bytes.fromhex("6300") * count
        if count == most:
            assert read(cls, 3, data) == cls()
        else:
            with pytest.raises(Malformed, match="tagged"):
                read(cls, 3, data)


# --- cost ----------------------------------------------------------------------------------------------------


def test_importing_every_message_compiles_nothing_and_loads_nothing_heavy() -> None:
    program = (
        f"import sys; sys.path.insert(0, {SOURCES!r})\n"
        "from headwater.wire import frame, messages, schema\n"
        "assert not [name for name in sys.modules if name.startswith('headwater.wire.messages.')]\n"
        "classes = [messages.request_class(key) for key in messages.APIS]\n"
        "classes += [messages.response_class(key) for key in messages.APIS]\n"
        "import headwater.wire.messages.offsets_topic, headwater.wire.messages.transaction_state\n"
        "assert all(schema.schema_of(cls).decoders == {} for cls in classes)\n"
        "heavy = {'dataclasses', 'inspect', 'socket', 'threading', 'random', 'asyncio', 'logging', 'json'}\n"
        "print(*sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("", "")


def test_a_codec_is_compiled_once() -> None:
    encode(Batches(), 2)
    first = schema_of(Batches).encoders[2]
    encode(Batches(), 2)
    assert schema_of(Batches).encoders[2] is first
