"""CreateTopics, DeleteTopics, CreatePartitions: every way to be wrong, in Kafka's words."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.wire.errors import ErrorCode
from headwater.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from headwater.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from headwater.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

from .conftest import Client, World
from .test_produce import batch

ILLEGAL = "contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"


def topic(
    name: str, partitions: int = 1, factor: int = 1, assignments: Any = (), configs: Any = ()
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=[CreatableReplicaAssignment(partition_index=index, broker_ids=ids) for index, ids in assignments],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs],
    )


def create(client: Client, *topics: CreatableTopic, version: int = 7, **fields: Any) -> list[Any]:
    return list(client.ask(CreateTopicsRequest(topics=list(topics), **fields), version).topics)


def refusal(client: Client, asked: CreatableTopic) -> tuple[ErrorCode, str | None]:
    (result,) = create(client, asked)
    assert (result.num_partitions, result.replication_factor, result.configs) == (-1, -1, [])
    assert result.topic_id == bytes(16)
    assert client.world.broker.topics.get(asked.name) is None
    return ErrorCode(result.error_code), result.error_message


def test_a_new_topic_is_answered_with_id_counts_and_settings(client: Client, world: World) -> None:
    (result,) = create(client, topic("t", 2, configs=[("retention.ms", "100000")]))
    assert (result.error_code, result.error_message) == (0, None)
    assert (result.num_partitions, result.replication_factor) == (2, 1)
    assert result.topic_id == world.broker.topics.get("t").topic_id  # type: ignore[union-attr]
    settings = {each.name: (each.value, each.config_source) for each in result.configs}
    assert settings["retention.ms"] == ("100000", 1)
    assert settings["cleanup.policy"] == ("delete", 5)
    assert list(settings) == sorted(settings) and len(settings) == 33


@pytest.mark.parametrize("version", range(2, 8))
def test_every_version_creates_what_survives_power_loss(client: Client, world: World, version: int) -> None:
    (result,) = create(client, topic("t"), version=version)
    assert result.error_code == 0
    world.crash()
    assert world.broker.topics.get("t") is not None


def test_minus_1_means_the_brokers_defaults() -> None:
    client = World({"num.partitions": "4"}).client()
    (result,) = create(client, topic("t", -1, -1))
    assert (result.num_partitions, result.replication_factor) == (4, 1)


def test_validate_only_changes_nothing(client: Client, world: World) -> None:
    (result,) = create(client, topic("t"), validate_only=True)
    assert (result.error_code, result.num_partitions) == (0, 1)
    assert world.broker.topics.get("t") is None


@pytest.mark.parametrize(
    ("asked", "code", "sentence"),
    [
        (topic("t", 0), 37, "Number of partitions was set to an invalid non-positive value."),
        (topic("t", -2), 37, "Number of partitions was set to an invalid non-positive value."),
        (topic("t", 1, 0), 38, "Replication factor must be larger than 0, or -1 to use the default value."),
        (
            topic("t", 1, 2), 38,
            "Unable to replicate the partition 2 time(s): The target replication factor of 2 cannot be reached "
            "because only 1 broker(s) are registered or some brokers have all their log directories cordoned.",
        ),
        (topic("a b"), 17, f"Topic name is invalid: 'a b' {ILLEGAL}"),
        (topic(""), 17, "Topic name is invalid: the empty string is not allowed"),
        (topic("."), 17, "Topic name is invalid: '.' is not allowed"),
        (topic(".."), 17, "Topic name is invalid: '..' is not allowed"),
        (
            topic("x" * 250), 17,
            f"Topic name is invalid: the length of '{'x' * 250}' is longer than the max allowed length 249",
        ),
        (topic("__cluster_metadata"), 42, "Creation of internal topic __cluster_metadata is prohibited."),
        (
            topic("t", 1, -1, [(0, [1])]), 42,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        ),
        (
            topic("t", -1, 1, [(0, [1])]), 42,
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        ),
        (topic("t", -1, -1, [(1, [1])]), 39, "partitions should be a consecutive 0-based integer sequence"),
        (
            topic("t", -1, -1, [(0, [1, 1])]), 39,
            "The manual partition assignment includes the broker 1 more than once.",
        ),
        (
            topic("t", -1, -1, [(0, [2])]), 39,
            "The manual partition assignment includes broker 2, but no such broker is registered.",
        ),
        (topic("t", -1, -1, [(0, [])]), 39, "The manual partition assignment includes an empty replica list."),
        (
            topic("t", -1, -1, [(0, [1]), (0, [1])]), 39,
            "Found multiple manual partition assignments for partition 0",
        ),
        (topic("t", configs=[("foo", "1")]), 40, "Unknown topic config name: foo"),
        (
            topic("t", configs=[("retention.ms", "abc")]), 40,
            "Invalid value abc for configuration retention.ms: Not a number of type LONG",
        ),
        (
            topic("t", configs=[("retention.ms", None)]), 40,
            "Null value not supported for topic configs: retention.ms",
        ),
        (
            topic("t", configs=[("segment.bytes", "10")]), 40,
            "Invalid value 10 for configuration segment.bytes: Value must be at least 1048576",
        ),
        (topic("t", 10_001), 44, "Excessively large number of partitions per request."),
    ],
)  # fmt: skip
def test_a_topic_is_refused_in_kafkas_words(client: Client, asked: CreatableTopic, code: int, sentence: str) -> None:
    assert refusal(client, asked) == (code, sentence)


def test_a_topic_exists_once(client: Client) -> None:
    create(client, topic("t"))
    (again,) = create(client, topic("t"))
    assert (again.error_code, again.error_message) == (36, "Topic 't' already exists.")


def test_dot_and_underscore_collide_with_what_exists_only(client: Client) -> None:
    assert [each.error_code for each in create(client, topic("a.b_c"), topic("a_b.c"))] == [0, 0]
    (third,) = create(client, topic("a.b.c"))
    assert third.error_code == 17
    assert third.error_message.startswith("Topic 'a.b.c' collides with existing topic: a")


def test_a_name_that_is_asked_for_twice_is_refused_and_comes_last(client: Client, world: World) -> None:
    results = create(client, topic("b", 1, 3), topic("c"), topic("b"))
    assert [(each.name, each.error_code) for each in results] == [("c", 0), ("b", 42)]
    assert results[1].error_message == "Duplicate topic name."
    assert world.broker.topics.get("b") is None


def test_without_time_nothing_is_done(client: Client, world: World) -> None:
    (result,) = create(client, topic("t"), timeout_ms=0)
    assert (result.error_code, result.error_message) == (ErrorCode.REQUEST_TIMED_OUT, None)
    assert world.broker.topics.get("t") is None


def test_a_manual_assignment_to_the_one_broker_is_fine(client: Client) -> None:
    (result,) = create(client, topic("t", -1, -1, [(1, [1]), (0, [1])]))
    assert (result.error_code, result.num_partitions) == (0, 2)


# --- deletion


def delete(client: Client, *names: str, version: int = 5, **fields: Any) -> list[tuple[str, int, str | None]]:
    request = DeleteTopicsRequest(topic_names=list(names), **{"timeout_ms": 1000} | fields)
    return [(each.name, each.error_code, each.error_message) for each in client.ask(request, version).responses]


def delete_states(client: Client, *states: tuple[str | None, bytes]) -> list[tuple[str | None, bytes, int]]:
    topics = [DeleteTopicState(name=name, topic_id=topic_id) for name, topic_id in states]
    responses = client.ask(DeleteTopicsRequest(topics=topics, timeout_ms=1000), 6).responses
    return [(each.name, each.topic_id, each.error_code) for each in responses]


NONE = bytes(16)


@pytest.mark.parametrize("version", range(1, 6))
def test_a_deleted_topic_is_gone_with_its_records_after_power_loss_too(
    client: Client, world: World, version: int
) -> None:
    client.create("t")
    client.produce("t", batch())
    assert delete(client, "t", version=version)[0][1] == 0
    assert client.produce("t", batch()).error_code == 3
    world.crash()
    assert world.broker.topics.get("t") is None
    again = world.client()
    again.create("t")
    assert again.fetch("t", 0).high_watermark == 0


def test_unknown_and_repeated_names_are_named(client: Client) -> None:
    client.create("t")
    assert delete(client, "none", "t", "t") == [
        ("none", 3, "This server does not host this topic-partition."),
        ("t", 42, "Duplicate topic name."),
    ]
    assert delete(client, "t", timeout_ms=0) == [("t", 7, None)]
    assert delete(client, "t") == [("t", 0, None)]


def test_topics_are_deleted_by_id(client: Client, world: World) -> None:
    a, b = client.create("a"), client.create("b")
    assert delete_states(client, (None, a), ("b", NONE)) == [("a", a, 0), ("b", b, 0)]
    assert world.log.topics == {}
    assert delete_states(client, (None, a)) == [(None, a, ErrorCode.UNKNOWN_TOPIC_ID)]


def test_a_topic_is_named_in_one_way_once(client: Client, world: World) -> None:
    a = client.create("a")
    assert delete_states(client, ("a", a)) == [("a", a, 42)]
    assert delete_states(client, (None, NONE)) == [(None, NONE, 42)]
    assert delete_states(client, (None, a), (None, a)) == [(None, a, 42)]
    assert delete_states(client, (None, a), ("a", NONE)) == [("a", a, 42)]
    assert world.broker.topics.get("a") is not None


def test_deletion_can_be_switched_off() -> None:
    client = World({"delete.topic.enable": "false"}).client()
    client.create("t")
    assert delete(client, "t")[0][1] == ErrorCode.TOPIC_DELETION_DISABLED


# --- more partitions


def grow(client: Client, *asked: tuple[str, int, Any], **fields: Any) -> list[tuple[str, int, str | None]]:
    topics = [
        CreatePartitionsTopic(
            name=name,
            count=count,
            assignments=None if ids is None else [CreatePartitionsAssignment(broker_ids=each) for each in ids],
        )
        for name, count, ids in asked
    ]
    request = CreatePartitionsRequest(topics=topics, **{"timeout_ms": 1000} | fields)
    return [(each.name, each.error_code, each.error_message) for each in client.ask(request, 3).results]


def test_partitions_are_added_and_survive(client: Client, world: World) -> None:
    client.create("t", 2)
    client.produce("t", batch(b"kept"))
    assert grow(client, ("t", 4, None)) == [("t", 0, None)]
    assert client.produce("t", batch(), partition=3).error_code == 0
    world.crash()
    assert len(world.broker.topics.get("t").partitions) == 4  # type: ignore[union-attr]
    assert world.client().fetch("t", 0).high_watermark == 1


@pytest.mark.parametrize(
    ("count", "assignments", "code", "sentence"),
    [
        (2, None, 37, "Topic already has 2 partition(s)."),
        (1, None, 37, "The topic t currently has 2 partition(s); 1 would not be an increase."),
        (-1, None, 37, "The topic t currently has 2 partition(s); -1 would not be an increase."),
        (4, [[1]], 39, "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified."),
        (4, [], 39, "Attempted to add 2 additional partition(s), but only 0 assignment(s) were specified."),
        (3, [[2]], 39, "The manual partition assignment includes broker 2, but no such broker is registered."),
        (3, [[1, 1]], 39, "The manual partition assignment includes the broker 1 more than once."),
        (3, [[]], 39, "The manual partition assignment includes an empty replica list."),
        (10_000_001, None, -1, None),
    ],
)
def test_more_partitions_are_refused_in_kafkas_words(
    client: Client, count: int, assignments: Any, code: int, sentence: str | None
) -> None:
    client.create("t", 2)
    assert grow(client, ("t", count, assignments)) == [("t", code, sentence)]
    assert len(client.world.broker.topics.get("t").partitions) == 2  # type: ignore[union-attr]


def test_requests_for_more_partitions_are_checked_as_a_whole(client: Client) -> None:
    client.create("t", 2)
    assert grow(client, ("none", 3, None)) == [("none", 3, None)]
    assert grow(client, ("t", 3, None), ("none", 1, None), ("t", 4, None)) == [
        ("t", 42, "Duplicate topic name."),
        ("none", 3, None),
    ]
    assert grow(client, ("t", 3, None), validate_only=True) == [("t", 0, None)]
    assert len(client.world.broker.topics.get("t").partitions) == 2  # type: ignore[union-attr]
    assert grow(client, ("t", 3, [[1]])) == [("t", 0, None)]
