"""Clients go on while the broker is killed with SIGKILL and started again; nothing that Kafka forbids is seen."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest

from headwater.core import processes
from tests.consistency.checker import PLANTS, check
from tests.consistency.side_load import AGES, SideLoad, compare
from tests.consistency.workload import Workload
from tests.peers.apache_kafka import free_port

SETTINGS = {"log.retention.check.interval.ms": "300"}


def run_with_kills(data: Path, seed: int, kills: int) -> tuple[Workload, SideLoad]:
    chance, port = random.Random(seed), free_port()
    broker = processes.start_broker(data, listen=f"127.0.0.1:{port}", settings=SETTINGS)
    workload, beside = Workload(broker.address, seed), SideLoad(broker.address, seed)
    try:
        workload.make_topic()
        workload.start()
        beside.start()
        pause = threading.Event()
        for _ in range(kills):
            pause.wait(0.1 + chance.random() * 0.9)
            broker.kill()
            broker = processes.start_broker(data, listen=f"127.0.0.1:{port}", settings=SETTINGS)
        pause.wait(1.0)
        workload.history = workload.finish()
        beside.finish()
    finally:
        broker.stop()
    assert "DAMAGE" not in broker.log_path.read_text() and "Traceback" not in broker.log_path.read_text()
    return workload, beside


def assert_sound(seed: int, kills: int, workload: Workload, beside: SideLoad, plant: str) -> None:
    if plant in PLANTS:
        workload.history = PLANTS[plant](workload.history)
    acknowledged = sum(len(e.sent) for e in workload.history if e.outcome == "ok" and e.kind == "send")
    summary = (
        f"seed {seed}, {kills} kills: {len(workload.history)} events, {acknowledged} acknowledged; beside: "
        f"{len(beside.acknowledged)} acknowledged, {AGES} from {beside.highest_start} to {beside.end}, "
        f"{beside.rounds} topics deleted, {beside.commits} commits"
    )
    print(summary)
    assert workload.problems == [] and beside.problems == []
    assert check(workload.history) == {}
    assert acknowledged > 100 * kills / 10, "the run wrote too little to say anything"
    assert beside.rounds > 0 and beside.commits > kills and beside.highest_start > 0, summary


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [1])
def test_no_anomaly_while_the_broker_is_killed(tmp_path: Path, seed: int, plant: str) -> None:
    workload, beside = run_with_kills(tmp_path / "data", seed, kills=20)
    assert_sound(seed, 20, workload, beside, plant)
    for name in ("lost-write", "duplicate", "inconsistent-offset", "aborted-read"):
        assert name in check(PLANTS[name](workload.history)), f"the planted {name} was not found"


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("seed", range(100, 110))
def test_no_anomaly_over_many_kills(tmp_path: Path, seed: int, plant: str) -> None:
    workload, beside = run_with_kills(tmp_path / "data", seed, kills=50)
    assert_sound(seed, 50, workload, beside, plant)


@pytest.mark.parametrize(
    ("left", "acknowledged", "wrong"),
    [
        ({3: b"3|", 4: b"4|"}, {2: b"2|", 4: b"4|"}, []),
        ({4: b"4|"}, {}, ["ages: offsets [3] of 3..5 are missing"]),
        ({3: b"3|", 4: b"4|"}, {4: b"4|x"}, ["ages: offset 4 was acknowledged and is other"]),
        ({3: b"3|", 4: b"3|"}, {}, ["ages: number b'3' stands at 4"]),
    ],
    ids=["sound", "a hole", "other bytes", "twice"],
)
def test_what_is_left_of_an_aging_topic_is_compared(
    left: dict[int, bytes], acknowledged: dict[int, bytes], wrong: list[str]
) -> None:
    assert compare(left, acknowledged, 3, 5) == wrong
