"""`headwater.open` on a directory: it starts a broker, or joins the one that runs, and survives a fork."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

import headwater
from headwater.core.endpoint import read_endpoint
from headwater.core.processes import start_broker
from tests.any_kafka import Kafka, environment, ours, wait_for


@ours
def test_a_directory_starts_a_broker_that_ends_with_its_last_user(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with headwater.open(data) as first:
        first.append("t", "one").wait()
        with headwater.open(str(data)) as second:
            assert second.address == first.address
            assert [record.text for record in second.read("t", until="latest")] == ["one"]
        endpoint = read_endpoint(data)
        assert endpoint is not None
        assert psutil.pid_exists(endpoint.pid)
        first.append("t", "two").wait()
    wait_for(lambda: read_endpoint(data) is None)
    with headwater.open(data) as again:
        assert [record.text for record in again.read("t", until="latest")] == ["one", "two"]


@ours
def test_a_broker_that_somebody_else_started_is_joined_and_left_running(tmp_path: Path) -> None:
    with start_broker(tmp_path) as broker:
        with headwater.open(tmp_path) as log:
            assert log.address == broker.address
            log.append("t", "x")
        assert broker.is_running()


@ours
def test_processes_that_open_the_same_directory_at_once_share_one_broker(tmp_path: Path) -> None:
    code = (
        "import headwater, sys\n"
        "with headwater.open('data') as log:\n"
        "    log.append('t', sys.argv[1]).wait()\n"
        "    print(log.address)\n"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", code, str(number)], cwd=tmp_path, env=environment(),
                         stdout=subprocess.PIPE, text=True)
        for number in range(4)
    ]
    for one in started:
        one.communicate(timeout=60)
        assert one.returncode == 0
    with headwater.open(tmp_path / "data") as log:
        assert sorted(record.text for record in log.read("t", until="latest")) == ["0", "1", "2", "3"]


@ours
def test_a_directory_that_cannot_be_written_is_denied(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(headwater.HeadwaterError) as raised, headwater.open(tmp_path / "file" / "data"):
        pass
    assert str(tmp_path / "file") in str(raised.value)


def test_a_forked_child_appends_and_reads_with_clients_of_its_own(kafka: Kafka) -> None:
    topic = kafka.topic()
    with headwater.open(kafka.address) as log:
        log.append(topic, "parent").wait()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                log.append(topic, "child").wait()
                found = [record.text for record in log.read(topic, until="latest")]
                code = 0 if found == ["parent", "child"] else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        log.append(topic, "parent again").wait()
    assert kafka.values(topic) == [b"parent", b"child", b"parent again"]
