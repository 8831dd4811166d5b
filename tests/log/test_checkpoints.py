"""The journal stays small, whatever the load."""

from __future__ import annotations

from headwater.log import Log
from headwater.testing.faulty_disk import FaultyDisk
from tests.log.workload import ROOT, open_log, small_settings


def commit_one_window(log: Log) -> None:
    window = log.take_window()
    assert window is not None
    log.write_window(window)
    log.window_durable(window)
    log.flush_segments()


def test_a_queue_that_never_gets_short_does_not_put_off_the_checkpoint_for_ever() -> None:
    disk = FaultyDisk()
    log = open_log(disk)
    settings = small_settings()
    partition = log.create_topic("t", 1, {}).partitions[0]
    for _ in range(300):
        while log.unwritten_bytes < 20 * settings.window_bytes:
            partition.append_records([(b"k", bytes(1000))])
        commit_one_window(log)
        journal = sum(disk.file_size(f"{ROOT}/journal/{name}") or 0 for name in disk.list(f"{ROOT}/journal"))
        assert journal < 8 * settings.checkpoint_bytes
