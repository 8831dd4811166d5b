"""The broker against Apache Kafka 4.3, as it comes and with a flush before each acknowledgement, in one run.

Every system is started, warmed with the same work until it is steady, then measured in interleaved rounds;
medians count. CPU is the broker process's own, user and system.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from confluent_kafka.admin import AdminClient, NewTopic

from bench.report import Row, row_of
from headwater.core import processes
from tests.peers.apache_kafka import ApacheKafka, cache, missing, tool_command
from tests.peers.apache_kafka import _log_config as tool_log_config

OURS, KAFKA, FLUSH = "headwater", "Kafka", "Kafka + flush"


class System(NamedTuple):
    """A running broker: its address and process."""

    name: str
    address: str
    process: psutil.Process

    def cpu_seconds(self) -> float:
        times = self.process.cpu_times()
        return times.user + times.system

    def make_topic(self, topic: str, partitions: int) -> None:
        admin = AdminClient({"bootstrap.servers": self.address})
        for made in admin.create_topics([NewTopic(topic, partitions)]).values():
            made.result(60)


class Plan(NamedTuple):
    """How much is done: a quick look, or a run whose figures are kept."""

    rounds: int
    megabytes: int
    seconds: float


def run(*, quick: bool) -> list[Row]:
    lack = missing()
    if lack:
        raise SystemExit(f"the bench `log` compares with Apache Kafka in the same run: {lack}")
    plan = Plan(1, 64, 2.0) if quick else Plan(3, 400, 5.0)
    rows: list[Row] = []
    with systems() as running:
        rows += produce_rows(running, plan)
        rows += request_rows(running, plan)
        rows += partition_rows(running[0], plan)
        rows += fetch_rows(running[:2], plan)
    return rows + start_rows(plan)


@contextlib.contextmanager
def systems() -> Iterator[list[System]]:
    """Ours, Apache Kafka as it comes, and Apache Kafka that flushes before it acknowledges."""
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as folder, contextlib.ExitStack() as ends:
        root = Path(folder)
        ours = processes.start_broker(root / "ours")
        ends.callback(ours.stop)
        running = [System(OURS, ours.address, psutil.Process(ours.pid))]
        for name, settings in ((KAFKA, {}), (FLUSH, {"log.flush.interval.messages": "1"})):
            peer = ApacheKafka(root / name.replace(" ", ""), settings=settings).start()
            ends.callback(peer.stop)
            running.append(System(name, peer.address, psutil.Process(peer.pid)))
        yield running


def say(text: str) -> None:
    sys.stderr.write(f"  {text}\n")
    sys.stderr.flush()


def load(
    work: str, system: System, topic: str, copies: int = 1, **options: float
) -> tuple[float, float, float]:
    """Runs a load: (its rate, the broker's CPU seconds, bytes or records done), summed over its copies."""
    command = [sys.executable, "-m", "bench.load", work, system.address, topic]
    command += [f"{name}={value}" for name, value in options.items()]
    before = system.cpu_seconds()
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(copies)]
    answers: list[dict[str, Any]] = [json.loads(child.communicate()[0]) for child in children]
    spent = system.cpu_seconds() - before
    done = sum(answer.get("bytes", answer.get("records", 0)) for answer in answers)
    return sum(answer["rate"] for answer in answers), spent, done


def java_produce(system: System, topic: str, megabytes: int) -> tuple[float, float, float]:
    """ProducerPerformance with big batches: (MB/s over its whole run, broker CPU seconds, bytes)."""
    count = megabytes * 1000
    options = ["--topic", topic, "--num-records", str(count), "--record-size", "1000", "--throughput", "-1"]
    options += ["--producer-props", f"bootstrap.servers={system.address}", "acks=all", "batch.size=1000000"]
    options += ["linger.ms=5", "buffer.memory=67108864"]
    command = tool_command("ProducerPerformance", *options, log_config=tool_log_config(cache()))
    before = system.cpu_seconds()
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    last = done.stdout.strip().splitlines()[-1]
    rate = float(last.split("records/sec")[0].split(",")[-1]) / 1000
    return rate, system.cpu_seconds() - before, count * 1000


def produce_rows(running: list[System], plan: Plan) -> list[Row]:
    """Big batches: librdkafka from 1 and 4 producers, the Java client from one."""
    rates: dict[tuple[str, str], list[float]] = {}
    cpu: dict[tuple[str, str], list[float]] = {}
    works = {"librdkafka × 1": 1, "librdkafka × 4": 4, "Java": 0}
    for system in running:
        system.make_topic("big", 4)
        load("librdkafka", system, "big", 2, megabytes=plan.megabytes)
        java_produce(system, "big", plan.megabytes)
    for turn in range(plan.rounds):
        for work, copies in works.items():
            for system in running:
                say(f"produce, {work}, {system.name}, round {turn + 1} of {plan.rounds}")
                if copies:
                    rate, spent, done = load(
                        "librdkafka", system, "big", copies, megabytes=plan.megabytes // copies
                    )
                else:
                    rate, spent, done = java_produce(system, "big", plan.megabytes)
                rates.setdefault((work, system.name), []).append(rate)
                cpu.setdefault((work, system.name), []).append(spent * 1e9 / done)
    rows = []
    for work in works:
        goal = 0.9 if work == "Java" else 1.0
        rows.append(
            row_of(f"produce 1 KB, {work}", rates[work, OURS], rates[work, KAFKA], KAFKA, "MB/s", goal)
        )
        rows.append(
            row_of(f"produce 1 KB, {work}", rates[work, OURS], rates[work, FLUSH], FLUSH, "MB/s", 2.0)
        )
        rows.append(
            row_of(f"broker CPU, {work}", cpu[work, OURS], cpu[work, KAFKA], KAFKA, "ms/MB", 1.0, True)
        )
        rows.append(
            row_of(f"broker CPU, {work}", cpu[work, OURS], cpu[work, FLUSH], FLUSH, "ms/MB", 0.5, True)
        )
    return rows


