"""Record batches: every case of the shared table against check() and the reader, stamping, and building."""

from __future__ import annotations

import struct

import pytest

from headwater.testing import batches
from headwater.testing.batches import T, around, sealed
from headwater.wire import batch
from headwater.wire.crc import crc32c
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.records import Malformed, Record, encode

CASES = batches.cases()
LIMIT = 1024 * 1024
HOUR = 3_600_000


def by_name(case: batches.BatchCase) -> str:
    return case.name


def writable(data: bytes | bytearray) -> memoryview:
    return memoryview(bytearray(data))


def refusal(data: bytes | bytearray, **settings: object) -> KafkaError:
    with pytest.raises(KafkaError) as caught:
        batch.check(writable(data), **{"max_bytes": LIMIT, **settings})  # type: ignore[arg-type]
    return caught.value


def two_records() -> bytes:
    return bytes(batch.build([Record(0, T, b"k", b"v"), Record(1, T + 1, b"l", b"w")]))


def test_names_of_cases_are_unique() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names) > 150


def test_a_case_that_differs_from_kafka_says_why() -> None:
    for case in CASES:
        assert bool(case.why) == (case.kafka != case.answer), case.name


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_check_gives_every_case_its_answer(case: batches.BatchCase) -> None:
    view = writable(case.data)
    if case.answer is not ErrorCode.NONE:
        with pytest.raises(KafkaError) as caught:
            batch.check(view, max_bytes=LIMIT)
        assert caught.value.code is case.answer, caught.value
        return
    header = batch.check(view, max_bytes=LIMIT)
    assert case.records is not None
    assert (header.size, header.record_count) == (len(view), len(case.records))
    # What check() accepted, it has put in order: the sum holds and the max timestamp is the greatest.
    assert batch.is_intact(view, batch.parse_header(view))
    assert header.max_timestamp == max(record.timestamp for record in batch.records(view))


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_the_reader_reads_what_can_be_read_and_nothing_else(case: batches.BatchCase) -> None:
    if case.fault in ("", "policy"):
        assert list(batch.records(case.data)) == case.records
    elif case.fault in ("records", "codec"):
        with pytest.raises(Malformed):
            list(batch.records(case.data))


def test_headers_stops_at_the_first_batch_that_is_not_whole() -> None:
    first, second = two_records(), sealed(two_records(), base_offset=2)
    stream = first + second + first[:-1]
    found = [(position, header.base_offset, header.next_offset) for position, header in batch.headers(stream)]
    assert found == [(0, 0, 2), (len(first), 2, 4)]
    assert [record.offset for record in batch.records(stream)] == [0, 1, 2, 3]
    assert list(batch.headers(b"")) == []
    assert list(batch.headers(sealed(first, batch_length=-12) + first)) == []


def test_header_has_every_field_and_what_follows_from_them() -> None:
    values = (5, 49, 3, 2, 9, 0x34, 7, T, T + 1, 11, 4, 2**31 - 3, 8)
    header = batch.parse_header(b"xx" + struct.pack(">qiibIhiqqqhii", *values), 2)
    assert tuple(getattr(header, name) for name in header.__slots__) == values
    assert (header.size, header.codec, header.last_offset, header.next_offset) == (61, 4, 12, 13)
    assert (header.is_transactional, header.is_control, header.is_log_append_time) == (True, True, False)
    assert header.last_sequence == 4  # 2^31 - 3, ... - 1, then 0
    assert "base_offset=5" in repr(header)


def test_a_batch_without_sequence_has_no_last_sequence() -> None:
    assert batch.parse_header(two_records()).last_sequence == -1


def test_a_batch_of_the_largest_size_is_accepted_and_one_byte_more_is_not() -> None:
    data = two_records()
    assert batch.check(writable(data), max_bytes=len(data)).size == len(data)
    assert refusal(data, max_bytes=len(data) - 1).code is ErrorCode.MESSAGE_TOO_LARGE


def test_of_two_faults_kafka_s_first_is_named() -> None:
    data = two_records()
    assert refusal(sealed(data, crc=5), max_bytes=70).code is ErrorCode.MESSAGE_TOO_LARGE
    assert refusal(sealed(data, base_offset=5), max_bytes=70).code is ErrorCode.INVALID_RECORD
    assert refusal(sealed(data, base_offset=5, crc=5)).code is ErrorCode.INVALID_RECORD
    assert refusal(sealed(data, record_count=5, crc=5)).code is ErrorCode.CORRUPT_MESSAGE


