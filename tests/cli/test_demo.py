"""The demonstration: exact in a pipe, able to fail, quiet when interrupted."""
from __future__ import annotations

import io
import os
import re
import signal
from pathlib import Path

import psutil
import pytest

from headwater.cli.demo_screen import TerminalScreen
from tests.any_kafka import Shell, ours, wait_for

pytestmark = ours
SHORT = ["demo", "--seconds", "1", "--rate", "2000"]


def test_everything_acknowledged_is_present_after_a_kill(no_broker: Shell) -> None:
    done = no_broker(*SHORT, env={"TMPDIR": str(no_broker.directory)})
    found = re.search(r"^acknowledged (\d+), present (\d+)$", done.out, re.MULTILINE)
    assert found is not None, done.out
    assert found.group(1) == found.group(2)
    assert int(found.group(1)) > 100
    assert re.search(r"SIGKILL to the broker, with [1-9][0-9,]* records? on the way", done.out), done.out
    assert "missing 0, duplicates 0, out of order 0" in done.out
    assert "\x1b" not in done.out
    assert done.err == ""
    assert os.listdir(no_broker.directory) == []


@pytest.mark.parametrize("fault, said", [
    ("missing", "missing 1, duplicates 0"), ("duplicate", "missing 0, duplicates 1"), ("order", "out of order 1"),
])
def test_a_planted_fault_is_found(no_broker: Shell, fault: str, said: str) -> None:
    done = no_broker(*SHORT, "--plant", fault, code=1)
    assert said in done.out
    assert "must not happen" in done.out


def test_it_does_not_touch_a_directory_with_data(no_broker: Shell) -> None:
    mine = no_broker.directory / "mine"
    mine.mkdir()
    (mine / "file").write_text("precious")
    assert "not empty" in no_broker("demo", "--data", "mine", code=4).err
    assert os.listdir(mine) == ["file"]


def test_the_log_can_be_kept(no_broker: Shell) -> None:
    done = no_broker(*SHORT, "--data", "kept")
    assert (no_broker.directory / "kept" / "log").is_dir()
    assert "headwater broker --data" in done.out


def test_ctrl_c_ends_it_and_its_broker(no_broker: Shell) -> None:
    with no_broker.start("demo", "--data", "kept") as running:
        assert running.stdout is not None
        assert b"broker started" in running.stdout.readline()
        (broker,) = wait_for(lambda: psutil.Process(running.pid).children())
        running.send_signal(signal.SIGINT)
        assert running.wait(30) == 130
        wait_for(lambda: not broker.is_running() or broker.status() == psutil.STATUS_ZOMBIE)
        assert running.stderr is not None
        assert b"Traceback" not in running.stderr.read()
    assert Path(no_broker.directory / "kept").is_dir()


@pytest.mark.parametrize("columns", [30, 50, 80])
def test_the_story_is_whole_on_a_narrow_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = TerminalScreen(io.StringIO())
    monkeypatch.setenv("COLUMNS", str(columns))
    screen.begin("127.0.0.1:12345", 0.1, "/tmp/headwater-abcdefgh")
    screen.event("a client writes 10,000 records/s with acks=all, a group of two reads")
    screen.event("SIGKILL to the broker, with 1,234 records on the way", "red")
    screen.frame(123_456_789, 123_456_789, 0)
    screen.stopped = True
    screen.frame(123_466_789, 123_466_789, 0)
    lines = screen.lines(columns - 1)
    assert max(len(line) for line in lines) < columns
    told = " ".join(" ".join(lines).split())
    assert "a client writes 10,000 records/s with acks=all, a group of two reads" in told
    assert "with 1,234 records on the way" in told
    assert re.search(r"writes +0/s", told)