def request_rows(running: list[System], plan: Plan) -> list[Row]:
    """Linger 0: one record a request, one request in flight on each connection."""
    goals = {1: (0.4, 1.5), 16: (0.7, 4.0), 64: (1.0, 7.0)}
    rates: dict[tuple[int, str], list[float]] = {}
    for system in running:
        system.make_topic("small", 4)
        load("requests", system, "small", connections=16, partitions=1, seconds=plan.seconds * 2)
    for turn in range(plan.rounds):
        for connections in goals:
            for system in running:
                say(f"linger 0, {connections} connections, {system.name}, round {turn + 1} of {plan.rounds}")
                rate, _, _ = load(
                    "requests", system, "small", connections=connections, partitions=1, seconds=plan.seconds
                )
                rates.setdefault((connections, system.name), []).append(rate)
    rows = []
    for connections, (plain, flushed) in goals.items():
        work, ours = f"linger 0, {connections} connections", rates[connections, OURS]
        rows.append(row_of(work, ours, rates[connections, KAFKA], KAFKA, "requests/s", plain))
        rows.append(row_of(work, ours, rates[connections, FLUSH], FLUSH, "requests/s", flushed))
    return rows


def partition_rows(ours: System, plan: Plan) -> list[Row]:
    """A record must not cost more among many partitions; the peer is our own smaller request."""
    costs: dict[int, list[float]] = {}
    for partitions in (1, 100, 1000):
        ours.make_topic(f"wide-{partitions}", max(partitions, 4))
        for _ in range(plan.rounds + 1):
            say(f"{partitions} partitions in a request")
            _, spent, records = load("requests", ours, f"wide-{partitions}", connections=2, partitions=partitions,
                                     seconds=plan.seconds)  # fmt: skip
            costs.setdefault(partitions, []).append(spent * 1e6 / max(records, 1))
    return [
        row_of(
            f"{more} partitions in a request",
            costs[more][1:],
            costs[less][1:],
            f"ours, {less}",
            "µs a record",
            1.0,
            True,
        )
        for less, more in ((1, 100), (100, 1000))
    ]


def fetch_rows(running: list[System], plan: Plan) -> list[Row]:
    """Raw reads of 1 KB records in answers of 1 MB: from what was just written, and from a warm file."""
    rates: dict[tuple[str, str], list[float]] = {}
    cpu: dict[tuple[str, str], list[float]] = {}
    sizes = {"tail": min(24, plan.megabytes), "warm file": max(plan.megabytes, 128)}
    for system in running:
        for work in sizes:
            system.make_topic(work.replace(" ", "-"), 1)
    for turn in range(plan.rounds):
        for work, megabytes in sizes.items():
            for system in running:
                topic = work.replace(" ", "-")
                say(f"fetch, {work}, {system.name}, round {turn + 1} of {plan.rounds}")
                if work == "tail" or turn == 0:
                    topic = topic if work == "warm file" else f"tail-{turn}"
                    if work == "tail":
                        system.make_topic(topic, 1)
                    load("librdkafka", system, topic, megabytes=megabytes)
                rate, spent, done = load("fetch", system, topic, megabytes=megabytes, answer_bytes=1 << 20)
                rates.setdefault((work, system.name), []).append(rate)
                cpu.setdefault((work, system.name), []).append(spent * 1e9 / done)
    rows = []
    for work, goal in (("tail", 1.7), ("warm file", 1.0)):
        rows.append(row_of(f"fetch, {work}", rates[work, OURS], rates[work, KAFKA], KAFKA, "MB/s", goal))
        rows.append(
            row_of(f"fetch CPU, {work}", cpu[work, OURS], cpu[work, KAFKA], KAFKA, "ms/MB", 0.6, True)
        )
    return rows


def start_rows(plan: Plan) -> list[Row]:
    """Start to the first acknowledgement with 1,000 partitions, and idle memory; the goals stand as peers."""
    seconds, megabytes = [], []
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as folder:
        data = Path(folder) / "data"
        broker = processes.start_broker(data)
        System(OURS, broker.address, psutil.Process(broker.pid)).make_topic("thousand", 1000)
        broker.stop()
        for turn in range(max(plan.rounds, 3)):
            say(f"start with 1,000 partitions, round {turn + 1}")
            begin = time.perf_counter()
            broker = processes.start_broker(data)
            first_acknowledgement(broker.address)
            seconds.append(time.perf_counter() - begin)
            megabytes.append(psutil.Process(broker.pid).memory_info().rss / 1e6)
            broker.stop()
    return [
        row_of("start to first acknowledgement, 1,000 partitions", seconds, [0.3], "goal", "s", 1.0, True),
        row_of("idle memory after it", megabytes, [60.0], "goal", "MB", 1.0, True),
    ]


def first_acknowledgement(address: str) -> None:
    from bench.load import connect, produce_frame, receive

    with connect(address) as link:
        link.sendall(produce_frame("thousand", [0], 1))
        receive(link)
