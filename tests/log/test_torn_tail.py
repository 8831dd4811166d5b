"""The end of the journal and of the active segment, cut at every byte."""

from __future__ import annotations

import pytest

from headwater.log import Log, LogSettings, journal_frame
from headwater.testing.clock import ManualClock
from headwater.testing.faulty_disk import FaultyDisk
from headwater.wire import batch as record_batch
from headwater.wire.errors import ErrorCode, KafkaError
from tests.log.workload import ROOT, open_log, take

TAIL_BYTES = 64 * 1024
STRIDE = 331  # prime: every position of a sector and of a frame comes up
JOURNAL = f"{ROOT}/journal/00000000.journal"
SEGMENT = f"{ROOT}/log/t-0/{0:020d}.log"


def settings() -> LogSettings:
    return LogSettings(first_journal_bytes=256 * 1024, journal_file_bytes=256 * 1024)


def written(disk: FaultyDisk, *, to_segments: bool) -> tuple[Log, list[int], list[bytes]]:
    """A log of many frames: (it, where each frame ends in the journal, the batches)."""
    log = open_log(disk, settings=settings())
    partition = log.create_topic("t", 1, {}).partitions[0]
    ends, batches = [], []
    for number in range(40):
        built = memoryview(record_batch.build([(b"k", bytes([number]) * (97 * (number % 29) + 1))], now_ms=number))
        partition.append(built, record_batch.parse_header(built))
        window = log.take_window()
        assert window is not None
        log.write_window(window)
        log.window_durable(window)
        ends.append(window.placement.position + 64 + window.length)
        batches.append(bytes(built))
        if to_segments:
            work = log.take_segment_work()
            assert work is not None
            log.write_segments(work)
            log.segments_written(work)
    return log, ends, batches


def stored(log: Log) -> list[bytes]:
    return [bytes(view) for view in log.topics["t"].partitions[0].batches()] if "t" in log.topics else []


def check_journal_cut(disk: FaultyDisk, cut: int, ends: list[int], batches: list[bytes], how: str) -> None:
    image = disk.crash_image(0)
    content = image.content(JOURNAL)
    image.put(JOURNAL, content[:cut] if how == "truncated" else content[:cut] + bytes(len(content) - cut))
    log = open_log(image, settings=settings())
    whole = sum(1 for end in ends if end <= cut)
    found = stored(log)
    # Zeros may be what stood there: a frame that ends in zeros survives a cut inside them.
    assert found[:whole] == batches[:whole]
    assert found == batches[: len(found)]
    assert len(found) <= whole + 1
    assert not log.damage


@pytest.mark.parametrize("how", ["truncated", "zeroed"])
@pytest.mark.parametrize("stride", [STRIDE, pytest.param(1, marks=pytest.mark.slow)])
def test_a_journal_cut_anywhere_keeps_every_whole_frame(how: str, stride: int) -> None:
    disk = FaultyDisk()
    _, ends, batches = written(disk, to_segments=False)
    for cut in range(max(ends[-1] - TAIL_BYTES, ends[0]), ends[-1] + 1, stride):
        check_journal_cut(disk, cut, ends, batches, how)


@pytest.mark.parametrize("stride", [STRIDE, pytest.param(1, marks=pytest.mark.slow)])
def test_a_segment_cut_anywhere_after_an_unclean_stop_is_whole_again(stride: int) -> None:
    disk = FaultyDisk()
    _, _, batches = written(disk, to_segments=True)
    size = disk.file_size(SEGMENT) or 0
    for cut in range(max(size - TAIL_BYTES, 0), size + 1, stride):
        image = disk.restarted().crash_image(0)
        image.put(SEGMENT, disk.content(SEGMENT)[:cut])
        log = open_log(image, settings=settings())
        assert stored(log) == batches
        assert not log.damage


@pytest.mark.parametrize("stride", [STRIDE, pytest.param(1, marks=pytest.mark.slow)])
def test_a_segment_cut_anywhere_after_a_clean_stop_is_named_and_never_a_shorter_log(stride: int) -> None:
    disk = FaultyDisk()
    log, _, batches = written(disk, to_segments=True)
    log.close()
    size = disk.file_size(SEGMENT) or 0
    for cut in range(max(size - TAIL_BYTES, 0), size, stride):
        image = disk.crash_image(0)
        image.put(SEGMENT, disk.content(SEGMENT)[:cut])
        log = open_log(image, settings=settings())
        partition = log.topics["t"].partitions[0]
        assert partition.high_watermark == len(batches)
        (damage,) = log.damage
        assert damage.file == SEGMENT
        readable = damage.first_offset
        if readable:
            found = take(partition.read(0, 10**9, 10**9))
            assert b"".join(found.pieces) == b"".join(batches[:readable])
        with pytest.raises(KafkaError) as caught:
            partition.read(readable, 1000, 10**9)
        assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
        assert image.content(SEGMENT) == disk.content(SEGMENT)[:cut], "a damaged file is not touched"
        new = memoryview(record_batch.build([(b"k", b"after")], now_ms=1))
        assert partition.append(new, record_batch.parse_header(new)).base_offset == len(batches)
        log.commit()
        assert b"".join(take(partition.read(len(batches), 1000, 10**9)).pieces) == bytes(new)


def test_the_cut_bytes_of_a_torn_frame_are_kept() -> None:
    disk = FaultyDisk()
    _, ends, batches = written(disk, to_segments=False)
    image = disk.crash_image(0)
    image.put(JOURNAL, image.content(JOURNAL)[: ends[-1] - 1])
    log = open_log(image, settings=settings())
    assert stored(log) == batches[:-1]
    assert log.recovery.cut_bytes > 0
    assert any("/quarantine/journal-" in path and path.endswith(".torn") for path in image.files())


def test_plant_skip_torn_check_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: a recovery that believes every frame whose header holds."""

    def believe(*_: object) -> bool:
        return True

    monkeypatch.setattr(journal_frame, "payload_holds", believe)
    disk = FaultyDisk()
    _, ends, batches = written(disk, to_segments=False)
    with pytest.raises((AssertionError, KafkaError)):
        check_journal_cut(disk, ends[-1] - 300, ends, batches, "zeroed")


def test_leader_epochs_tell_that_the_log_was_cut() -> None:
    disk = FaultyDisk()
    _, ends, batches = written(disk, to_segments=False)
    image = disk.crash_image(0)
    image.put(JOURNAL, image.content(JOURNAL)[: ends[-3] + 100])
    log = open_log(image, clock=ManualClock(), settings=settings())
    partition = log.topics["t"].partitions[0]
    kept = len(batches) - 2
    assert partition.leader_epoch == 1
    assert partition.end_offset_for_epoch(0) == (0, kept)
    assert partition.end_offset_for_epoch(1) == (1, kept)
    assert partition.end_offset_for_epoch(2) == (-1, -1)
