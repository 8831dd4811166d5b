"""`headwater broker` and how the other verbs find it."""
from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headwater.core.endpoint import read_endpoint
from tests.any_kafka import Shell, ours, wait_for

pytestmark = ours


@contextmanager
def running(shell: Shell, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    broker = shell.start("broker", "--listen", "127.0.0.1:0", *options, stdout=subprocess.DEVNULL)
    try:
        wait_for(lambda: read_endpoint(shell.directory / "data") or broker.poll() is not None)
        assert broker.poll() is None, broker.stderr and broker.stderr.read()
        yield broker
    finally:
        broker.kill()
        broker.communicate()


def test_verbs_find_the_broker_of_the_directory_they_are_typed_in(no_broker: Shell) -> None:
    with running(no_broker, "--set", "num.partitions=3") as broker:
        no_broker("produce", "orders", "one")
        assert no_broker("topics", "list", "--plain").out == "orders\t3\n"
        assert no_broker("topics", "list", "--plain", "--log", "data").out == "orders\t3\n"
        assert no_broker("topics", "list", "--plain", "--log", "./data/").out == "orders\t3\n"
        broker.send_signal(signal.SIGINT)
        assert broker.wait(20) == 0
    assert read_endpoint(no_broker.directory / "data") is None
    with running(no_broker):
        assert no_broker("consume", "orders", "--exit-at-end").out == "one\n"


def test_a_killed_broker_leaves_an_address_that_is_told_from_a_running_one(no_broker: Shell) -> None:
    with running(no_broker) as broker:
        broker.kill()
        broker.wait()
        done = no_broker("topics", "list", code=6)
        assert "headwater broker --data data" in done.err


def test_a_directory_belongs_to_one_broker(no_broker: Shell) -> None:
    with running(no_broker):
        # without the warnings of an interpreter that ends early
        done = no_broker("broker", "--listen", "127.0.0.1:0", code=4, env={"PYTHONWARNINGS": ""})
        assert f"headwater already runs on ./data at {read_endpoint(no_broker.directory / 'data').address}" in done.err


def test_an_address_that_others_can_reach_must_be_asked_for(no_broker: Shell) -> None:
    assert "--insecure-listen" in no_broker("broker", "--listen", "0.0.0.0:0", code=None).err
    assert not Path(no_broker.directory / "data" / "endpoint").exists()


def test_a_wrong_setting_is_a_usage_error(no_broker: Shell) -> None:
    no_broker("broker", "--listen", "127.0.0.1:0", "--set", "num.partitions=many", code=2)
    no_broker("broker", "--listen", "127.0.0.1:0", "--set", "num.partitions", code=2)
