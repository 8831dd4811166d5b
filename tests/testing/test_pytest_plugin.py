"""The shipped fixture, as other people's suites use it: real pytest runs in processes of their own."""
from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from headwater.testing.pytest_plugin import Broker
from tests.any_kafka import environment, ours, wait_for

pytestmark = ours

USE = """
import confluent_kafka

def roundtrip(address, topic):
    producer = confluent_kafka.Producer({"bootstrap.servers": address})
    producer.produce(topic, b"hello")
    assert producer.flush(20) == 0
    consumer = confluent_kafka.Consumer({"bootstrap.servers": address, "group.id": topic,
                                         "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    message = None
    while message is None:
        message = consumer.poll(1)
    assert message.value() == b"hello", message.error()
    consumer.close()

def say(broker):
    with open("brokers", "a") as file:
        file.write(f"{broker.pid} {broker.data}\\n")
"""


class Suite:
    """A directory with somebody's tests."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "use.py").write_text(USE)

    def run(self, code: str, *options: str, fails: int = 0) -> str:
        (self.directory / "test_it.py").write_text(code)
        path = self.directory / "output"
        with path.open("w") as output:  # not a pipe: a straggler would keep it open
            done = subprocess.run(
                self.command(*options), cwd=self.directory, env=self.environment(), stdout=output, stderr=output,
                timeout=50, check=False,
            )
        assert done.returncode == fails, path.read_text()
        return path.read_text()

    def command(self, *options: str) -> list[str]:
        plugin = ["-p", "headwater.testing.pytest_plugin"]
        return [sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin, *options]

    def environment(self) -> dict[str, str]:
        # the entry point would load the plugin a second time under its installed name
        return environment(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", TMPDIR=str(self.directory))

    @property
    def brokers(self) -> dict[int, Path]:
        lines = (self.directory / "brokers").read_text().splitlines()
        return {int(pid): Path(data) for pid, data in (line.split(" ", 1) for line in lines)}

    def nothing_is_left(self) -> bool:
        return not any(psutil.pid_exists(pid) or data.exists() for pid, data in self.brokers.items())


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path)


def test_a_stock_client_uses_the_fixture_and_nothing_is_left(suite: Suite) -> None:
    suite.run("""
from use import roundtrip, say

def test_one(broker):
    say(broker)
    roundtrip(broker.address, "orders")
    assert broker.bootstrap_servers == f"{broker.host}:{broker.port}"

def test_two(broker):
    say(broker)
    roundtrip(broker.address, broker.topic(partitions=3, settings={"retention.ms": "-1"}))
    with broker.open() as log:
        assert "orders" in log.topics.all()
""")
    assert len(suite.brokers) == 1
    assert suite.nothing_is_left()


def test_every_worker_of_xdist_has_a_broker_of_its_own(suite: Suite) -> None:
    suite.run("""
import pytest
from use import roundtrip, say

@pytest.mark.parametrize("number", range(6))
def test_it(broker, number):
    say(broker)
    roundtrip(broker.address, broker.topic())
""", "-p", "xdist", "-n", "2", "--dist", "each")
    assert len(suite.brokers) == 2
    assert suite.nothing_is_left()


def test_a_broker_that_a_test_killed_runs_again_for_the_next_with_what_it_had(suite: Suite) -> None:
    suite.run("""
from use import roundtrip, say

def test_kill(broker):
    say(broker)
    with broker.open() as log:
        log.append("t", "acknowledged").wait()
    broker.kill()
    assert not broker.running

def test_next(broker):
    say(broker)
    assert broker.running
    with broker.open() as log:
        assert [record.text for record in log.read("t", until="latest")] == ["acknowledged"]

def test_restart(broker):
    address, pid = broker.address, broker.pid
    broker.restart()
    say(broker)
    assert broker.address == address and broker.pid != pid
    with broker.open() as log:
        assert [record.text for record in log.read("t", until="latest")] == ["acknowledged"]
""")
    assert len(suite.brokers) == 3
    assert len(set(suite.brokers.values())) == 1
    assert suite.nothing_is_left()


def test_a_fresh_broker_is_empty_and_settings_can_be_given(suite: Suite) -> None:
    (suite.directory / "conftest.py").write_text("""
import pytest

@pytest.fixture(scope="session")
def broker_settings():
    return {"num.partitions": "7"}
""")
    suite.run("""
from use import say

def test_fresh(broker, fresh_broker):
    say(broker), say(fresh_broker)
    broker.topic("only in the shared one".replace(" ", "-"))
    with fresh_broker.open() as log:
        assert log.topics.all() == {}
        log.append("made-by-use", "x").wait()
        assert log.topics.all() == {"made-by-use": 7}
""")
    assert len(suite.brokers) == 2
    assert suite.nothing_is_left()


def test_a_fork_of_the_test_process_neither_ends_nor_keeps_the_broker(suite: Suite) -> None:
    suite.run("""
import os
from use import roundtrip, say

def test_fork(broker):
    say(broker)
    child = os.fork()
    if child == 0:
        broker.close()  # a forked child's clean-up must not reach the parent's broker
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert broker.running
    roundtrip(broker.address, broker.topic())
    if os.fork() == 0:  # a child that outlives the tests, holding every open file
        import signal
        os.setsid()
        with open("straggler", "w") as file:
            file.write(str(os.getpid()))
        signal.pause()
""", "-W", "ignore::DeprecationWarning")
    straggler = psutil.Process(int(wait_for(lambda: (suite.directory / "straggler").read_text())))
    try:
        assert suite.nothing_is_left()
    finally:
        straggler.kill()


def test_a_test_process_that_is_killed_takes_broker_and_data_along(suite: Suite) -> None:
    """What restarting a Jupyter kernel does."""
    (suite.directory / "test_it.py").write_text("""
import time
from use import say

def test_hang(broker):
    say(broker)
    time.sleep(600)
""")
    with subprocess.Popen(
        suite.command(), cwd=suite.directory, env=suite.environment(), stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as running:
        wait_for(lambda: (suite.directory / "brokers").exists() and suite.brokers)
        running.kill()
    wait_for(suite.nothing_is_left)


def test_a_suite_that_does_not_use_it_loads_nothing(suite: Suite) -> None:
    suite.run("""
import sys

def test_nothing_is_loaded():
    found = {name for name in sys.modules if name.startswith(("headwater", "confluent_kafka"))}
    assert found == {"headwater", "headwater.testing", "headwater.testing.pytest_plugin"}, found
""")


def test_it_is_ready_in_a_fraction_of_a_second(broker: Broker) -> None:
    """A generous bound for a busy machine: the figure itself stands in the benchmarks."""
    begun = time.monotonic()
    own = Broker()
    took = time.monotonic() - begun
    own.close()
    assert took < 5
    assert not own.data.exists()
    assert os.getpid() != own.pid
