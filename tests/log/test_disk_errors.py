"""The disk refuses the N-th call, for every N: the log fences, loses nothing, and a restart goes on."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from headwater.core.errors import HeadwaterError
from headwater.testing.faulty_disk import FaultyDisk
from headwater.wire.errors import ErrorCode, KafkaError
from tests.log.workload import Workload, open_log

STEPS = 120


def run_until_error(seed: int, **options: Any) -> bool:
    """One run on a disk that fails once. False if the run ended before."""
    disk = FaultyDisk(seed=seed, **options)
    run = Workload(seed, disk)
    fenced: list[str] = []
    try:
        run.start()
        run.log.on_fence = fenced.append
        run.run(STEPS)
        run.finish()
        return False
    except (OSError, KafkaError, HeadwaterError):
        pass
    print(f"seed {seed}, {options}: {disk.trace[-1]}")
    image = disk.crash_image(seed)
    log = open_log(image, run.clock)
    held = run.check(log)
    run.go_on_with(log, image, held)
    run.run(30)
    run.finish()
    return True


@pytest.mark.parametrize("option", ["fail_sync_at", "fail_write_at", "short_write_at"])
def test_an_error_at_call_n_loses_nothing(option: str) -> None:
    failed = 0
    for n in [*range(1, 40), *range(40, 2000, 17)]:
        if not run_until_error(7, **{option: n}):
            break
        failed += 1
    assert failed > 40


@pytest.mark.slow
@pytest.mark.parametrize("option", ["fail_sync_at", "fail_write_at", "short_write_at"])
@pytest.mark.parametrize("seed", [8, 9, 10])
def test_an_error_at_every_single_call_loses_nothing(option: str, seed: int) -> None:
    n = 1
    while run_until_error(seed, **{option: n}):
        n += 1


def test_after_a_failed_sync_nothing_is_acknowledged_any_more() -> None:
    disk = FaultyDisk()
    log = open_log(disk)
    partition = log.create_topic("t", 1, {}).partitions[0]
    log.commit()
    told: list[str] = []
    log.on_fence = told.append
    acknowledged: list[int] = []
    partition.append_records([(b"k", b"v")])
    log.when_durable(lambda: acknowledged.append(1))
    window = log.take_window()
    assert window is not None
    disk.fail_sync_at = disk.syncs + 1
    with pytest.raises(OSError, match="Input/output") as caught:
        log.write_window(window)
    log.window_failed(window, caught.value)
    assert log.fenced is not None and told == [log.fenced]
    assert partition.high_watermark == 0
    assert log.take_window() is None and log.take_segment_work() is None
    for change in (
        lambda: partition.append_records([(b"k", b"v")]),
        lambda: log.create_topic("u", 1, {}),
        lambda: log.set_fact("a", 1),
        log.commit,
    ):
        with pytest.raises(KafkaError) as refused:
            change()
        assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    log.close()
    assert acknowledged == []
    assert open_log(disk.crash_image(3)).topics["t"].partitions[0].leader_epoch == 1


def test_a_segment_that_cannot_be_written_fences_and_the_journal_still_has_the_records() -> None:
    disk = FaultyDisk()
    log = open_log(disk)
    partition = log.create_topic("t", 1, {}).partitions[0]
    log.commit()
    partition.append_records([(b"k", b"v")])
    window = log.take_window()
    assert window is not None
    log.write_window(window)
    log.window_durable(window)
    work = log.take_segment_work()
    assert work is not None
    disk.fail_write_at, disk.fail_errno = disk.writes + 1, errno.ENOSPC
    with pytest.raises(OSError, match="No space") as caught:
        log.write_segments(work)
    log.segments_failed(work, caught.value)
    assert log.fenced is not None and "segments" in log.fenced
    log.close()
    again = open_log(disk.crash_image(1))
    assert again.topics["t"].partitions[0].high_watermark == 1
