"""Brokers as children: started, shared, stopped, and never left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from headwater.core.endpoint import Endpoint, read_endpoint, write_endpoint
from headwater.core.errors import Conflict, Unavailable
from headwater.core.processes import BrokerProcess, join, start_broker
from tests.server.running import until

STARTER = "from headwater.core.processes import *; import os, sys, time\n"


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


class Starter:
    """Another Python process that uses headwater; it prints lines and waits for ours."""

    def __init__(self, code: str, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", STARTER + textwrap.dedent(code), *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": "src"},
        )  # fmt: skip

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(20)


@pytest.fixture
def starters() -> Iterator[list[Starter]]:
    made: list[Starter] = []
    yield made
    for starter in made:
        starter.kill()
        assert starter.process.stdin is not None
        assert starter.process.stdout is not None
        starter.process.stdin.close()
        starter.process.stdout.close()


def temporary_directories() -> set[str]:
    return {name for name in os.listdir(tempfile.gettempdir()) if name.startswith("headwater-")}


def test_a_stopped_broker_leaves_nothing_behind() -> None:
    before = len(os.listdir("/proc/self/fd"))
    with start_broker() as broker:
        assert broker.data.is_dir()
        assert broker.is_running()
    assert is_gone(broker.pid)
    assert not broker.data.exists()
    assert broker.stop() == 0, "stopping twice is no mistake"
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_given_directory_stays(tmp_path: Path) -> None:
    with start_broker(tmp_path / "data") as broker:
        pass
    assert broker.data.is_dir()


def test_a_broker_ends_with_its_starter_even_after_sigkill(starters: list[Starter]) -> None:
    starters.append(Starter("b = start_broker(); print(b.pid, b.data, flush=True); input()"))
    pid, data = starters[0].line().split()
    assert Path(data).is_dir()
    starters[0].kill()
    until(lambda: is_gone(int(pid)), "the broker has ended")
    until(lambda: not Path(data).exists(), "its temporary directory is gone")


def test_a_broker_ends_with_a_starter_that_forgets_it(starters: list[Starter]) -> None:
    starters.append(Starter("b = start_broker(); print(b.pid, b.data, flush=True)"))
    pid, data = starters[0].line().split()
    until(lambda: is_gone(int(pid)))
    until(lambda: not Path(data).exists())


def test_a_directory_made_for_a_broker_that_ended_by_itself_goes_with_its_starter(starters: list[Starter]) -> None:
    code = "b = start_broker(); os.kill(b.pid, 15); b.wait(); print(b.data, b.data.is_dir(), flush=True); input()"
    starters.append(Starter(code))
    data, still_there = starters[0].line().split()
    assert still_there == "True", "its log can be read"
    starters[0].go_on()
    until(lambda: not Path(data).exists())


def test_a_forked_child_neither_stops_the_broker_nor_keeps_it_alive(starters: list[Starter]) -> None:
    code = """
    b = start_broker()
    child = os.fork()
    if child == 0:
        b.stop()
        os.write(1, b"child stopped\\n")
        time.sleep(60)
        os._exit(0)
    os.write(1, f"{b.pid} {child}\\n".encode())
    input()
    """
    starters.append(Starter(code))
    first, second = sorted([starters[0].line(), starters[0].line()], key=lambda line: not line[0].isdigit())
    assert second == "child stopped"
    pid, child = map(int, first.split())
    try:
        assert not is_gone(pid), "the child's stop is not ours"
        starters[0].kill()
        until(lambda: is_gone(pid), "the child does not hold the pipe")
        assert not is_gone(child)
    finally:
        os.kill(child, signal.SIGKILL)


def test_an_executed_child_does_not_keep_the_broker_alive(starters: list[Starter]) -> None:
    code = """
    import subprocess
    b = start_broker()
    other = subprocess.Popen(["sleep", "60"], close_fds=False)
    print(b.pid, other.pid, flush=True)
    input()
    """
    starters.append(Starter(code))
    pid, other = map(int, starters[0].line().split())
    try:
        starters[0].kill()
        until(lambda: is_gone(pid))
    finally:
        os.kill(other, signal.SIGKILL)


def test_ctrl_c_in_the_terminal_does_not_reach_the_broker(tmp_path: Path) -> None:
    with start_broker(tmp_path) as broker:
        assert os.getsid(broker.pid) == broker.pid
        assert os.getsid(broker.pid) != os.getsid(0)


def test_a_start_that_fails_raises_the_brokers_own_error_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "made").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "made"))
    before = temporary_directories()
    with start_broker(tmp_path / "data") as broker:
        with pytest.raises(Conflict) as refused:
            start_broker(listen=broker.address)
        assert refused.value.next_step
        assert "--listen" in refused.value.next_step
    assert temporary_directories() == before


def test_a_killed_broker_starts_again_on_the_same_directory(tmp_path: Path) -> None:
    with start_broker(tmp_path) as broker:
        broker.kill()
        assert not broker.is_running()
        found = read_endpoint(tmp_path)
        assert found is not None, "a crash leaves the endpoint"
        assert not found.is_alive(), "but nobody believes it"
    with start_broker(tmp_path) as again:
        assert again.pid != broker.pid


def test_waiting_for_a_broker_that_runs_ends_at_the_deadline(tmp_path: Path) -> None:
    with start_broker(tmp_path) as broker, pytest.raises(Unavailable):
        broker.wait(0.05)


def test_users_of_one_directory_share_one_broker_that_ends_after_the_last(
    tmp_path: Path, starters: list[Starter]
) -> None:
    code = "b = join(sys.argv[1]); print(b.pid, b.address, flush=True); input(); b.leave(); print('left'); input()"
    starters += [Starter(code, str(tmp_path)) for _ in range(3)]
    lines = {starter.line() for starter in starters}
    assert len(lines) == 1, "all three found or made the same one"
    pid = int(lines.pop().split()[0])
    with join(tmp_path) as broker:
        assert broker.pid == pid
        assert not broker.started
        starters[0].kill()
        starters[1].kill()
        starters[2].go_on()
        assert read_endpoint(tmp_path) is not None
        assert not is_gone(pid), "one user is left: ourselves"
    until(lambda: is_gone(pid) and read_endpoint(tmp_path) is None, "the last user has left")


def test_who_joins_while_the_broker_ends_gets_a_new_one(tmp_path: Path) -> None:
    seen = set()
    for _ in range(3):
        with join(tmp_path) as broker:
            seen.add(broker.pid)
            assert not is_gone(broker.pid)
        pid = broker.pid
        until(lambda: read_endpoint(tmp_path) is None or is_gone(pid))  # noqa: B023
    assert len(seen) == 3


def test_joining_finds_a_broker_that_somebody_runs(tmp_path: Path) -> None:
    with start_broker(tmp_path) as broker:
        with join(tmp_path) as joined:
            assert joined.address == broker.address
            assert not joined.started
        assert broker.is_running()


def test_joining_does_not_believe_a_stale_endpoint(tmp_path: Path) -> None:
    write_endpoint(tmp_path, Endpoint("127.0.0.1:1", os.getpid(), "own"))
    with join(tmp_path) as broker:
        assert broker.started
        assert broker.pid != os.getpid()


def test_many_brokers_at_once_do_not_disturb_each_other() -> None:
    brokers: list[BrokerProcess] = []
    try:
        brokers += [start_broker() for _ in range(4)]
        assert len({broker.address for broker in brokers}) == 4
    finally:
        for broker in brokers:
            broker.stop()
    assert all(is_gone(broker.pid) for broker in brokers)
