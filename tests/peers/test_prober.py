"""Our broker against Apache Kafka, answer by answer."""

from __future__ import annotations

import copy

import pytest

import tests.peers.scenarios  # noqa: F401  (registers the scenarios)
from tests.peers import prober
from tests.peers.apache_kafka import ApacheKafka


@pytest.mark.parametrize("name", sorted(prober.SCENARIOS))
def test_our_answers_are_apache_kafkas(name: str, kafka: ApacheKafka, ours: str) -> None:
    prefix = "p-" + name.replace(":", "-").replace("_", "-")[:60]
    theirs = prober.run(name, kafka.address, prefix)
    found = prober.differences(theirs, prober.run(name, ours, prefix))
    assert not found, f"{len(found)} differences:\n" + "\n".join(found)


def test_the_prober_sees_a_planted_difference(ours: str) -> None:
    transcript = prober.run("produce:in_every_version", ours, "planted")
    planted = copy.deepcopy(transcript)
    label, tree = planted[0]
    tree["responses"][0]["partition_responses"][0]["base_offset"] += 1
    assert prober.differences(transcript, copy.deepcopy(transcript)) == []
    assert any("base_offset" in line for line in prober.differences(transcript, planted))
