"""The record walkers: the C kernel and its Python twin do the same with every case, and that is right."""

from __future__ import annotations

import time
from types import ModuleType

import pytest

from headwater.testing import batches
from headwater.testing.batches import T, around, sealed, varint
from headwater.wire import batch, compression, records
from headwater.wire.records import Malformed, Record
from tests.wire.kernels import c_kernel

START = batch.HEADER_BYTES


@pytest.fixture(params=["Python", "C"])
def kernel(request: pytest.FixtureRequest) -> ModuleType:
    return c_kernel() if request.param == "C" else records


def readable_bodies() -> list[tuple[batches.BatchCase, bytes]]:
    """The records of every case, uncompressed."""
    found = []
    for case in batches.cases():
        if case.fault in ("", "policy", "records"):
            codec = case.data[22] & 7
            body = case.data[START:]
            found.append((case, bytes(compression.decompress(codec, body, 2**30)) if codec else body))
    return found


BODIES = readable_bodies()


def count_of(case: batches.BatchCase) -> int:
    return batch.parse_header(case.data).record_count


def test_every_case_is_walked_to_its_verdict(kernel: ModuleType) -> None:
    for case, body in BODIES:
        kind, index, position, *_ = kernel.walk(body, 0, count_of(case), False)
        if case.fault == "records":
            assert kind != records.OK, case.name
            assert position <= len(body), case.name
        else:
            assert (kind, index, position) == (records.OK, count_of(case), len(body)), case.name


def test_a_walk_finds_extremes_and_the_first_record_without_key(kernel: ModuleType) -> None:
    for case, body in BODIES:
        if case.fault == "records" or not case.records:
            continue
        base = batch.parse_header(case.data).base_timestamp
        plain = list(records.decode(body, 0, len(case.records), 0, base))
        times = [record.timestamp - base for record in plain]
        keyless = [index for index, record in enumerate(plain) if record.key is None]
        expected = (
            max(times),
            plain[times.index(max(times))].offset,
            min(times),
            keyless[0] if keyless else -1,
        )
        assert kernel.walk(body, 0, len(plain), False)[3:] == expected, case.name


WRONG = [
    ("the length is cut", b"", 1, (records.TRUNCATED, 0, 0)),
    ("a record is cut", b"\x12\0", 1, (records.TRUNCATED, 0, 0)),
    ("a length never ends", b"\x80" * 9, 1, (records.BAD_VARINT, 0, 0)),
    ("a negative length", b"\1\0", 1, (records.BAD_LENGTH, 0, 0)),
    ("no attributes", b"\0", 1, (records.BAD_LENGTH, 0, 0)),
    ("only attributes", b"\2\0", 1, (records.TRUNCATED, 0, 2)),
    ("a wrong offset delta", b"\x10\0\0\2\2k\2v\0", 1, (records.BAD_OFFSET_DELTA, 0, 3)),
    ("a key beyond the record", b"\x10\0\0\0\x0ek\2v\0", 1, (records.BAD_KEY_LENGTH, 0, 4)),
    ("a value beyond the record", b"\x10\0\0\0\2k\x06v\0", 1, (records.BAD_VALUE_LENGTH, 0, 6)),
    ("a header count beyond the record", b"\x10\0\0\0\2k\2v\2", 1, (records.BAD_HEADER_COUNT, 0, 8)),
    ("a header without key", b"\x14\0\0\0\2k\2v\2\1\0", 1, (records.BAD_HEADER_KEY_LENGTH, 0, 9)),
    ("a header value beyond", b"\x14\0\0\0\2k\2v\2\0\2", 1, (records.BAD_HEADER_VALUE_LENGTH, 0, 10)),
    ("the second is wrong", b"\x10\0\0\0\2k\2v\0\x10\0\0\0\2k\2v\0", 2, (records.BAD_OFFSET_DELTA, 1, 12)),
    ("bytes follow", b"\x10\0\0\0\2k\2v\0zz", 1, (records.TRAILING_BYTES, 1, 9)),
    ("no records but bytes", b"z", 0, (records.TRAILING_BYTES, 0, 0)),
]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: str(wrong[0]))
def test_an_error_names_what_where_and_in_which_record(
    kernel: ModuleType, wrong: tuple[str, bytes, int, tuple[int, int, int]]
) -> None:
    _, body, count, expected = wrong
    assert kernel.walk(body, 0, count, True) == (*expected, 0, -1, 0, -1)
    # The same behind other bytes, which are not looked at.
    kind, index, position = expected
    assert kernel.walk(b"\xff" * 7 + body, 7, count, True)[:3] == (kind, index, position + 7)
    if count:
        with pytest.raises(Malformed) as caught:
            kernel.first_at_or_after(body, 0, count + 1, 2**62)
        assert "at byte" in str(caught.value)


def test_any_buffer_is_walked_and_a_position_outside_is_refused(kernel: ModuleType) -> None:
    data = batch.build([(b"k", b"v")], now_ms=T)
    for buffer in (data, bytes(data), memoryview(data), memoryview(bytes(data))):
        assert kernel.walk(buffer, START, 1, True)[0] == records.OK
    for position in (-1, len(data) + 1):
        with pytest.raises(ValueError, match="outside the buffer"):
            kernel.walk(data, position, 1, True)
    assert kernel.walk(data, len(data), 0, True)[0] == records.OK


