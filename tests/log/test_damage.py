"""A byte changes where nothing should: it is found, named with file and place, nothing is deleted, the rest goes on."""

from __future__ import annotations

import random

import pytest

from headwater.log import Log, LogSettings, Partition
from headwater.testing.clock import ManualClock
from headwater.testing.faulty_disk import FaultyDisk
from headwater.wire import batch as record_batch
from headwater.wire.errors import ErrorCode, KafkaError
from tests.log.workload import ROOT, open_log, take

START_MS = 1_000_000
FOLDER = f"{ROOT}/log/t-0"


def filled(disk: FaultyDisk) -> Log:
    """Two topics; t-0 has several segments, indexes, aborted transactions; everything in files, stopped cleanly."""
    clock = ManualClock(START_MS)
    log = open_log(disk, clock)
    config = {"internal.segment.bytes": "2500", "index.interval.bytes": "200"}
    partition = log.create_topic("t", 1, config).partitions[0]
    other = log.create_topic("other", 1, {}).partitions[0]
    chance = random.Random(5)
    for number in range(30):
        clock.advance(10)
        value = chance.randbytes(120)
        built = memoryview(
            record_batch.build(
                [(b"k", value), (b"k", value)],
                now_ms=clock.wall_ms(),
                producer_id=9,
                producer_epoch=0,
                base_sequence=2 * number,
                transactional=True,
            )
        )
        partition.append(built, record_batch.parse_header(built))
        if number % 5 == 4:
            partition.append_marker(9, 0, 0, number % 2 == 0)
        other.append_records([(b"k", b"v%d" % number)])
    log.commit()
    log.close()
    disk.settle()
    return log


def read_all(partition: Partition) -> bytes:
    """As a consumer: fetch after fetch."""
    offset, found = partition.log_start_offset, b""
    while offset < partition.high_watermark:
        pieces = b"".join(take(partition.read(offset, 400, 10**9)).pieces)
        assert pieces
        for _, header in record_batch.headers(pieces):
            offset = header.next_offset
        found += pieces
    return found


def files(disk: FaultyDisk, suffix: str) -> list[str]:
    return [path for path in disk.files(FOLDER) if path.endswith(suffix)]


@pytest.fixture(scope="module")
def whole() -> tuple[FaultyDisk, bytes]:
    disk = FaultyDisk()
    filled(disk)
    log = open_log(disk.crash_image(0))
    return disk, read_all(log.topics["t"].partitions[0])


@pytest.mark.parametrize("stride", [13, pytest.param(1, marks=pytest.mark.slow)])
def test_every_bit_of_a_segment_is_watched(whole: tuple[FaultyDisk, bytes], stride: int) -> None:
    disk, content = whole
    for path in files(disk, ".log"):
        for position in range(0, disk.file_size(path) or 0, stride):
            image = disk.crash_image(0)
            image.nowait = position % 2 == 0
            image.damage(path, position, 1 << position % 8)
            before = sorted(image.files())
            log = open_log(image)
            with pytest.raises(KafkaError) as caught:
                read_all(log.topics["t"].partitions[0])
            assert caught.value.code == ErrorCode.CORRUPT_MESSAGE, (path, position)
            assert [damage.file for damage in log.damage] == [path]
            assert 0 <= position - log.damage[0].position < 400, "the place is the batch that was hit"
            assert read_all(log.topics["other"].partitions[0])
            assert sorted(path for path in image.files() if not path.endswith("/clean")) == [
                path for path in before if not path.endswith("/clean")
            ]
    assert content


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex"])
def test_a_damaged_index_is_named_made_again_and_kept_aside(whole: tuple[FaultyDisk, bytes], suffix: str) -> None:
    disk, content = whole
    for path in files(disk, suffix):
        for position in range(disk.file_size(path) or 0):
            image = disk.crash_image(0)
            image.damage(path, position, 0x10)
            log = open_log(image)
            partition = log.topics["t"].partitions[0]
            aborted = partition.aborted_transactions(0, partition.log_end_offset)
            assert [found.first_offset for found in aborted] == [11, 33, 55]
            for time_ms in range(START_MS + 10, START_MS + 310, 10):
                answer = take(partition.offset_by_time(time_ms - 3, 10**9))
                assert answer.timestamp == time_ms
            assert read_all(partition) == content
            for damage in log.damage:
                assert damage.file == path and "made again" in damage.reason
            if log.damage:
                log.commit()
                assert image.content(path) == disk.content(path)
                assert any("/quarantine/t-0." in name for name in image.files())
            else:  # nothing had to look into this index; the deep check does
                assert [damage.file for damage in log.verify()] == [path]


