"""Who waits for the disk is told, whatever another one that waits does."""

from __future__ import annotations

import pytest

from headwater.testing.faulty_disk import FaultyDisk
from headwater.wire import batch as record_batch
from tests.log.workload import open_log


def test_a_callback_that_raises_keeps_nobody_else_from_being_told() -> None:
    log = open_log(FaultyDisk(seed=1))
    partition = log.create_topic("t", 1, {}).partitions[0]
    log.commit()
    told: list[str] = []
    log.on_advance = lambda moved: told.append(f"advance {moved.index}")

    def append() -> None:
        data = record_batch.build([(b"k", b"v")], now_ms=log.clock.wall_ms())
        partition.append(memoryview(data), record_batch.parse_header(data))

    def faulty() -> None:
        raise RuntimeError("a bug in an answer")

    append()
    log.when_durable(lambda: told.append("first"))
    log.when_durable(faulty)
    log.when_durable(lambda: told.append("last"))
    with pytest.raises(RuntimeError, match="a bug in an answer"):
        log.commit()
    assert told == ["first", "last", "advance 0"]
    append()
    log.when_durable(lambda: told.append("next window"))
    log.commit()
    assert told[3:] == ["next window", "advance 0"]
    assert partition.high_watermark == 2
