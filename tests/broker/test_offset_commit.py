"""OffsetCommit: who may commit, what is refused, and that nothing is shown before it is durable."""

from __future__ import annotations

import pytest

from headwater.wire.errors import ErrorCode
from headwater.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.broker.conftest import Client, World
from tests.broker.members import (
    Consumer,
    commit_error,
    commit_request,
    committed,
    start_alone,
    start_together,
)

NONE = ErrorCode.NONE


@pytest.mark.parametrize("version", range(2, 10))
def test_somebody_who_is_no_member_may_commit_for_an_empty_group(client: Client, version: int) -> None:
    client.create("events")
    assert commit_error(client.ask(commit_request("g", {("events", 0): 7}), version)) == NONE
    assert committed(client, "g") == 7


def test_an_offset_is_seen_only_when_it_is_durable_and_then_by_everybody(
    world: World, client: Client
) -> None:
    client.create("events")
    client.ask(commit_request("g", {("events", 0): 7}), 8)
    pending = client.submit(commit_request("g", {("events", 0): 8}), 8)
    assert not pending.done
    assert committed_now(world) == 7
    world.log.commit()
    assert pending.done
    assert committed_now(world) == 8


def committed_now(world: World) -> int:
    """What the broker would answer at this moment, without letting anything be written."""
    known = world.broker.groups.visible.get("g", "events", 0)
    assert known is not None
    return known.offset


def test_a_power_loss_takes_back_nothing_that_was_answered(world: World, client: Client) -> None:
    client.create("events")
    client.ask(commit_request("g", {("events", 0): 7}), 8)
    client.submit(commit_request("g", {("events", 0): 9}), 8)
    world.crash(seed=1)
    assert committed(world.client(), "g") in (7, 9)


