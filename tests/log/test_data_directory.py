"""Whose directory it is, which format it has, and what is done about mistakes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.core.clock import SystemClock
from headwater.core.disk import RealDisk
from headwater.core.errors import Conflict, HeadwaterError, UsageError
from headwater.log import Log
from headwater.testing.faulty_disk import FaultyDisk
from tests.log.workload import ROOT, open_log

HOLD = """
import sys
from headwater.core.clock import SystemClock
from headwater.core.disk import RealDisk
from headwater.log import Log
log = Log.open(RealDisk(), sys.argv[1], SystemClock())
log.create_topic("held", 1, {})
log.commit()
print("ready", flush=True)
sys.stdin.read()
"""


def real(path: Path) -> Log:
    return Log.open(RealDisk(), str(path), SystemClock())


def holder(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


def test_a_second_process_is_refused_and_a_stale_lock_is_not(tmp_path: Path) -> None:
    process = holder(tmp_path / "data")
    try:
        with pytest.raises(Conflict, match=f"process {process.pid}"):
            real(tmp_path / "data")
    finally:
        process.kill()
        process.communicate()
    log = real(tmp_path / "data")
    assert not log.recovery.clean
    assert "held" in log.topics
    log.close()


def test_a_second_log_in_the_same_process_is_refused(tmp_path: Path) -> None:
    log = real(tmp_path / "data")
    with pytest.raises(Conflict, match="another process"):
        real(tmp_path / "data")
    log.close()
    real(tmp_path / "data").close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_neither_holds_the_lock_nor_writes(tmp_path: Path) -> None:
    log = real(tmp_path / "data")
    log.create_topic("t", 1, {})
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            log.commit()
            answer = b"wrote"
        except Exception:
            answer = b"refused"
        try:
            Log.open(RealDisk(), str(tmp_path / "data"), SystemClock())
            answer += b" opened"
        except Conflict:
            answer += b" locked"
        os.write(writer, answer)
        os._exit(0)
    os.close(writer)
    assert os.read(reader, 100) == b"refused locked"
    os.waitpid(child, 0)
    os.close(reader)
    log.commit()
    log.close()


def test_a_newer_format_is_refused_and_nothing_is_changed() -> None:
    disk = FaultyDisk()
    open_log(disk).close()
    disk.put(f"{ROOT}/version", b'{"format": 2, "cluster_id": "x"}\n')
    before = {path: disk.content(path) for path in disk.files()}
    with pytest.raises(UsageError, match=r"newer headwater \(format 2.*pip install --upgrade"):
        open_log(disk)
    assert {path: disk.content(path) for path in disk.files()} == before


def test_a_directory_with_other_things_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("all my work")
    with pytest.raises(UsageError, match=r"thesis\.txt"):
        real(tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "all my work"


def test_one_damaged_copy_of_the_checkpoint_is_named_and_the_other_serves() -> None:
    for name in ("checkpoint", "checkpoint.copy"):
        disk = FaultyDisk()
        log = open_log(disk)
        log.create_topic("t", 3, {})
        log.close()
        for position in range(0, disk.file_size(f"{ROOT}/{name}") or 0, 7):
            image = disk.crash_image(0)
            image.damage(f"{ROOT}/{name}", position, 1)
            log = open_log(image)
            assert list(log.topics) == ["t"]
            assert [damage.file for damage in log.damage] == [f"{ROOT}/{name}"]


def test_without_any_checkpoint_nothing_is_opened_and_nothing_removed() -> None:
    disk = FaultyDisk()
    log = open_log(disk)
    log.create_topic("t", 3, {})
    log.close()
    disk.damage(f"{ROOT}/checkpoint", 30)
    disk.damage(f"{ROOT}/checkpoint.copy", 40)
    before = disk.files()
    with pytest.raises(HeadwaterError, match="both copies"):
        open_log(disk)
    assert disk.files() == before


def test_a_damaged_version_file_is_named() -> None:
    disk = FaultyDisk()
    open_log(disk).close()
    disk.put(f"{ROOT}/version", b'{"format": 1, "clus')
    with pytest.raises(HeadwaterError, match="version is damaged"):
        open_log(disk)


def test_a_clean_stop_leaves_only_kafkas_files_in_log() -> None:
    disk = FaultyDisk()
    log = open_log(disk)
    partition = log.create_topic("t", 1, {"internal.segment.bytes": "300"}).partitions[0]
    for _ in range(20):
        partition.append_records([(b"k", b"v" * 100)])
    log.commit()
    log.close()
    suffixes = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
    for path in disk.files(f"{ROOT}/log"):
        assert path.endswith((*suffixes, "/partition.metadata", "/leader-epoch-checkpoint")), path
