"""The Java clients of two releases, through Apache Kafka's own tools, against our broker."""

from __future__ import annotations

import json
import re

import pytest

from tests.peers.apache_kafka import RELEASE, RELEASE_IN_SPARK, missing, run_tool
from tests.peers.conftest import need

RELEASES = [RELEASE, RELEASE_IN_SPARK]


@pytest.fixture(autouse=True)
def java() -> None:
    need(missing())


def ran(tool: str, *arguments: str, release: str, stdin: str = "") -> str:
    done = run_tool(tool, *arguments, release=release, stdin=stdin, seconds_max=180)
    assert done.returncode == 0, f"{tool} {release}: {done.stdout[-1500:]}{done.stderr[-1500:]}"
    return done.stdout


@pytest.mark.parametrize("release", RELEASES)
def test_topics_are_made_described_grown_and_deleted(ours: str, release: str) -> None:
    server, topic = ("--bootstrap-server", ours), f"java-topics-{release}"
    ran("TopicCommand", *server, "--create", "--topic", topic, "--partitions", "2", release=release)
    ran("TopicCommand", *server, "--alter", "--topic", topic, "--partitions", "3", release=release)
    described = ran("TopicCommand", *server, "--describe", "--topic", topic, release=release)
    assert "PartitionCount: 3" in described
    assert topic in ran("TopicCommand", *server, "--list", release=release).split()
    ran("TopicCommand", *server, "--delete", "--topic", topic, release=release)
    assert topic not in ran("TopicCommand", *server, "--list", release=release).split()


@pytest.mark.parametrize("release", RELEASES)
def test_configurations_are_changed_and_shown(ours: str, release: str) -> None:
    server, topic = ("--bootstrap-server", ours), f"java-configs-{release}"
    ran("TopicCommand", *server, "--create", "--topic", topic, release=release)
    entity = ("--entity-type", "topics", "--entity-name", topic)
    ran("ConfigCommand", *server, *entity, "--alter", "--add-config", "retention.ms=123456", release=release)
    assert "retention.ms=123456" in ran("ConfigCommand", *server, *entity, "--describe", release=release)


@pytest.mark.parametrize("release", RELEASES)
def test_lines_go_through_the_console_tools_and_a_group(ours: str, release: str) -> None:
    server, topic, group = ("--bootstrap-server", ours), f"java-console-{release}", f"java-group-{release}"
    lines = [f"line {number}" for number in range(100)]
    ran("ConsoleProducer", *server, "--topic", topic, release=release, stdin="\n".join(lines) + "\n")
    read = ran("ConsoleConsumer", *server, "--topic", topic, "--group", group, "--from-beginning",
               "--max-messages", "100", "--timeout-ms", "60000", release=release)  # fmt: skip
    assert read.splitlines() == lines
    described = ran("ConsumerGroupCommand", *server, "--describe", "--group", group, release=release)
    row = next(line.split() for line in described.splitlines() if topic in line)
    assert row[3:6] == ["100", "100", "0"]  # current offset, log end offset, lag
    arguments = ("--group", group, "--topic", topic, "--reset-offsets", "--to-earliest", "--execute")
    assert re.search(rf"{topic}\s+0\s+0", ran("ConsumerGroupCommand", *server, *arguments, release=release))
    ran("ConsumerGroupCommand", *server, "--delete", "--group", group, release=release)


@pytest.mark.parametrize("release", RELEASES)
def test_the_verifiable_clients_agree(ours: str, release: str) -> None:
    topic = f"java-verifiable-{release}"
    produced = ran("VerifiableProducer", "--bootstrap-server", ours, "--topic", topic, "--max-messages", "5000",
                   "--acks", "-1", release=release)  # fmt: skip
    end = json.loads(produced.strip().splitlines()[-1])
    assert (end["sent"], end["acked"]) == (5000, 5000)
    consumed = ran("VerifiableConsumer", "--bootstrap-server", ours, "--topic", topic, "--group-id", f"{topic}-group",
                   "--max-messages", "5000", "--reset-policy", "earliest", release=release)  # fmt: skip
    rows = [json.loads(line) for line in consumed.splitlines()]
    assert sum(row["count"] for row in rows if row["name"] == "records_consumed") == 5000


@pytest.mark.parametrize("release", RELEASES)
def test_the_performance_tools_run_to_their_end(ours: str, release: str) -> None:
    topic = f"java-performance-{release}"
    shown = ran("ProducerPerformance", "--topic", topic, "--num-records", "20000", "--record-size", "1000",
                "--throughput", "-1", "--producer-props", f"bootstrap.servers={ours}", "acks=all",
                "compression.type=lz4", release=release)  # fmt: skip
    assert "20000 records sent" in shown
    consumed = ran("ConsumerPerformance", "--bootstrap-server", ours, "--topic", topic,
                   "--messages" if release.startswith("3.") else "--num-records", "20000", release=release)  # fmt: skip
    assert "20000" in consumed


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("records", [pytest.param(5_000), pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_transactional_copy_is_whole_in_order_and_once(ours: str, release: str, records: int) -> None:
    """Kafka's own system test: seeded messages copied in transactions of 750."""
    source, target = f"java-copy-{release}-{records}", f"java-copied-{release}-{records}"
    server = ("--bootstrap-server", ours)
    for topic in (source, target):
        ran("TopicCommand", *server, "--create", "--topic", topic, "--partitions", "1", release=release)
    ran("VerifiableProducer", *server, "--topic", source, "--max-messages", str(records), release=release)
    copier = "TransactionalMessageCopier"
    ran(copier, "--broker-list", ours, "--input-topic", source, "--output-topic", target, "--input-partition", "0",
        "--max-messages", str(records), "--transaction-size", "750", "--consumer-group", f"{target}-group",
        "--transactional-id", f"{target}-copier", "--enable-random-aborts", release=release)  # fmt: skip
    copied = ran("ConsoleConsumer", *server, "--topic", target, "--from-beginning", "--max-messages", str(records),
                 "--isolation-level", "read_committed", "--timeout-ms", "60000", release=release)  # fmt: skip
    assert copied.splitlines() == [str(number) for number in range(records)]
