"""Offsets, reads, look-ups and limits of one partition, from memory and from files alike."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headwater.log import Log, LogSettings, Partition, ReadJob, TimeAnswer
from headwater.log.topic_config import TOPIC_CONFIGS, parse
from headwater.testing.clock import ManualClock
from headwater.testing.faulty_disk import FaultyDisk
from headwater.wire import batch as record_batch
from headwater.wire.errors import ErrorCode, KafkaError
from tests.log.workload import ROOT, open_log, take

START_MS = 1_000_000


def append(partition: Partition, count: int = 1, *, now_ms: int = START_MS, size: int = 50) -> int:
    built = memoryview(record_batch.build([(b"k", b"v" * size)] * count, now_ms=now_ms))
    return partition.append(built, record_batch.parse_header(built)).base_offset


def offsets(read: object) -> list[tuple[int, int]]:
    joined = b"".join(take(read).pieces)
    return [(header.base_offset, header.last_offset) for _, header in record_batch.headers(joined)]


def in_memory(log: Log) -> Partition:
    return log.topics["t"].partitions[0]


def in_files(log: Log) -> Partition:
    in_memory(log).tail.clear()
    return in_memory(log)


def in_files_not_cached(log: Log) -> Partition:
    log.disk.nowait = False  # type: ignore[attr-defined]
    return in_files(log)


def after_restart(log: Log) -> Partition:
    log.close()
    return open_log(log.disk, log.clock).topics["t"].partitions[0]  # type: ignore[arg-type]


def after_power_cut(log: Log) -> Partition:
    return open_log(log.disk.crash_image(2)).topics["t"].partitions[0]  # type: ignore[attr-defined]


EVERY_WAY = pytest.mark.parametrize(
    "way", [in_memory, in_files, in_files_not_cached, after_restart, after_power_cut]
)
Way = Callable[[Log], Partition]


def filled() -> Log:
    """t-0: batches of 3 records at 0, 3, … 57, over several segments, 10 ms apart."""
    log = open_log(FaultyDisk(), settings=LogSettings(first_journal_bytes=65536, journal_file_bytes=65536))
    config = {"internal.segment.bytes": "1000", "index.interval.bytes": "150", "retention.ms": "-1"}
    partition = log.create_topic("t", 1, config).partitions[0]
    for number in range(20):
        append(partition, 3, now_ms=START_MS + 10 * number)
    log.commit()
    assert len(partition.segments) > 3
    return log


@EVERY_WAY
def test_a_read_inside_a_batch_returns_the_whole_batch(way: Way) -> None:
    partition = way(filled())
    for offset in range(60):
        found = offsets(partition.read(offset, 1, 10**9))
        assert found == [(offset // 3 * 3, offset // 3 * 3 + 2)]


@EVERY_WAY
def test_reads_go_on_to_the_end_and_stop_at_limits(way: Way) -> None:
    partition = way(filled())
    offset, seen = 0, []
    while found := offsets(partition.read(offset, 600, 10**9)):
        seen += found
        offset = found[-1][1] + 1
    assert seen == [(base, base + 2) for base in range(0, 60, 3)]
    assert offsets(partition.read(60, 1000, 10**9)) == []
    assert offsets(partition.read(0, 10**6, 6)) == [(0, 2), (3, 5)]
    assert offsets(partition.read(6, 10**6, 6)) == []
    for wrong in (-1, 61):
        with pytest.raises(KafkaError) as caught:
            partition.read(wrong, 1000, 10**9)
        assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_nothing_above_the_high_watermark_is_read() -> None:
    log = filled()
    partition = in_memory(log)
    append(partition)
    assert (partition.high_watermark, partition.log_end_offset) == (60, 61)
    assert offsets(partition.read(57, 10**6, 10**9)) == [(57, 59)]
    assert offsets(partition.read(60, 10**6, 10**9)) == []
    log.commit()
    assert offsets(partition.read(60, 10**6, 10**9)) == [(60, 60)]


@EVERY_WAY
def test_offsets_by_time(way: Way) -> None:
    partition = way(filled())
    epoch = 0
    for number in range(20):
        for early in (0, 4):
            answer = take(partition.offset_by_time(START_MS + 10 * number - early, 10**9))
            assert answer == TimeAnswer(START_MS + 10 * number, 3 * number, epoch)
    assert take(partition.offset_by_time(START_MS + 191, 10**9)) is None
    assert take(partition.offset_by_time(START_MS + 100, 30)) is None, "the answer would be above the limit"
    assert take(partition.max_timestamp(10**9)) == TimeAnswer(START_MS + 190, 57, epoch)
    partition.delete_records(31)
    assert take(partition.offset_by_time(0, 10**9)) == TimeAnswer(START_MS + 100, 31, epoch)


@EVERY_WAY
def test_delete_records_moves_the_start_for_good(way: Way) -> None:
    log = filled()
    partition = in_memory(log)
    with pytest.raises(KafkaError) as caught:
        partition.delete_records(61)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert partition.delete_records(31) == 31
    assert partition.delete_records(5) == 31
    log.commit()
    partition = way(log)
    with pytest.raises(KafkaError):
        partition.read(30, 1000, 10**9)
    assert offsets(partition.read(31, 1, 10**9)) == [(30, 32)]
    assert partition.bases[0] <= 30 < partition.bases[1]
    assert next(record_batch.headers(next(partition.batches())))[1].base_offset == 30
    assert partition.delete_records(-1) == 60
    assert offsets(partition.read(60, 1000, 10**9)) == []


def test_log_append_time_is_stamped_and_told() -> None:
    clock = ManualClock(START_MS)
    log = open_log(FaultyDisk(), clock)
    partition = log.create_topic("t", 1, {"message.timestamp.type": "LogAppendTime"}).partitions[0]
    built = memoryview(record_batch.build([(b"k", b"v")], now_ms=5))
    assert partition.append(built, record_batch.parse_header(built)).log_append_time_ms == START_MS
    log.commit()
    (record,) = record_batch.records(bytes(built))
    assert record.timestamp == START_MS
    assert take(partition.offset_by_time(START_MS, 10**9)).timestamp == START_MS


def test_memory_keeps_the_newest_batches_and_only_lets_go_what_is_in_files() -> None:
    log = open_log(FaultyDisk())
    partition = log.create_topic("t", 1, {}).partitions[0]
    for _ in range(100):
        append(partition)
    assert partition.tail.start() == 0 and log.unwritten_bytes > 0
    log.commit()
    assert partition.tail.start() > 50 and log.unwritten_bytes == 0
    assert len(offsets(partition.read(0, 10**6, 10**9))) == 100
    assert sum(len(view) for view in partition.tail.views) <= 3 * 1024 + 200


def test_deleted_and_made_again_it_is_another_topic() -> None:
    disk = FaultyDisk()
    log = open_log(disk)
    first = log.create_topic("t", 2, {})
    append(first.partitions[0])
    log.commit()
    log.delete_topic(first)
    second = log.create_topic("t", 1, {})
    assert second.topic_id != first.topic_id and log.topic_by_id(first.topic_id) is None
    with pytest.raises(KafkaError) as caught:
        append(first.partitions[0])
    assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert append(second.partitions[0]) == 0
    log.commit()
    again = open_log(disk.crash_image(4))
    assert again.topics["t"].topic_id == second.topic_id
    assert [p.log_end_offset for p in again.topics["t"].partitions] == [1]
    assert not [path for path in disk.files(f"{ROOT}/log") if "-delete" in path]


def test_callbacks_run_in_order_once_everything_before_them_is_durable() -> None:
    log = open_log(FaultyDisk())
    heard: list[str] = []
    log.when_durable(lambda: heard.append("at once"))
    topic = log.create_topic("t", 1, {})
    log.when_durable(lambda: heard.append("topic"))
    log.on_advance = lambda partition: heard.append(f"advance {partition.high_watermark}")
    append(topic.partitions[0])
    log.when_durable(lambda: heard.append(f"batch {topic.partitions[0].high_watermark}"))
    assert heard == ["at once"]
    log.commit()
    assert heard == ["at once", "topic", "batch 1", "advance 1"]


@pytest.mark.parametrize("settings", [{"retention.ms": "1000"}, {"retention.bytes": "1500"}])
def test_retention_removes_whole_old_segments(settings: dict[str, str]) -> None:
    clock = ManualClock(START_MS)
    disk = FaultyDisk()
    log = open_log(disk, clock)
    partition = log.create_topic("t", 1, {"internal.segment.bytes": "1000", **settings}).partitions[0]
    for number in range(40):
        append(partition, now_ms=START_MS + 50 * number)
    log.commit()
    clock.advance(2000)
    log.tick()
    log.commit()
    start = partition.log_start_offset
    assert 0 < start < 40 and start == partition.bases[0]
    assert f"{ROOT}/log/t-0/{0:020d}.log" not in disk.files()
    assert open_log(disk.crash_image(1)).topics["t"].partitions[0].log_start_offset == start
    clock.advance(100_000)
    log.tick()
    log.commit()
    if "retention.ms" in settings:
        assert (partition.log_start_offset, partition.log_end_offset) == (40, 40)
        assert append(partition, now_ms=clock.wall_ms()) == 40
    assert open_log(disk.crash_image(1)).topics["t"].partitions[0].log_end_offset == 40


def test_retention_does_nothing_while_the_wall_clock_cannot_be_believed() -> None:
    clock = ManualClock(START_MS)
    log = open_log(FaultyDisk(), clock)
    partition = log.create_topic("t", 1, {"retention.ms": "1000"}).partitions[0]
    append(partition)
    log.commit()
    clock.jump(365 * 86_400_000)
    for _ in range(5):
        clock.advance(1000)
        log.tick()
    assert partition.log_start_offset == 0 and "jumped" in log.retention.held
    clock.jump(-365 * 86_400_000 + 3)
    log.tick()
    log.commit()
    assert partition.log_start_offset == 1 and not log.retention.held


def test_a_clock_that_stays_where_it_was_set_is_believed_after_a_day() -> None:
    clock = ManualClock(START_MS)
    log = open_log(FaultyDisk(), clock)
    partition = log.create_topic("t", 1, {"retention.ms": "1000"}).partitions[0]
    append(partition)
    log.commit()
    clock.jump(48 * 3_600_000)
    for _ in range(26):
        log.tick()
        assert partition.log_start_offset == 0 or clock.monotonic_ms() > 24 * 3_600_000
        clock.advance(3_600_000)
    log.tick()
    assert partition.log_start_offset == 1


def test_silent_producers_are_forgotten() -> None:
    clock = ManualClock(START_MS)
    log = open_log(FaultyDisk(), clock)
    partition = log.create_topic("t", 1, {"retention.ms": "-1"}).partitions[0]
    partition.append_records([(b"k", b"v")], producer_id=1, producer_epoch=0)
    partition.append_records([(b"k", b"v")], producer_id=2, producer_epoch=0, transactional=True)
    log.commit()
    for _ in range(25):
        clock.advance(3_600_000)
        log.tick()
    assert list(partition.producers.entries) == [2]


def test_a_read_of_a_file_that_retention_removed_meanwhile_is_out_of_range() -> None:
    log = filled()
    partition = in_files_not_cached(log)
    job = partition.read(0, 100, 10**9)
    assert isinstance(job, ReadJob)
    partition.delete_records(40)
    log.commit()
    with pytest.raises(KafkaError) as caught:
        job.run()
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("retention.ms", "-2"), ("retention.ms", "soon"), ("segment.bytes", "1000"), ("cleanup.policy", "shred"),
        ("message.timestamp.type", "createtime"), ("preallocate", "maybe"), ("min.cleanable.dirty.ratio", "1.5"),
        ("no.such.setting", "1"), ("compression.gzip.level", "0"), ("max.message.bytes", "99999999999"),
        ("remote.storage.enable", "true"),
    ],
)  # fmt: skip
def test_a_setting_that_makes_no_sense_is_refused(name: str, text: str) -> None:
    with pytest.raises(KafkaError) as caught:
        parse({name: text})
    assert caught.value.code == ErrorCode.INVALID_CONFIG


def test_every_default_of_the_table_is_valid_and_settings_are_typed() -> None:
    settings = parse({})
    assert set(settings.values) == set(TOPIC_CONFIGS)
    assert settings.delete and not settings.compact and settings.segment_bytes == 1 << 30
    changed = parse({"cleanup.policy": "compact,delete", "retention.ms": "5"}, {"retention.bytes": "7"})
    assert changed.compact and changed.delete and changed.retention_ms == 5 and changed.retention_bytes == 7