def test_a_record_without_a_key_is_refused_by_a_compacted_topic_with_its_index() -> None:
    for codec in range(5):
        records = [
            Record(0, T, b"k", b"v"),
            Record(1, T, None, b"v"),
            Record(2, T, b"", b"v"),
            Record(3, T, None, None),
        ]
        error = refusal(batch.build(records, codec=codec), compacted=True)
        assert isinstance(error, batch.InvalidRecords)
        assert error.code is ErrorCode.INVALID_RECORD
        assert [index for index, _ in error.record_errors] == [1, 3]
    batch.check(writable(batch.build([Record(0, T, b"", b"v")])), max_bytes=LIMIT, compacted=True)


def test_bad_records_are_named_up_to_a_limit() -> None:
    error = refusal(batch.build([(None, b"")] * (batch.RECORD_ERRORS_MAX + 5), now_ms=T), compacted=True)
    assert isinstance(error, batch.InvalidRecords)
    assert len(error.record_errors) == batch.RECORD_ERRORS_MAX


def test_a_timestamp_too_far_from_the_clock_is_refused_with_its_index() -> None:
    late = batch.build([Record(0, T, b"k", b"v"), Record(1, T + HOUR + 1, b"k", b"v")])
    error = refusal(late, now_ms=T, after_max_ms=HOUR)
    assert isinstance(error, batch.InvalidRecords)
    assert (error.code, [index for index, _ in error.record_errors]) == (ErrorCode.INVALID_TIMESTAMP, [1])
    early = batch.build([Record(0, T - HOUR - 1, b"k", b"v"), Record(1, T, b"k", b"v")])
    assert refusal(early, now_ms=T, before_max_ms=HOUR).code is ErrorCode.INVALID_TIMESTAMP
    for data in (late, early):
        settings = {"now_ms": T, "before_max_ms": HOUR + 1, "after_max_ms": HOUR + 1}
        batch.check(writable(data), max_bytes=LIMIT, **settings)  # type: ignore[arg-type]
        batch.check(
            writable(data), max_bytes=LIMIT, now_ms=T, before_max_ms=1, after_max_ms=1, log_append_time=True
        )


def test_a_record_without_timestamp_is_not_held_against_the_clock() -> None:
    data = batch.build([Record(0, -1, b"k", b"v"), Record(1, T, b"k", b"v")])
    assert batch.check(writable(data), max_bytes=LIMIT, now_ms=T, before_max_ms=HOUR).record_count == 2


def test_timestamps_that_do_not_fit_in_64_bits_are_refused() -> None:
    for base, delta in ((2**62, 2**62), (-5, -(2**63))):
        data = around(encode(0, delta, b"k", b"v", None), 1, base_timestamp=base)
        assert refusal(data).code is ErrorCode.INVALID_TIMESTAMP


def test_a_claim_of_log_append_time_is_held_to_its_time_and_then_cleared() -> None:
    data = sealed(two_records(), attributes=8, max_timestamp=T + HOUR + 1)
    assert refusal(data, now_ms=T, after_max_ms=HOUR).code is ErrorCode.INVALID_TIMESTAMP
    error = refusal(data, log_append_time=True)
    assert isinstance(error, batch.InvalidRecords)
    assert (error.code, len(error.record_errors)) == (ErrorCode.INVALID_TIMESTAMP, 2)
    view = writable(data)
    assert not batch.check(view, max_bytes=LIMIT).is_log_append_time
    assert [record.timestamp for record in batch.records(view)] == [T, T + 1]


def test_putting_a_max_timestamp_right_clears_the_attributes_that_nobody_knows() -> None:
    view = writable(sealed(two_records(), attributes=0x7F40, max_timestamp=T + 99))
    header = batch.check(view, max_bytes=LIMIT)
    stored = batch.parse_header(view)
    assert (
        (header.attributes, header.max_timestamp)
        == (stored.attributes, stored.max_timestamp)
        == (0x40, T + 1)
    )
    assert header.crc == stored.crc == crc32c(view[21:])


