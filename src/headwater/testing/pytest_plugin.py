"""The pytest fixture `broker`: a real broker for tests, as a child process with its data in a temporary directory.

    def test_orders_arrive(broker):
        topic = broker.topic(partitions=3)
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.address})

    broker           one per test session, and so one per worker of pytest-xdist; tests keep apart by topic names
    fresh_broker     one for this test alone
    broker_settings  override it (scope "session") to give both Kafka's broker settings

A test may stop, kill and restart either; the shared one runs again when the next test begins. A forked child does
not end the broker; a test process that dies takes it along, with its data. Loading this module loads nothing of
headwater: it costs suites that do not use it nothing.
"""
from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.client.log import Log
    from headwater.core.processes import BrokerProcess

STOP_SECONDS = 20.0  # a broker gives itself 10 for what is in flight
_shared: list[Broker] = []  # the session's one, for the hook below
_numbers = itertools.count(1)


class Broker:
    """A broker under test. `address` works as `bootstrap.servers` of every Kafka client, and stays over restarts."""

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        from headwater.core.processes import start_broker

        self.settings = dict(settings or {})
        # the first process made the directory, which goes with it: it is kept for as long as the data is
        self._first: BrokerProcess = start_broker(settings=self.settings)
        self._process = self._first
        self.address: str = self._process.address
        self.data: Path = self._process.data
        self._owner = os.getpid()

    @property
    def bootstrap_servers(self) -> str:
        return self.address

    @property
    def host(self) -> str:
        return self.address.rpartition(":")[0]

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.is_running()

    def name(self, prefix: str = "test") -> str:
        """A name that nobody else uses: for a topic, a group, a transactional id."""
        return f"{prefix}-{os.getpid()}-{next(_numbers)}"

    def topic(
        self, name: str | None = None, partitions: int = 1, settings: Mapping[str, str] | None = None
    ) -> str:
        """Make a topic, of a fresh name unless one is given, and return its name."""
        name = name or self.name("topic")
        with self.open() as log:
            log.topics.create(name, partitions, settings)
        return name

    def open(self) -> Log:
        """headwater's own client on this broker."""
        from headwater.client.log import Log

        return Log(self.address)

    def kill(self) -> None:
        """SIGKILL: as if the machine had stopped, but for the disk's cache."""
        self._process.kill()

    def stop(self) -> None:
        """A clean stop; the data stays for `start`."""
        if os.getpid() != self._owner or not self.running:
            return
        if self._process is self._first:
            os.kill(self.pid, signal.SIGTERM)
            self._process.wait(STOP_SECONDS)
        else:
            self._process.stop()

    def start(self) -> None:
        """Start again on the same data and the same port."""
        from headwater.core.processes import start_broker

        if not self.running:
            self._process = start_broker(self.data, listen=self.address, settings=self.settings)

    def restart(self) -> None:
        self.stop()
        self.start()

    def close(self) -> None:
        """End it and remove its data."""
        if os.getpid() != self._owner:
            return
        self.stop()
        self._first.stop()

    def __repr__(self) -> str:
        return f"<broker {self.address} pid {self.pid}{'' if self.running else ' (not running)'}>"


@pytest.fixture(scope="session")
def broker_settings() -> dict[str, str]:
    """Kafka's broker settings for `broker` and `fresh_broker`; override it in your conftest.py."""
    return {"group.initial.rebalance.delay.ms": "0"}


@pytest.fixture(scope="session")
def broker(broker_settings: dict[str, str]) -> Iterator[Broker]:
    """A Kafka broker, shared by the tests of this process. `broker.address` is its bootstrap address."""
    shared = Broker(broker_settings)
    _shared.append(shared)
    try:
        yield shared
    finally:
        _shared.remove(shared)
        shared.close()


@pytest.fixture
def fresh_broker(broker_settings: dict[str, str]) -> Iterator[Broker]:
    """A Kafka broker for one test alone, with an empty log."""
    own = Broker(broker_settings)
    try:
        yield own
    finally:
        own.close()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """A test that left the shared broker dead does not fail the next one."""
    for shared in _shared:
        shared.start()
