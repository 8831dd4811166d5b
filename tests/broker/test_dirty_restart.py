"""A start after a kill reads what lies behind the last checkpoint, however much there is before it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headwater.broker.config import BrokerSettings
from headwater.broker.state import Broker
from headwater.core.clock import SystemClock
from headwater.core.disk import Handle, RealDisk
from headwater.log import Log, LogSettings
from headwater.wire import batch as record_batch

MIB = 1 << 20
PARTITIONS = 1_000
BATCH_BYTES = 8 * 1024
CHECKPOINT_BYTES = 32 * MIB
# Journal since the last checkpoint, what was in flight when it was taken, and the files that the journal keeps ready.
READ_BYTES_MAX = CHECKPOINT_BYTES + 48 * MIB
READ_BYTES_PER_PARTITION = 4 * 1024  # its line of the checkpoint, and the ends of its files


class CountingDisk(RealDisk):
    """What is read is counted; with ``cheap_syncs`` the system keeps what a killed process had written."""

    def __init__(self, *, cheap_syncs: bool = False) -> None:
        super().__init__()
        self.bytes_read = 0
        self.cheap_syncs = cheap_syncs

    def read(self, handle: Handle, position: int, count: int) -> bytearray:
        found = super().read(handle, position, count)
        self.bytes_read += len(found)
        return found

    def sync(self, handle: Handle) -> None:
        if not self.cheap_syncs:
            super().sync(handle)


def settings() -> LogSettings:
    return LogSettings(checkpoint_bytes=CHECKPOINT_BYTES, handles_max=128)  # below the usual limit of open files


def written(root: str, total_bytes: int) -> list[int]:
    """A log with that much in it, whose process is gone; the ends of its partitions."""
    disk = CountingDisk(cheap_syncs=True)
    log = Log.open(disk, root, SystemClock(), settings())
    topic = log.create_topic("t", PARTITIONS, {})
    log.commit()
    values = [(None, os.urandom(BATCH_BYTES - 100))]
    for number in range(total_bytes // BATCH_BYTES):
        built = memoryview(record_batch.build(values, now_ms=SystemClock().wall_ms()))
        topic.partitions[number % PARTITIONS].append(built, record_batch.parse_header(built))
        if number % 500 == 499:
            log.commit()
    log.commit()
    disk.unlock()
    return [partition.log_end_offset for partition in topic.partitions]


def restart_and_check(root: str, total_bytes: int) -> int:
    ends = written(root, total_bytes)
    disk = CountingDisk()
    log = Log.open(disk, root, SystemClock(), settings())
    Broker.open(log, SystemClock(), BrokerSettings())
    read = disk.bytes_read
    assert not log.recovery.clean and not log.damage
    assert [partition.high_watermark for partition in log.topics["t"].partitions] == ends
    print(f"{total_bytes / MIB:.0f} MiB there, {read / MIB:.1f} MiB read in {log.recovery.seconds:.2f} s")
    log.close()
    return read


@pytest.mark.timeout(180)
def test_only_what_lies_behind_the_checkpoint_is_read(tmp_path: Path) -> None:
    read = restart_and_check(str(tmp_path), 256 * MIB)
    assert read < READ_BYTES_MAX + PARTITIONS * READ_BYTES_PER_PARTITION
    assert read < 256 * MIB // 2


@pytest.mark.slow
def test_only_what_lies_behind_the_checkpoint_is_read_of_ten_gigabytes(tmp_path: Path) -> None:
    read = restart_and_check(str(tmp_path), 10 * 1024 * MIB)
    assert read < READ_BYTES_MAX + PARTITIONS * READ_BYTES_PER_PARTITION