def test_a_right_batch_is_only_read() -> None:
    for case in CASES:
        if case.kafka is case.answer is ErrorCode.NONE and "timestamp" not in case.name:
            batch.check(memoryview(case.data), max_bytes=LIMIT)  # read-only: a write would raise


def test_stamp_writes_offset_and_epoch_and_leaves_the_sum_true() -> None:
    view = writable(two_records())
    before = bytes(view)
    batch.stamp(view, 2**40, 7)
    header = batch.parse_header(view)
    assert (header.base_offset, header.partition_leader_epoch, header.next_offset) == (2**40, 7, 2**40 + 2)
    assert batch.is_intact(view, header)
    assert (bytes(view[8:12]), bytes(view[16:])) == (before[8:12], before[16:])


@pytest.mark.parametrize("codec", range(5))
def test_log_append_time_is_the_time_of_every_record(codec: int) -> None:
    view = writable(batch.build([Record(0, T, b"k", b"v"), Record(1, T + 9, b"l", b"w")], codec=codec))
    batch.stamp_log_append_time(view, T + 5)
    header = batch.parse_header(view)
    assert (header.is_log_append_time, header.max_timestamp, header.base_timestamp) == (True, T + 5, T)
    assert batch.is_intact(view, header)
    assert [record.timestamp for record in batch.records(view)] == [T + 5, T + 5]
    assert batch.first_at_or_after(view, T + 5) == (T + 5, 0)
    assert batch.first_at_or_after(view, T + 6) is None
    assert batch.max_timestamp_record(view) == (T + 5, 0)


@pytest.mark.parametrize("codec", range(5))
def test_look_up_by_time_finds_the_first_record_that_is_not_older(codec: int) -> None:
    times = [T, T + 5, T + 3, T + 9, T + 9, T - 4]
    view = writable(
        batch.build([Record(0, time, None, b"v") for time in times], codec=codec, base_offset=100)
    )
    expected = {T - 9: 0, T: 0, T + 1: 1, T + 5: 1, T + 6: 3, T + 9: 3}
    for wanted, index in expected.items():
        assert batch.first_at_or_after(view, wanted) == (times[index], 100 + index)
    assert batch.first_at_or_after(view, T + 10) is None
    assert batch.first_at_or_after(view, -(2**63)) == (T, 100)
    assert batch.max_timestamp_record(view) == (T + 9, 103)


def test_an_empty_batch_as_compaction_leaves_it_has_no_times() -> None:
    view = writable(around(b"", 0, last_offset_delta=4, max_timestamp=T))
    assert batch.first_at_or_after(view, 0) is None
    assert batch.max_timestamp_record(view) is None
    assert list(batch.records(view)) == []
    assert [header.next_offset for _, header in batch.headers(view)] == [5]


def test_build_numbers_records_and_takes_every_setting() -> None:
    data = batch.build(
        [(b"k", b"v"), (None, None)],
        producer_id=7,
        producer_epoch=3,
        base_sequence=11,
        transactional=True,
        base_offset=40,
        leader_epoch=2,
        log_append_time=True,
        now_ms=T,
    )
    header = batch.parse_header(data)
    assert (header.base_offset, header.partition_leader_epoch, header.magic, header.attributes) == (
        40,
        2,
        2,
        0x18,
    )
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.last_sequence) == (
        7,
        3,
        11,
        12,
    )
    assert list(batch.records(data)) == [Record(40, T, b"k", b"v"), Record(41, T, None, None)]
    assert header.crc == crc32c(memoryview(data)[21:])


def test_a_marker_has_the_bytes_that_kafka_writes() -> None:
    commit = batch.end_marker(True, 5, 1, 3, T)
    assert commit[57:].hex() == "00000001" + "2000000008000000010c00000000000300"
    header = batch.parse_header(commit)
    assert (header.attributes, header.base_sequence, header.max_timestamp) == (0x30, -1, T)
    assert (batch.marker_type(commit), batch.marker_coordinator_epoch(commit)) == (batch.COMMIT, 3)
    abort = batch.end_marker(False, 5, 1, 4, T)
    assert (batch.marker_type(abort), batch.marker_coordinator_epoch(abort)) == (batch.ABORT, 4)
    assert batch.marker_type(two_records()) == -1
    assert batch.marker_coordinator_epoch(two_records()) == -1
