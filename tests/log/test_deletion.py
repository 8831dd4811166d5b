"""Topics are deleted: long names, and an end of the process in the middle of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.core.clock import SystemClock
from headwater.core.disk import RealDisk
from headwater.log import Log, recovery
from headwater.log.segment_writer import FILE_NAME_MAX, quarantine

LONGEST_NAME = "n" * 249


def opened(path: Path) -> Log:
    return Log.open(RealDisk(), str(path), SystemClock())


def test_a_topic_with_the_longest_name_is_deleted_without_harm(tmp_path: Path) -> None:
    log = opened(tmp_path)
    topic = log.create_topic(LONGEST_NAME, 12, {})
    for partition in topic.partitions:
        partition.append_records([(b"k", b"v")])
    log.commit()
    log.delete_topic(topic)
    log.commit()
    assert (log.fenced, list((tmp_path / "log").iterdir())) == (None, [])
    log.close()
    opened(tmp_path).close()


def test_a_damaged_file_of_the_longest_name_finds_a_place_in_quarantine(tmp_path: Path) -> None:
    folder = tmp_path / f"{LONGEST_NAME}-0"
    folder.mkdir()
    for _ in range(2):
        damaged = folder / "00000000000000000000.timeindex"
        damaged.write_bytes(b"damaged")
        kept = Path(quarantine(RealDisk(), str(damaged), str(tmp_path / "quarantine")))
        assert kept.read_bytes() == b"damaged"
        assert len(kept.name) <= FILE_NAME_MAX
        assert "-0.00000000000000000000.timeindex" in kept.name


def test_a_deletion_that_was_interrupted_after_the_directory_had_moved_is_finished_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = opened(tmp_path)
    topic = log.create_topic("t", 1, {})
    topic.partitions[0].append_records([(b"k", b"v")])
    log.commit()
    log.delete_topic(topic)
    window = log.take_window()
    assert window is not None
    log.write_window(window)
    log.window_durable(window)
    work = log.take_segment_work()
    assert work is not None
    log.writer.run([operation for operation in work.operations if operation[0] == "move_dir"])
    assert [path.name for path in (tmp_path / "log").iterdir()] == [f"t-0.{topic.topic_id.hex()}-delete"]
    log.writer.close()
    log.journal.close()
    log.disk.unlock()
    monkeypatch.setattr(recovery, "_FLUSH_BYTES", 0)  # so that the replay makes the directory again before it goes
    again = opened(tmp_path)
    assert (again.topics, list((tmp_path / "log").iterdir())) == ({}, [])
    again.close()
