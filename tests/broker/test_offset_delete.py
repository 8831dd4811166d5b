"""OffsetDelete: single offsets of a group that does not read them."""

from __future__ import annotations

from typing import Any

from headwater.wire.errors import ErrorCode
from headwater.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tests.broker.conftest import Client, World
from tests.broker.members import Producer, commit_request, committed, start_alone


def delete(client: Client, group: str, *partitions: tuple[str, int]) -> tuple[int, list[tuple[Any, ...]]]:
    asked = [
        OffsetDeleteRequestTopic(name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=index)])
        for topic, index in partitions
    ]
    response = client.ask(OffsetDeleteRequest(group_id=group, topics=asked), 0)
    found = [
        (topic.name, part.partition_index, part.error_code)
        for topic in response.topics
        for part in topic.partitions
    ]
    return response.error_code, found


def test_an_offset_is_gone_for_ever(world: World, client: Client) -> None:
    client.create("events", partitions=2)
    client.ask(commit_request("g", {("events", 0): 3, ("events", 1): 4}), 8)
    assert delete(client, "g", ("events", 0)) == (0, [("events", 0, 0)])
    assert (committed(client, "g"), committed(client, "g", partition=1)) == (-1, 4)
    world.restart()
    assert (committed(world.client(), "g"), committed(world.client(), "g", partition=1)) == (-1, 4)


def test_an_offset_that_was_never_committed_may_be_deleted(client: Client) -> None:
    client.create("events")
    client.create("more")
    client.ask(commit_request("g", {("events", 0): 3}), 8)
    assert delete(client, "g", ("more", 0)) == (0, [("more", 0, 0)])


def test_what_does_not_exist_is_said_first(client: Client) -> None:
    client.create("events")
    client.ask(commit_request("g", {("events", 0): 3}), 8)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert delete(client, "g", ("events", 0), ("none", 0)) == (0, [("none", 0, unknown), ("events", 0, 0)])


def test_an_unknown_group_is_the_error_of_the_whole_answer(client: Client) -> None:
    client.create("events")
    assert delete(client, "none", ("events", 0)) == (ErrorCode.GROUP_ID_NOT_FOUND, [])
    assert delete(client, "", ("events", 0)) == (ErrorCode.INVALID_GROUP_ID, [])


def test_a_live_consumer_group_keeps_what_it_reads(world: World, client: Client) -> None:
    client.create("events")
    client.create("old")
    consumer = start_alone(world, "g")
    consumer.commit(1)
    consumer.commit(2, topic="old")
    assert delete(client, "g", ("events", 0), ("old", 0)) == (
        0, [("events", 0, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC), ("old", 0, 0)],
    )  # fmt: skip
    assert (committed(client, "g"), committed(client, "g", "old")) == (1, -1)


def test_a_live_group_of_another_kind_is_left_alone(world: World, client: Client) -> None:
    client.create("events")
    start_alone(world, "g", protocol_type="connect", protocols={"sessioned": b""})
    assert delete(client, "g", ("events", 0)) == (ErrorCode.NON_EMPTY_GROUP, [])


def test_the_end_of_a_transaction_does_not_bring_a_deleted_offset_back(world: World, client: Client) -> None:
    client.create("events")
    producer = Producer(world, "tx")
    producer.begin()
    producer.add_offsets("g")
    producer.commit_offset("g", 9)
    assert delete(client, "g", ("events", 0)) == (0, [("events", 0, 0)])
    assert producer.end(commit=True) == ErrorCode.NONE
    assert committed(client, "g") == -1
    world.restart()
    assert committed(world.client(), "g") == -1
