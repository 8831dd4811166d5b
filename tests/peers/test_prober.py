"""Our broker against Apache Kafka, answer by answer."""

from __future__ import annotations

import pytest

import tests.peers.scenarios  # noqa: F401  (registers the scenarios)
from tests.peers import prober
from tests.peers.apache_kafka import ApacheKafka


@pytest.mark.parametrize("name", sorted(prober.SCENARIOS))
def test_our_answers_are_apache_kafkas(name: str, kafka: ApacheKafka, ours: str, plant: str) -> None:
    prefix = "p-" + name.replace(":", "-").replace("_", "-")[:60]
    theirs = prober.run(name, kafka.address, prefix)
    found = prober.differences(theirs, prober.planted(prober.run(name, ours, prefix), plant))
    assert not found, f"{len(found)} differences:\n" + "\n".join(found)


@pytest.mark.parametrize("name", ["number", "silence"])
def test_the_prober_sees_a_planted_difference(ours: str, name: str) -> None:
    transcript = prober.run("produce:in_every_version", ours, f"planted-{name}")
    assert prober.differences(transcript, prober.planted(transcript, "")) == []
    assert prober.differences(transcript, prober.planted(transcript, name))
