"""Peers for the tests of this folder: Apache Kafka (fetched and started once) and our own broker beside it.

A peer that this machine lacks skips its tests by name; where CI is set that is a failure.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.core import processes
from tests.peers import apache_kafka


def need(lack: str | None) -> None:
    if lack is None:
        return
    if os.environ.get("CI"):
        pytest.fail(f"a peer is missing where CI is set: {lack}")
    pytest.skip(lack)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[apache_kafka.ApacheKafka]:
    """Apache Kafka 4.3, finalizing no more features than our broker does."""
    need(apache_kafka.missing())
    broker = apache_kafka.ApacheKafka(tmp_path_factory.mktemp("apache-kafka")).start()
    yield broker
    broker.stop()


@pytest.fixture(scope="session")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of our broker, on a folder of its own."""
    folder: Path = tmp_path_factory.mktemp("headwater")
    broker = processes.start_broker(folder / "data")
    yield broker.address
    broker.stop()
