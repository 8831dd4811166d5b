"""Clients go on while the broker is killed with SIGKILL and started again; nothing that Kafka forbids is seen."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest

from headwater.core import processes
from tests.consistency.checker import PLANTS, check
from tests.consistency.workload import Workload
from tests.peers.apache_kafka import free_port


def run_with_kills(data: Path, seed: int, kills: int) -> Workload:
    chance, port = random.Random(seed), free_port()
    broker = processes.start_broker(data, listen=f"127.0.0.1:{port}")
    workload = Workload(broker.address, seed)
    try:
        workload.make_topic()
        workload.start()
        pause = threading.Event()
        for _ in range(kills):
            pause.wait(0.3 + chance.random() * 1.5)
            broker.kill()
            broker = processes.start_broker(data, listen=f"127.0.0.1:{port}")
        pause.wait(1.0)
        workload.history = workload.finish()
    finally:
        broker.stop()
    return workload


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [1])
def test_no_anomaly_while_the_broker_is_killed(tmp_path: Path, seed: int) -> None:
    workload = run_with_kills(tmp_path / "data", seed, kills=5)
    print(f"seed {seed}: {len(workload.history)} events")
    assert workload.problems == []
    assert check(workload.history) == {}
    acknowledged = sum(len(e.sent) for e in workload.history if e.outcome == "ok" and e.kind == "send")
    assert acknowledged > 100, "the run wrote too little to say anything"
    for name in ("lost-write", "duplicate", "inconsistent-offset", "aborted-read"):
        assert name in check(PLANTS[name](workload.history)), f"the planted {name} was not found"


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("seed", range(100, 110))
def test_no_anomaly_over_many_kills(tmp_path: Path, seed: int) -> None:
    workload = run_with_kills(tmp_path / "data", seed, kills=50)
    assert workload.problems == []
    assert check(workload.history) == {}