def test_numbers_at_the_edge_are_read_whole(kernel: ModuleType) -> None:
    for delta in (-(2**63), -(2**62), -1, 0, 1, 63, 64, 8191, 8192, 2**20, 2**27, 2**34, 2**62, 2**63 - 1):
        body = records.encode(0, delta, None, None, None)
        assert kernel.walk(body, 0, 1, True)[3:6] == (delta, 0, delta)
        assert kernel.first_at_or_after(body, 0, 1, delta) == (delta, 0)
    for offset in (0, 63, 64, 8191, 8192, 2**20, 2**27, 2**31 - 1):
        body = records.encode(offset, 0, b"", b"", None)
        assert kernel.walk(body, 0, 1, False)[4] == offset


def test_every_short_cut_length_is_walked(kernel: ModuleType) -> None:
    """Around the sizes where a varint grows: of the record, the key, the value and the offset delta."""
    sizes = [
        0,
        1,
        50,
        55,
        60,
        62,
        63,
        64,
        65,
        100,
        8180,
        8190,
        8191,
        8192,
        8193,
        2**20 - 10,
        2**20,
        2**20 + 1,
    ]
    body = b"".join(records.encode(i, i, b"k" * (n % 9000), b"v" * n, None) for i, n in enumerate(sizes))
    assert kernel.walk(body, 0, len(sizes), True)[:3] == (records.OK, len(sizes), len(body))
    count = 20_000
    body = b"".join(records.encode(i, -i, None, b"", None) for i in range(count))
    assert kernel.walk(body, 0, count, True) == (records.OK, count, len(body), 0, 0, 1 - count, 0)


def test_whole_batches_are_scanned_up_to_an_offset(kernel: ModuleType) -> None:
    one = bytes(batch.build([(b"k", b"v")] * 3, now_ms=T))
    size = len(one)
    log = b"".join(sealed(one, base_offset=10 + 3 * i) for i in range(4))
    for limit, end in ((10, 0), (11, 1), (13, 1), (14, 2), (22, 4), (2**62, 4)):
        assert kernel.scan_batches(log, limit) == end * size
    assert kernel.scan_batches(log[:-1], 2**62) == 3 * size
    assert kernel.scan_batches(log, 2**62, size) == 4 * size
    assert kernel.scan_batches(b"", 5) == 0
    assert kernel.scan_batches(one + one[:60], 2**62) == size
    for bad in (sealed(one, batch_length=-1), sealed(one, batch_length=48), sealed(one, magic=1)):
        assert kernel.scan_batches(one + bad + one, 2**62) == size
    with pytest.raises(ValueError, match="outside the buffer"):
        kernel.scan_batches(log, 5, len(log) + 1)


def test_encode_and_decode_are_inverse() -> None:
    for case in batches.cases():
        if case.fault == "" and case.records:
            again = batch.build(case.records)
            assert list(batch.records(again)) == case.records, case.name


@pytest.mark.parametrize("codec", range(5))
def test_another_client_reads_what_we_build_and_we_read_what_it_builds(codec: int) -> None:
    from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

    ours = [
        Record(i, T + i * 37 % 100, b"k%d" % i, b"v" * i, [("h", b"x"), ("n", None)]) for i in range(1, 200)
    ]
    ours = [Record(0, T, None, None), *ours]
    theirs = DefaultRecordBatch(batch.build(ours, codec=codec))
    assert theirs.validate_crc()
    assert [Record(r.offset, r.timestamp, r.key, r.value, r.headers) for r in theirs] == ours
    builder = DefaultRecordBatchBuilder(2, codec, False, -1, -1, -1, 2**20)
    for record in ours:
        builder.append(record.offset, record.timestamp, record.key, record.value, record.headers)
    built = builder.build()
    assert batch.check(memoryview(built), max_bytes=2**20).record_count == len(ours)
    assert list(batch.records(built)) == ours


def test_decode_refuses_a_record_too_many_and_a_byte_too_many() -> None:
    body = records.encode(0, 0, b"k", b"v", None)
    for wrong, count in ((body, 2), (body + b"\0", 1), (body[:-1], 1)):
        with pytest.raises(Malformed):
            list(records.decode(wrong, 0, count, 0, 0))


def test_the_twin_is_fast_enough_to_be_a_fallback() -> None:
    """2 M records/s are the aim; a noisy neighbour may take two thirds of the machine."""
    data = batch.build([(None, b"v" * 20)] * 1000, now_ms=T)
    best = 1e9
    for _ in range(20):
        start = time.perf_counter()
        records.walk(data, START, 1000, True)
        best = min(best, time.perf_counter() - start)
    assert 1000 / best > 600_000


def test_varints_of_the_case_builder_are_what_they_say() -> None:
    assert (varint(0), varint(300), varint(0, 3)) == (b"\0", b"\xac\x02", b"\x80\x80\0")
    assert list(batch.records(around(records.encode(0, 0, None, None, None), 1))) == [
        Record(0, T, None, None)
    ]