REFUSED = {
    "unknown topic": ({("none", 0): 1}, {}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "unknown partition": ({("events", 5): 1}, {}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "negative partition": ({("events", -1): 1}, {}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "long note": ({("events", 0): 1}, {"metadata": "x" * 4097}, ErrorCode.OFFSET_METADATA_TOO_LARGE),
    "longest note": ({("events", 0): 1}, {"metadata": "é" * 4096}, NONE),
    "no note": ({("events", 0): 1}, {"metadata": None}, NONE),
    "a generation of nobody": (
        {("events", 0): 1}, {"generation_id_or_member_epoch": 3, "member_id": "m"}, ErrorCode.ILLEGAL_GENERATION,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_kept_is_refused(client: Client, case: str) -> None:
    offsets, fields, error = REFUSED[case]
    client.create("events")
    assert commit_error(client.ask(commit_request("g", offsets, **fields), 8)) == error


def test_from_version_9_an_unknown_group_is_said_to_be_unknown(client: Client) -> None:
    client.create("events")
    request = commit_request("g", {("events", 0): 1}, generation_id_or_member_epoch=3, member_id="m")
    assert commit_error(client.ask(request, 9)) == ErrorCode.GROUP_ID_NOT_FOUND
    assert commit_error(client.ask(request, 8)) == ErrorCode.ILLEGAL_GENERATION


def test_one_partition_that_is_refused_does_not_harm_the_others(client: Client) -> None:
    client.create("events", partitions=2)
    request = commit_request("g", {("events", 0): 1, ("events", 9): 1, ("none", 0): 1, ("events", 1): 1})
    answer = {
        (topic.name, part.partition_index): part.error_code
        for topic in client.ask(request, 8).topics
        for part in topic.partitions
    }
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answer == {("events", 9): unknown, ("none", 0): unknown, ("events", 0): 0, ("events", 1): 0}


def test_a_commit_of_nothing_is_answered_with_nothing(client: Client) -> None:
    assert client.ask(commit_request("g", {}, generation_id_or_member_epoch=5), 8).topics == []


def test_only_members_of_the_generation_may_commit(world: World, client: Client) -> None:
    client.create("events")
    leader, follower = start_together(world, "g", 2)
    assert follower.commit(1) == NONE
    assert commit_error(client.ask(commit_request("g", {("events", 0): 2}), 8)) == ErrorCode.UNKNOWN_MEMBER_ID
    follower.generation -= 1
    assert follower.commit(3) == ErrorCode.ILLEGAL_GENERATION
    follower.generation += 1
    follower.member_id, kept = "stranger", follower.member_id
    assert follower.commit(4) == ErrorCode.UNKNOWN_MEMBER_ID
    follower.member_id = kept
    assert leader.commit(5) == NONE
    assert committed(client, "g") == 5


def test_while_members_rejoin_the_old_generation_may_still_commit(world: World, client: Client) -> None:
    client.create("events")
    leader, follower = start_together(world, "g", 2)
    leader.send_join()
    assert follower.commit(6) == NONE


def test_while_the_assignment_is_awaited_nobody_may_commit(world: World, client: Client) -> None:
    client.create("events")
    consumer = Consumer(world, "g")
    consumer.join()
    assert consumer.commit(1) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_fenced_static_member_may_not_commit(world: World, client: Client) -> None:
    client.create("events")
    before = Consumer(world, "g", instance="i")
    before.join()
    before.sync({})
    after = Consumer(world, "g", instance="i")
    after.join()
    assert before.commit(1) == ErrorCode.FENCED_INSTANCE_ID
    assert after.commit(2) == NONE


def test_version_10_names_topics_by_id(client: Client) -> None:
    topic_id = client.create("events")

    def ask(identity: bytes, partition: int) -> tuple[bytes, int]:
        part = OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=4, committed_metadata=""
        )  # fmt: skip
        request = OffsetCommitRequest(
            group_id="g",
            generation_id_or_member_epoch=-1,
            topics=[OffsetCommitRequestTopic(topic_id=identity, partitions=[part])],
        )
        (topic,) = client.ask(request, 10).topics
        return bytes(topic.topic_id), topic.partitions[0].error_code

    assert ask(topic_id, 0) == (topic_id, NONE)
    assert committed(client, "g") == 4
    assert ask(topic_id, 8) == (topic_id, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert ask(b"\x01" * 16, 0) == (b"\x01" * 16, ErrorCode.UNKNOWN_TOPIC_ID)
    assert ask(bytes(16), 0) == (bytes(16), ErrorCode.UNKNOWN_TOPIC_ID)


@pytest.mark.parametrize("restart", [False, True])
def test_offsets_of_an_empty_group_expire_seven_days_after_it_became_empty(restart: bool) -> None:
    world = World()
    client = world.client()
    client.create("events")
    consumer = start_alone(world, "g", session_timeout_ms=1_800_000)
    assert consumer.commit(5) == NONE
    for _ in range(8 * 48):  # eight days in use: nothing expires
        world.advance(1_800_000 - 1)
        assert consumer.heartbeat() == NONE
    consumer.leave()
    world.advance(7 * 86_400_000 - 1_200_000)
    assert committed(client, "g") == 5
    if restart:
        world.restart()
        client = world.client()
    world.advance(1_800_000)
    assert committed(client, "g") == -1
    assert world.broker.groups.get("g") is None
    world.restart()
    assert committed(world.client(), "g") == -1
    assert world.broker.groups.get("g") is None


def test_a_live_group_forgets_topics_that_it_no_longer_reads(world: World, client: Client) -> None:
    client.create("events")
    client.create("old")
    consumer = start_alone(world, "g", session_timeout_ms=1_800_000)
    consumer.commit(5)
    consumer.commit(6, topic="old")
    for _ in range(8 * 48):
        world.advance(1_800_000 - 1)
        assert consumer.heartbeat() == NONE
    assert committed(client, "g", "events") == 5
    assert committed(client, "g", "old") == -1


def test_a_client_that_asked_for_a_shorter_life_gets_it(world: World, client: Client) -> None:
    client.create("events")
    client.ask(commit_request("g", {("events", 0): 5}, retention_time_ms=60_000), 4)
    assert committed(client, "g") == 5
    world.advance(600_000)
    assert committed(client, "g") == -1


@pytest.mark.parametrize("restart", [False, True])
def test_a_client_that_asks_for_the_longest_life_there_is_gets_it(
    world: World, client: Client, restart: bool
) -> None:
    client.create("events")
    request = commit_request("g", {("events", 0): 7}, retention_time_ms=(1 << 63) - 1)
    assert commit_error(client.ask(request, 3)) == NONE
    if restart:
        world.restart()
    world.advance(400 * 86_400_000)
    assert committed(world.client(), "g") == 7


def test_a_group_that_only_holds_offsets_loses_them_seven_days_after_each_commit(
    world: World, client: Client
) -> None:
    client.create("events", partitions=2)
    client.ask(commit_request("g", {("events", 0): 5}), 8)
    world.advance(6 * 86_400_000)
    client.ask(commit_request("g", {("events", 1): 6}), 8)
    world.advance(86_400_000 + 600_000)
    assert (committed(client, "g", partition=0), committed(client, "g", partition=1)) == (-1, 6)