def test_a_missing_segment_is_named_and_the_rest_is_served(whole: tuple[FaultyDisk, bytes]) -> None:
    disk, _ = whole
    path = files(disk, ".log")[1]
    image = disk.crash_image(0)
    image.unlink(path)
    log = open_log(image)
    partition = log.topics["t"].partitions[0]
    first, after = partition.bases[1], partition.bases[2]
    (damage,) = log.damage
    assert (damage.file, damage.first_offset, damage.next_offset) == (path, first, after)
    assert take(partition.read(0, 1, 10**9)).size and take(partition.read(after, 1, 10**9)).size
    with pytest.raises(KafkaError):
        partition.read(first, 1, 10**9)
    log.close()
    again = open_log(image)
    assert [hole.next_offset for hole in again.topics["t"].partitions[0].holes] == [after]


def test_files_that_only_kafka_reads_are_checked_by_the_deep_check(whole: tuple[FaultyDisk, bytes]) -> None:
    disk, _ = whole
    assert open_log(disk.crash_image(0)).verify() == []
    for path in [*files(disk, ".snapshot"), f"{FOLDER}/partition.metadata", f"{FOLDER}/leader-epoch-checkpoint"]:
        for position in range(disk.file_size(path) or 0):
            image = disk.crash_image(0)
            image.damage(path, position, 1)
            assert [damage.file for damage in open_log(image).verify()] == [path]


def journaled(disk: FaultyDisk, *, segments_to: int) -> list[int]:
    """Ten frames of three partitions, the first `segments_to` of them written to segments. Where each frame begins."""
    log = open_log(disk, settings=LogSettings())
    partitions = log.create_topic("t", 3, {}).partitions
    log.commit()
    places = []
    for number in range(10):
        for partition in partitions[: 1 + number % 3]:
            partition.append_records([(b"k", b"%d" % number)])
        window = log.take_window()
        assert window is not None
        log.write_window(window)
        log.window_durable(window)
        places.append(window.placement.position)
        if number < segments_to:
            work = log.take_segment_work()
            assert work is not None
            log.write_segments(work)
            log.segments_written(work)
            log.writer.sync()
    return places


JOURNAL = f"{ROOT}/journal/00000000.journal"


@pytest.mark.parametrize("where", [3, 70], ids=["header", "payload"])
def test_a_damaged_frame_in_the_middle_is_filled_from_the_segments(where: int) -> None:
    disk = FaultyDisk()
    places = journaled(disk, segments_to=10)
    for number in range(9):
        image = disk.crash_image(1)
        image.damage(JOURNAL, places[number] + where)
        log = open_log(image)
        (damage,) = log.damage
        assert (damage.file, damage.position) == (JOURNAL, places[number])
        assert [p.high_watermark for p in log.topics["t"].partitions] == [10, 6, 3]
        for partition in log.topics["t"].partitions:
            assert len(list(partition.batches())) == partition.high_watermark
            assert not partition.holes
        assert any("/quarantine/journal-" in path for path in image.files())


@pytest.mark.parametrize("where", [3, 70], ids=["header", "payload"])
def test_a_damaged_frame_that_is_nowhere_else_leaves_a_named_hole(where: int) -> None:
    disk = FaultyDisk()
    places = journaled(disk, segments_to=0)
    image = disk.crash_image(1)
    image.damage(JOURNAL, places[5] + where)  # frame 5: one record for each of the three partitions
    log = open_log(image)
    partitions = log.topics["t"].partitions
    assert log.damage[0].file == JOURNAL and log.damage[0].position == places[5]
    assert [[(h.first_offset, h.next_offset) for h in p.holes] for p in partitions[:2]] == [[(5, 6)], [(3, 4)]]
    for partition, hole in zip(partitions[:2], (5, 3), strict=True):
        with pytest.raises(KafkaError) as caught:
            partition.read(hole, 1000, 10**9)
        assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
        before = b"".join(take(partition.read(0, 10**6, 10**9)).pieces)
        assert [header.base_offset for _, header in record_batch.headers(before)] == list(range(hole))
        after = b"".join(take(partition.read(hole + 1, 10**6, 10**9)).pieces)
        assert next(record_batch.headers(after))[1].base_offset == hole + 1
    assert partitions[0].append_records([(b"k", b"goes on")]).base_offset == 10
    log.commit()
    log.close()
    again = open_log(image)
    assert [p.high_watermark for p in again.topics["t"].partitions] == [11, 6, partitions[2].high_watermark]
