"""Record batches that every parser must agree on: right ones of every kind, and every way to lie.

A case says what Kafka's contract makes of the bytes as the records of one partition in a Produce request
(`answer`), which layer finds the fault, and, where the records can be read, what they are:

    fault ""          nothing is wrong
    fault "policy"    readable, but nothing that a client may append
    fault "framing"   not exactly one whole batch of format 2
    fault "checksum"  the sum or a field under it is wrong in a way that a reader of records need not see
    fault "codec"     the records do not decompress
    fault "records"   the records do not parse, or are not as many as stated

A parser of records must read the first two to exactly `records` and refuse "codec" and "records". `kafka` is
what Apache Kafka 4.3.1 answered to the very bytes; where it differs from `answer`, `why` says why we do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from struct import pack
from typing import NamedTuple

from headwater.wire import batch, compression
from headwater.wire.crc import crc32c
from headwater.wire.errors import ErrorCode
from headwater.wire.records import Record, encode

T = 1_700_000_000_000  # the timestamp of most records
_FIELDS = (
    *("base_offset", "batch_length", "partition_leader_epoch", "magic", "crc", "attributes"),
    *("last_offset_delta", "base_timestamp", "max_timestamp", "producer_id", "producer_epoch"),
    *("base_sequence", "record_count"),
)

OK = ErrorCode.NONE
CORRUPT = ErrorCode.CORRUPT_MESSAGE
INVALID = ErrorCode.INVALID_RECORD
TOO_LARGE = ErrorCode.MESSAGE_TOO_LARGE
UNKNOWN = ErrorCode.UNKNOWN_SERVER_ERROR
DENIED = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


class BatchCase(NamedTuple):
    name: str
    data: bytes
    answer: ErrorCode
    records: list[Record] | None
    fault: str = ""
    kafka: ErrorCode = OK
    why: str = ""


def sealed(data: bytes | bytearray, **fields: int) -> bytes:
    """A batch with some header fields replaced and the checksum made right again."""
    header = batch.parse_header(data)
    values = [fields.get(name, getattr(header, name)) for name in _FIELDS]
    out = bytearray(pack(">qiibIhiqqqhii", *values) + bytes(data[batch.HEADER_BYTES :]))
    if "crc" not in fields:
        out[17:21] = pack(">I", crc32c(memoryview(out)[21:]))
    return bytes(out)


def around(body: bytes, count: int, codec: int = 0, **fields: int) -> bytes:
    """A batch with the given bytes where its records belong."""
    empty = batch.build([], now_ms=T)
    fields = {"record_count": count, "last_offset_delta": count - 1, "attributes": codec, **fields}
    return sealed(bytes(empty) + body, batch_length=49 + len(body), **fields)


def varint(value: int, pad_to: int = 0) -> bytes:
    """`value` (already zigzag) as a varint, made longer than needed by `pad_to`."""
    out = bytearray()
    while value > 127 or len(out) + 1 < pad_to:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _numbered(records: Iterable[Record]) -> list[Record]:
    return [record._replace(offset=index) for index, record in enumerate(records)]


_MANY = _numbered(
    Record(0, T + (i * 37) % 100 - 50, b"key-%d" % i, b"value-%d" % i * (i % 9)) for i in range(300)
)
_ODD = _numbered(
    [
        Record(0, T, None, None),
        Record(0, T, b"", b""),
        Record(0, T + 2**36, b"k" * 70, b"v" * 20000),
        Record(
            0,
            T - 2**36,
            b"k" * 9000,
            None,
            [("trace", b"1"), ("", None), ("trace", b""), ("\u00fc", b"v" * 200)],
        ),
        Record(0, 0, None, b"v" * 63),
        Record(0, -1, None, b"v" * 64, [(f"h{i}", b"x") for i in range(100)]),
        Record(0, T, b"not utf-8 in a header name", None, [("\udcff", b"")]),
    ]
)
_PLAIN = [Record(0, T, b"k", b"v")]
_TWO = _numbered([Record(0, T, b"k", b"v"), Record(0, T + 1, b"l", b"w")])


def _valid() -> list[BatchCase]:
    cases = [BatchCase("one record", bytes(batch.build(_PLAIN)), OK, _PLAIN)]
    for codec, name in enumerate(compression.NAMES):
        cases.append(BatchCase(f"300 records, {name}", bytes(batch.build(_MANY, codec=codec)), OK, _MANY))
        cases.append(BatchCase(f"odd records, {name}", bytes(batch.build(_ODD, codec=codec)), OK, _ODD))
    large = _numbered(Record(0, T + i, None, b"x" * (i % 3)) for i in range(20_000))
    cases.append(BatchCase("20,000 records", bytes(batch.build(large)), OK, large))
    two = bytes(batch.build(_TWO))
    body = two[batch.HEADER_BYTES :]
    producer = batch.build(_TWO, producer_id=7, producer_epoch=0, base_sequence=2**31 - 1)
    wide = _wide_record(0)
    cases += [
        BatchCase("varints longer than needed", around(wide, 1), OK, [Record(0, T, b"k", b"v")]),
        BatchCase(
            "record attributes set", around(body[:1] + b"\xff" + body[2:], 2, max_timestamp=T + 1), OK, _TWO
        ),
        BatchCase("unused batch attributes set", sealed(two, attributes=0x7F00), OK, _TWO),
        BatchCase("delete horizon set", sealed(two, attributes=0x40), OK, _TWO),
        BatchCase("a leader epoch of the client's", sealed(two, partition_leader_epoch=7), OK, _TWO),
        BatchCase("idempotent, the sequence wraps", bytes(producer), OK, _TWO),
        BatchCase("max timestamp too small", sealed(two, max_timestamp=T), OK, _TWO),
        BatchCase("max timestamp too large", sealed(two, max_timestamp=T + 99), OK, _TWO),
        BatchCase(
            "snappy without framing",
            around(_raw_snappy(body), 2, compression.SNAPPY, max_timestamp=T + 1),
            OK,
            _TWO,
        ),
        BatchCase("gzip of two members", _two_parts(body, compression.GZIP), OK, _TWO),
        BatchCase("zstd of two frames", _two_parts(body, compression.ZSTD), OK, _TWO),
    ]
    return cases


def _policy() -> list[BatchCase]:
    two = bytes(batch.build(_TWO))
    marker = sealed(batch.end_marker(True, 5, 1, 3, T), attributes=0x20, producer_id=-1)
    marked = [Record(0, T, b"\0\0\0\1", b"\0\0\0\0\0\3")]
    moved = [record._replace(offset=record.offset + 5) for record in _TWO]
    denied = "the request names no transactional id; where it does, Kafka lets the batch pass"
    stamped = [record._replace(timestamp=T + 5) for record in _TWO]
    return [
        BatchCase("control batch", marker, INVALID, marked, "policy", INVALID),
        BatchCase("base offset 5", sealed(two, base_offset=5), INVALID, moved, "policy", INVALID),
        BatchCase(
            "last offset delta too large", sealed(two, last_offset_delta=2), INVALID, _TWO, "policy", INVALID
        ),
        BatchCase(
            "last offset delta too small", sealed(two, last_offset_delta=0), INVALID, _TWO, "policy", INVALID
        ),
        BatchCase(
            "last offset delta -1", sealed(two, last_offset_delta=-1), INVALID, _TWO, "policy", INVALID
        ),
        BatchCase(
            "last offset delta -2", sealed(two, last_offset_delta=-2), INVALID, _TWO, "policy", INVALID
        ),
        BatchCase("no record", around(b"", 0), INVALID, [], "policy", INVALID),
        BatchCase("producer id, no sequence", sealed(two, producer_id=7), INVALID, _TWO, "policy", INVALID),
        BatchCase(
            "transactional, no producer id",
            sealed(two, attributes=0x10),
            INVALID,
            _TWO,
            "policy",
            DENIED,
            denied,
        ),
        BatchCase(
            "timestamp type LogAppendTime", sealed(two, attributes=8, max_timestamp=T + 5), OK, stamped
        ),
    ]


def _offsets() -> list[BatchCase]:
    """Offset deltas that are not 0, 1: readable, but two records of the log would claim one offset, or none."""
    cases = []
    for first, second in ((0, 0), (1, 2), (1, 0), (0, 2)):
        records = [_TWO[0]._replace(offset=first), _TWO[1]._replace(offset=second)]
        for codec, kafka in ((compression.NONE, OK), (compression.GZIP, UNKNOWN)):
            body = compression.compress(codec, _two_records(first, second))
            name = f"offset deltas {first}, {second}, {compression.NAMES[codec]}"
            data = around(body, 2, codec, max_timestamp=T + 1)
            cases.append(BatchCase(name, data, INVALID, records, "policy", kafka, _REASONS[kafka]))
    return cases


def _framing() -> list[BatchCase]:
    two = bytes(batch.build(_TWO))
    bug = "Kafka adds 12 to the length and gets a negative number"
    cut = "Kafka cuts off what is no whole batch; nothing that follows is ours to guess at"
    cases = [
        BatchCase("empty", b"", INVALID, None, "framing", INVALID),
        BatchCase("two batches", two + two, INVALID, None, "framing", INVALID),
        BatchCase("one byte follows", two + b"\0", INVALID, None, "framing", OK, cut),
        BatchCase("half a batch follows", two + two[:40], INVALID, None, "framing", OK, cut),
        BatchCase("length -1", sealed(two, batch_length=-1), CORRUPT, None, "framing", CORRUPT),
        BatchCase("length -2^31", sealed(two, batch_length=-(2**31)), CORRUPT, None, "framing", CORRUPT),
        BatchCase("length 13", sealed(two, batch_length=13), CORRUPT, None, "framing", CORRUPT),
        BatchCase("length 48", sealed(two, batch_length=48), CORRUPT, None, "framing", CORRUPT),
        BatchCase(
            "length 2^31-1", sealed(two, batch_length=2**31 - 1), INVALID, None, "framing", UNKNOWN, bug
        ),
        BatchCase(
            "length one too many", sealed(two, batch_length=len(two) - 11), INVALID, None, "framing", INVALID
        ),
        BatchCase(
            "length one too few", sealed(two, batch_length=len(two) - 13), CORRUPT, None, "framing", CORRUPT
        ),
    ]
    for end in (1, 11, 12, 16, 17, 20, 60):
        cases.append(BatchCase(f"the first {end} bytes", two[:end], INVALID, None, "framing", INVALID))
    for magic, answer in (
        (0, INVALID),
        (1, INVALID),
        (3, CORRUPT),
        (127, CORRUPT),
        (-1, CORRUPT),
        (-128, CORRUPT),
    ):
        cases.append(BatchCase(f"magic {magic}", sealed(two, magic=magic), answer, None, "framing", answer))
    return cases


def _checksum() -> list[BatchCase]:
    two = bytes(batch.build(_TWO))
    cases = [BatchCase("checksum 0", sealed(two, crc=0), CORRUPT, None, "checksum", CORRUPT)]
    for at in (21, 26, 34, 42, 50, 52, 56, 60, 61, len(two) - 1):
        flipped = bytearray(two)
        flipped[at] ^= 1
        cases.append(BatchCase(f"byte {at} changed", bytes(flipped), CORRUPT, None, "checksum", CORRUPT))
    return cases


def _records() -> list[BatchCase]:
    """Uncompressed and compressed: Kafka reads the one closely and the other hardly at all."""
    cases = []
    for name, body, count, kafka, squeezed in _bad_bodies():
        cases.append(BatchCase(name, around(body, count), INVALID, None, "records", kafka, _REASONS[kafka]))
        if body:
            packed = around(compression.compress(compression.GZIP, body), count, compression.GZIP)
            case = BatchCase(f"{name}, gzip", packed, INVALID, None, "records", squeezed, _REASONS[squeezed])
            cases.append(case)
    return cases


_REASONS = {
    INVALID: "",
    OK: "Kafka does not look, and other clients cannot read it or get offsets that are not the record's",
    UNKNOWN: "Kafka stumbles",
}


def _bad_bodies() -> list[tuple[str, bytes, int, ErrorCode, ErrorCode]]:
    """(name, records, count, Kafka's answer to them plain, Kafka's answer to them compressed)."""
    two = bytes(batch.build(_TWO))[batch.HEADER_BYTES :]
    one = two[: len(two) // 2]
    fields = b"\0\0\0\2k\2v"  # attributes, deltas, key, value; then the headers
    huge = 2**32 - 2  # zigzag for 2^31 - 1
    return [
        ("one record missing", one, 2, INVALID, INVALID),
        ("no byte of a record", b"", 1, INVALID, INVALID),
        ("one record too many", two, 1, INVALID, INVALID),
        ("a byte follows", two + b"\0", 2, INVALID, INVALID),
        ("count 2^31-1", two, 2**31 - 1, INVALID, INVALID),
        ("last byte cut off", two[:-1], 2, INVALID, INVALID),
        ("record length 0", b"\0" + one, 2, INVALID, INVALID),
        ("record length -1", b"\1" + one[1:], 1, INVALID, OK),
        ("record length too small", varint((len(one) - 2) << 1) + one[1:], 1, INVALID, OK),
        ("record length too large", varint(len(one) << 1) + one[1:] + b"\0", 1, INVALID, INVALID),
        ("record length 2^31-1", varint(huge) + one[1:], 1, INVALID, OK),
        ("record length of 6 bytes", varint(0, 6) + one[1:], 1, UNKNOWN, INVALID),
        ("record length beyond 32 bits", b"\x92\x80\x80\x80\x10" + one[1:], 1, INVALID, OK),
        ("timestamp delta of 11 bytes", _body(b"\0" + varint(0, 11) + b"\0\2k\2v\0"), 1, INVALID, INVALID),
        ("timestamp delta beyond 64 bits", _body(b"\0" + b"\x80" * 9 + b"\2\0\2k\2v\0"), 1, OK, OK),
        ("offset delta of 6 bytes", _body(b"\0\0" + varint(0, 6) + b"\2k\2v\0"), 1, INVALID, INVALID),
        ("offset delta -1", _two_records(0, -1), 2, OK, UNKNOWN),
        ("key length -2", _body(b"\0\0\0\3\2v\0"), 1, OK, OK),
        ("key length too large", _body(b"\0\0\0\x20k\2v\0"), 1, INVALID, INVALID),
        ("key length 2^31-1", _body(b"\0\0\0" + varint(huge) + b"k\2v\0"), 1, INVALID, INVALID),
        ("value length -2", _body(b"\0\0\0\2k\3\0"), 1, OK, OK),
        ("value length too large", _body(b"\0\0\0\2k\x20v\0"), 1, INVALID, INVALID),
        ("value length one too large", _body(b"\0\0\0\2k\4v\0"), 1, INVALID, INVALID),
        ("no header count", _body(fields), 1, INVALID, INVALID),
        ("header count -1", _body(fields + b"\1"), 1, INVALID, INVALID),
        ("header count too large", _body(fields + b"\4\2h\2x"), 1, INVALID, INVALID),
        ("header count too small", _body(fields + b"\2\2h\2x\2i\2y"), 1, INVALID, INVALID),
        ("header count 2^31-1", _body(fields + varint(huge)), 1, INVALID, INVALID),
        ("header key length -1", _body(fields + b"\2\1\2x"), 1, INVALID, INVALID),
        ("header key length too large", _body(fields + b"\2\x20h\2x"), 1, INVALID, INVALID),
        ("header value length -2", _body(fields + b"\2\2h\3"), 1, OK, OK),
        ("header value length too large", _body(fields + b"\2\2h\x20x"), 1, INVALID, INVALID),
        ("a byte after the headers", _body(fields + b"\0\0"), 1, INVALID, INVALID),
    ]


def _codec() -> list[BatchCase]:
    body = bytes(batch.build(_MANY))[batch.HEADER_BYTES :]
    count = len(_MANY)
    cases = []
    for codec in (5, 6, 7):
        data = around(body, count, codec)
        cases.append(BatchCase(f"unknown codec {codec}", data, UNKNOWN, None, "codec", UNKNOWN))
    for codec in (1, 2, 3, 4):
        name = compression.NAMES[codec]
        packed = compression.compress(codec, body)
        middle = bytearray(packed)
        middle[len(packed) // 2] ^= 0xFF
        contents = {
            "plain records": body,
            "nothing": b"",
            "cut off": packed[: len(packed) // 2],
            "a changed byte": bytes(middle),
            "bytes after the end": packed + b"garbage!",
        }
        for what, content in contents.items():
            kafka, why = _CODEC_ANSWERS.get(f"{name}: {what}", (UNKNOWN, ""))
            # snappy has no checksum: a changed byte may decompress, to records that do not parse.
            parses = (codec, what) != (2, "a changed byte")
            answer, fault = (UNKNOWN, "codec") if parses else (INVALID, "records")
            cases.append(
                BatchCase(f"{name}: {what}", around(content, count, codec), answer, None, fault, kafka, why)
            )
    linked = around(_lz4_linked(body), count, compression.LZ4)
    cases.append(BatchCase("lz4: linked blocks", linked, UNKNOWN, None, "codec", UNKNOWN))
    return cases


_LATER = "Kafka gets as far as the records before it notices"
_UNREAD = "Kafka stops reading after the last record; other clients read on and fail"
_CODEC_ANSWERS = {
    "gzip: a changed byte": (INVALID, _LATER),
    "gzip: bytes after the end": (OK, _UNREAD),
    "snappy: a changed byte": (INVALID, ""),
    "lz4: bytes after the end": (OK, _UNREAD),
    "zstd: nothing": (INVALID, _LATER),
}


def _body(fields: bytes) -> bytes:
    return varint(len(fields) << 1) + fields


def _two_records(first: int, second: int) -> bytes:
    return encode(first, 0, b"k", b"v", None) + encode(second, 1, b"l", b"w", None)


def _wide_record(offset: int) -> bytes:
    wide = [varint(0, 10), varint(offset << 1, 5), varint(2, 5) + b"k", varint(2, 5) + b"v", varint(0, 5)]
    fields = b"\0" + b"".join(wide)
    return varint(len(fields) << 1, 5) + fields


def _raw_snappy(body: bytes) -> bytes:
    import cramjam

    return bytes(cramjam.snappy.compress_raw(body))


def _lz4_linked(body: bytes) -> bytes:
    import cramjam

    compressor = cramjam.lz4.Compressor(content_checksum=False, block_linked=True)
    compressor.compress(body)
    return bytes(compressor.finish())


def _two_parts(body: bytes, codec: int) -> bytes:
    half = len(body) // 2
    parts = compression.compress(codec, body[:half]) + compression.compress(codec, body[half:])
    return around(parts, 2, codec, max_timestamp=T + 1)


_FAMILIES: tuple[Callable[[], list[BatchCase]], ...] = (
    *(_valid, _policy, _offsets, _framing, _checksum, _records, _codec),
)


def cases() -> list[BatchCase]:
    """All of them, in the same order each time; names are unique."""
    return [case for family in _FAMILIES for case in family()]
