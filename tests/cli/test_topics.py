"""`headwater topics` as people and programs see it."""
from __future__ import annotations

import json

import pytest

import headwater
from headwater.cli.topics import cleans
from headwater.client.topics import Setting
from tests.any_kafka import Kafka, Shell, wait_for, words


def test_topics_are_listed_for_people_and_for_programs(kafka: Kafka, shell: Shell) -> None:
    topic = kafka.topic(partitions=3)
    assert [topic, "3"] in words(shell("topics", "list").out)
    assert f"{topic}\t3\n" in shell("topics", "list", "--plain").out
    listed = [json.loads(line) for line in shell("topics", "list", "--json").out.splitlines()]
    assert {"topic": topic, "partitions": 3} in listed
    assert not any(found["topic"].startswith("__") for found in listed)


def test_a_topic_is_described(kafka: Kafka, shell: Shell) -> None:
    topic = kafka.topic(partitions=2, retention_ms="1000000")
    kafka.fill(topic, ["a", "b"], partition=1)
    text = shell("topics", "describe", topic).out
    assert text.startswith(f"{topic}  id ")
    assert ["retention.ms", "1000000"] in words(text)
    found = json.loads(shell("topics", "describe", topic, "--json").out)
    assert [(part["start"], part["end"]) for part in found["partitions"]] == [(0, 0), (0, 2)]
    assert found["offsets"] == 2
    assert found["settings"]["retention.ms"] == "1000000"
    assert "compression.type" not in found["settings"]
    everything = json.loads(shell("topics", "describe", topic, "--json", "--all-settings").out)
    assert everything["settings"]["compression.type"] == "producer"
    line = shell("topics", "describe", topic, "--plain").out.splitlines()[1].split("\t")
    assert (line[0], line[1], line[5:]) == (topic, "1", ["0", "2"])


def test_compaction_that_does_not_run_is_said(kafka: Kafka, shell: Shell) -> None:
    topic = kafka.topic(cleanup_policy="compact")
    with headwater.open(kafka.address) as log:
        cleaned = cleans(log.topics.broker_settings(log.topics.describe(topic).partitions[0].leader))
    notes = json.loads(shell("topics", "describe", topic, "--json").out)["notes"]
    assert len(notes) == (0 if cleaned else 1)
    assert all("nothing is cleaned" in note for note in notes)
    assert ("nothing is cleaned" in shell("topics", "describe", topic).out) is not cleaned
    assert not json.loads(shell("topics", "describe", kafka.topic(), "--json").out)["notes"]


@pytest.mark.parametrize("settings, cleaned", [
    ({"log.cleaner.enable": "true"}, True), ({"log.cleaner.enable": "false"}, False),
    ({"log.cleaner.delete.retention.ms": "1"}, False), ({"some.other.brokers.setting": "1"}, True),
])
def test_a_brokers_own_settings_say_whether_it_compacts(settings: dict[str, str], cleaned: bool) -> None:
    assert cleans({name: Setting(value, False) for name, value in settings.items()}) is cleaned


def test_settings_are_changed_given_back_and_typos_named(kafka: Kafka, shell: Shell) -> None:
    topic = kafka.topic()
    shell("topics", "set", topic, "retention.ms=1234567", "segment.ms=7654321")
    shell("topics", "set", topic, "--default", "segment.ms")

    def settled() -> bool:  # Apache Kafka's broker hears of a change a moment after the controller has answered
        settings = json.loads(shell("topics", "describe", topic, "--json").out)["settings"]
        return settings.get("retention.ms") == "1234567" and "segment.ms" not in settings

    wait_for(settled)
    assert "Did you mean retention.ms?" in shell("topics", "set", topic, "retentoin.ms=1", code=2).err


def test_partitions_are_added(kafka: Kafka, shell: Shell) -> None:
    topic = kafka.topic()
    shell("topics", "grow", topic, "--partitions", "4")
    assert f"{topic}\t4\n" in shell("topics", "list", "--plain").out


def test_deleting_is_shown_first_and_done_with_yes(kafka: Kafka, shell: Shell) -> None:
    topic = kafka.topic()
    kafka.fill(topic, ["a"])
    done = shell("topics", "delete", topic)
    assert done.out == f"{topic}: 1 partition, 1 record\n"
    assert "Add --yes" in done.err
    assert f"{topic}\t" in shell("topics", "list", "--plain").out
    shell("topics", "delete", topic, "--yes")
    assert f"{topic}\t" not in shell("topics", "list", "--plain").out


def test_the_log_may_be_named_at_the_noun_or_at_the_verb(kafka: Kafka, no_broker: Shell) -> None:
    topic = kafka.topic()
    for line in (["--log", kafka.address, "list"], ["list", "--log", kafka.address]):
        assert topic in no_broker("topics", *line).out
    assert topic in no_broker("topics", "list", env={"HEADWATER_LOG": kafka.address}).out
