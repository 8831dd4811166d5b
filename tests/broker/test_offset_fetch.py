"""OffsetFetch: every shape of the answer, and what it must not show."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.wire.errors import ErrorCode
from headwater.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from headwater.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.broker.conftest import Client, World
from tests.broker.members import Producer, commit_request, committed


def fetch_old(
    client: Client, version: int, topics: Any, group: str = "g", **fields: Any
) -> list[tuple[Any, ...]]:
    asked = (
        None
        if topics is None
        else [OffsetFetchRequestTopic(name=name, partition_indexes=list(parts)) for name, parts in topics]
    )
    response = client.ask(OffsetFetchRequest(group_id=group, topics=asked, **fields), version)
    assert response.error_code == ErrorCode.NONE
    return flat(response.topics)


def flat(topics: Any) -> list[tuple[Any, ...]]:
    return [
        (topic.name, part.partition_index, part.committed_offset, part.metadata, part.error_code)
        for topic in topics
        for part in topic.partitions
    ]


@pytest.mark.parametrize("version", range(1, 8))
def test_partitions_without_an_offset_answer_minus_one_and_no_error(client: Client, version: int) -> None:
    client.create("events", partitions=2)
    client.ask(commit_request("g", {("events", 1): 7}, metadata="note"), 8)
    assert fetch_old(client, version, [("events", [0, 1, 9]), ("none", [0])]) == [
        ("events", 0, -1, "", 0),
        ("events", 1, 7, "note", 0),
        ("events", 9, -1, "", 0),
        ("none", 0, -1, "", 0),
    ]
    assert fetch_old(client, version, [("events", [0])], group="nobody") == [("events", 0, -1, "", 0)]


@pytest.mark.parametrize("version", range(2, 8))
def test_null_topics_mean_all_and_empty_ones_none(client: Client, version: int) -> None:
    client.create("events", partitions=2)
    client.create("more")
    client.ask(commit_request("g", {("events", 1): 7, ("more", 0): 8}), 8)
    assert fetch_old(client, version, None) == [("events", 1, 7, "", 0), ("more", 0, 8, "", 0)]
    assert fetch_old(client, version, []) == []
    assert fetch_old(client, version, None, group="nobody") == []


@pytest.mark.parametrize("version", [8, 9])
def test_several_groups_are_answered_each_for_itself(client: Client, version: int) -> None:
    client.create("events")
    client.ask(commit_request("a", {("events", 0): 1}), 8)
    client.ask(commit_request("b", {("events", 0): 2}), 8)
    asked = [OffsetFetchRequestTopics(name="events", partition_indexes=[0])]
    request = OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(group_id="a", topics=asked),
            OffsetFetchRequestGroup(group_id="b", topics=None),
            OffsetFetchRequestGroup(group_id="c", topics=None),
        ]
    )
    answer = client.ask(request, version)
    assert [(group.group_id, flat(group.topics), group.error_code) for group in answer.groups] == [
        ("a", [("events", 0, 1, "", 0)], 0),
        ("b", [("events", 0, 2, "", 0)], 0),
        ("c", [], 0),
    ]


def test_version_10_asks_and_answers_by_topic_id(client: Client) -> None:
    topic_id = client.create("events")
    client.ask(commit_request("g", {("events", 0): 3}), 8)

    def ask(identities: list[bytes] | None) -> list[tuple[bytes, int, int]]:
        asked = (
            None
            if identities is None
            else [OffsetFetchRequestTopics(topic_id=each, partition_indexes=[0]) for each in identities]
        )
        groups = [OffsetFetchRequestGroup(group_id="g", topics=asked)]
        return [
            (bytes(topic.topic_id), part.committed_offset, part.error_code)
            for topic in client.ask(OffsetFetchRequest(groups=groups), 10).groups[0].topics
            for part in topic.partitions
        ]

    unknown = (b"\x05" * 16, -1, ErrorCode.UNKNOWN_TOPIC_ID)
    assert ask([b"\x05" * 16, topic_id]) == [(topic_id, 3, 0), unknown]
    assert ask(None) == [(topic_id, 3, 0)]


def test_an_offset_that_a_transaction_is_about_to_move_is_unstable_for_who_insists(
    world: World, client: Client
) -> None:
    client.create("events")
    client.ask(commit_request("g", {("events", 0): 3}), 8)
    producer = Producer(world, "tx")
    producer.begin()
    assert producer.add_offsets("g") == ErrorCode.NONE
    assert producer.commit_offset("g", 9) == ErrorCode.NONE
    assert committed(client, "g") == 3
    assert committed(client, "g", stable=True) == -ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert fetch_old(client, 7, None, require_stable=True) == [
        ("events", 0, -1, "", ErrorCode.UNSTABLE_OFFSET_COMMIT)
    ]
    assert fetch_old(client, 7, None) == [("events", 0, 3, "", 0)]
    assert producer.end(commit=True) == ErrorCode.NONE
    assert committed(client, "g", stable=True) == 9


def test_who_insists_on_stable_offsets_sees_every_commit_that_came_before(
    world: World, client: Client
) -> None:
    client.create("events")
    commit = client.submit(commit_request("g", {("events", 0): 3}), 8)
    asked = [OffsetFetchRequestGroup(group_id="g", topics=None)]
    answer = client.submit(OffsetFetchRequest(groups=asked, require_stable=True), 8)
    assert not commit.done
    world.log.commit()
    assert flat(answer.response.groups[0].topics) == [("events", 0, 3, "", 0)]


@pytest.mark.parametrize("restart", [False, True])
def test_offsets_of_a_deleted_topic_are_not_those_of_its_successor(
    world: World, client: Client, restart: bool
) -> None:
    client.create("events")
    client.ask(commit_request("g", {("events", 0): 3}), 8)
    client.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="events")], timeout_ms=1_000), 6)
    assert fetch_old(client, 7, None) == []
    client.create("events")
    if restart:
        world.restart()
        client = world.client()
    assert committed(client, "g") == -1
    assert fetch_old(client, 7, None) == []
    client.ask(commit_request("g", {("events", 0): 1}), 8)
    assert committed(client, "g") == 1
