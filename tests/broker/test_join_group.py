"""JoinGroup through the dispatcher, against what Apache Kafka 4.3.1 answers to the same requests."""

from __future__ import annotations

import re
from typing import Any

import pytest

from headwater.wire.errors import ErrorCode
from headwater.wire.messages.describe_groups import DescribeGroupsRequest
from tests.broker.conftest import Client, World
from tests.broker.members import Consumer, join_request, start_alone, start_together, subscription

UUID = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"


def state_of(client: Client, group: str) -> str:
    return str(client.ask(DescribeGroupsRequest(groups=[group]), 5).groups[0].group_state)


@pytest.mark.parametrize("version", range(4))
def test_before_version_4_a_new_member_is_taken_in_at_once(client: Client, version: int) -> None:
    response = client.ask(join_request("g"), version)
    assert (response.error_code, response.generation_id) == (ErrorCode.NONE, 1)
    assert response.leader == response.member_id
    assert [member.metadata for member in response.members] == [subscription("events")]
    assert re.fullmatch(f"test-{UUID}", response.member_id)


@pytest.mark.parametrize("version", range(4, 10))
def test_from_version_4_a_new_member_is_given_its_id_first(client: Client, version: int) -> None:
    first = client.ask(join_request("g"), version)
    assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert re.fullmatch(f"test-{UUID}", first.member_id)
    assert (first.generation_id, first.leader, first.members) == (-1, "", [])
    second = client.ask(join_request("g", first.member_id), version)
    assert (second.error_code, second.generation_id) == (ErrorCode.NONE, 1)
    assert second.protocol_name == "range"
    assert second.protocol_type == ("consumer" if version >= 7 else None)


@pytest.mark.parametrize("version", range(10))
def test_an_absent_protocol_is_null_from_version_7_and_empty_before(client: Client, version: int) -> None:
    response = client.ask(join_request("nobody", "unknown-member"), version)
    assert response.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert response.protocol_name == (None if version >= 7 else "")
    assert (response.protocol_type, response.member_id) == (None, "unknown-member")


REFUSED: dict[str, tuple[dict[str, Any], ErrorCode]] = {
    "no group": ({"group": ""}, ErrorCode.INVALID_GROUP_ID),
    "session too short": ({"session_timeout_ms": 5_999}, ErrorCode.INVALID_SESSION_TIMEOUT),
    "session too long": ({"session_timeout_ms": 1_800_001}, ErrorCode.INVALID_SESSION_TIMEOUT),
    "no protocols": ({"protocols": {}}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    "no protocol type": ({"protocol_type": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    "unknown member": ({"member_id": "x"}, ErrorCode.UNKNOWN_MEMBER_ID),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_join_that_makes_no_sense_is_refused(client: Client, case: str) -> None:
    fields, error = REFUSED[case]
    fields = {"group": "g", **fields}
    response = client.ask(join_request(fields.pop("group"), fields.pop("member_id", ""), **fields), 9)
    assert response.error_code == error
    assert response.generation_id == -1


def test_a_refused_join_leaves_an_empty_group_as_apache_kafka_does(client: Client) -> None:
    client.ask(join_request("g", protocols={}), 9)
    assert state_of(client, "g") == "Empty"


def test_a_member_of_another_protocol_is_refused(world: World, client: Client) -> None:
    start_alone(world, "g")
    other = client.ask(join_request("g", protocols={"sticky": b""}), 5)
    assert other.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    connect = client.ask(join_request("g", protocol_type="connect"), 5)
    assert connect.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_the_protocol_with_most_votes_among_those_all_support_is_chosen(world: World) -> None:
    everything = {"range": b"", "sticky": b"", "roundrobin": b""}
    first = start_alone(world, "g", protocols=everything)
    others = [Consumer(world, "g", protocols={"sticky": b"", "roundrobin": b""}) for _ in range(2)]
    for consumer in others:
        consumer.take_join(consumer.send_join())
    waiting = [consumer.send_join() for consumer in [*others, first]]
    world.settle()
    assert {pending.response.protocol_name for pending in waiting} == {"sticky"}


def test_joins_wait_until_everybody_is_there_and_begin_one_generation(world: World) -> None:
    first = start_alone(world, "g")
    assert first.generation == 1
    second, third = Consumer(world, "g"), Consumer(world, "g")
    for consumer in (second, third):
        assert consumer.take_join(consumer.send_join()) == ErrorCode.MEMBER_ID_REQUIRED
    waiting = [second.send_join(), third.send_join()]
    world.settle()
    assert not any(pending.done for pending in waiting)
    assert first.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    waiting.append(first.send_join())
    world.settle()
    assert [pending.response.generation_id for pending in waiting] == [2, 2, 2]
    assert {pending.response.leader for pending in waiting} == {first.member_id}
    assert [len(pending.response.members) for pending in waiting] == [0, 0, 3]


def test_a_member_that_does_not_come_back_in_time_is_out(world: World) -> None:
    first = start_alone(world, "g", rebalance_timeout_ms=20_000, session_timeout_ms=30_000)
    second = Consumer(world, "g")
    second.take_join(second.send_join())
    pending = second.send_join()
    world.advance(59_999)
    assert pending.done, (
        "the longest rebalance timeout of the members that were there counts, and theirs is up"
    )
    assert second.take_join(pending) == ErrorCode.NONE
    assert second.leader
    assert first.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_id_that_never_comes_back_holds_nobody_up_for_longer_than_its_session(world: World) -> None:
    first = start_alone(world, "g")
    lost = Consumer(world, "g", session_timeout_ms=7_000)
    assert lost.take_join(lost.send_join()) == ErrorCode.MEMBER_ID_REQUIRED
    pending = first.send_join()
    world.advance(6_999)
    assert not pending.done
    world.advance(1)
    assert first.take_join(pending) == ErrorCode.NONE
    assert lost.join() == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_waits_to_join_needs_no_heartbeat(world: World) -> None:
    first = start_alone(world, "g", session_timeout_ms=6_000, rebalance_timeout_ms=40_000)
    slow = Consumer(world, "g", session_timeout_ms=6_000, rebalance_timeout_ms=40_000)
    slow.take_join(slow.send_join())
    pending = slow.send_join()
    for _ in range(6):
        world.advance(5_000)
        assert first.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    assert first.join() == ErrorCode.NONE
    assert slow.take_join(pending) == ErrorCode.NONE


def test_a_repeated_join_of_a_follower_is_told_the_running_generation(world: World) -> None:
    _, follower = start_together(world, "g", 2)
    pending = follower.send_join()
    assert pending.done
    assert (pending.response.generation_id, pending.response.members) == (2, [])


def test_a_leader_that_joins_again_starts_a_rebalance(world: World) -> None:
    leader, follower = start_together(world, "g", 2)
    pending = leader.send_join()
    world.settle()
    assert not pending.done
    assert follower.join() == ErrorCode.NONE
    assert leader.take_join(pending) == ErrorCode.NONE
    assert (leader.generation, len(leader.members)) == (3, 2)


def test_a_follower_with_other_topics_starts_a_rebalance(world: World) -> None:
    leader, follower = start_together(world, "g", 2)
    follower.fields["protocols"] = {"range": subscription("events", "more")}
    pending = follower.send_join()
    assert not pending.done
    assert leader.join() == ErrorCode.NONE
    assert follower.take_join(pending) == ErrorCode.NONE


def test_while_the_assignment_is_awaited_the_leader_hears_again_who_is_there(world: World) -> None:
    consumer = Consumer(world, "g")
    consumer.join()
    pending = consumer.send_join()
    assert (pending.response.generation_id, len(pending.response.members)) == (1, 1)


def test_the_next_leader_is_one_that_came_back(world: World) -> None:
    leader, follower = start_together(world, "g", 2, rebalance_timeout_ms=10_000, session_timeout_ms=30_000)
    follower.fields["protocols"] = {"range": subscription("other")}
    pending = follower.send_join()
    world.advance(10_000)
    assert follower.take_join(pending) == ErrorCode.NONE
    assert follower.leader
    assert [member.member_id for member in follower.members] == [follower.member_id]
    assert leader.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_full_group_takes_in_nobody_else() -> None:
    world = World({"group.max.size": "1"})
    start_alone(world, "g")
    extra = world.client().ask(join_request("g"), 5)
    assert (extra.error_code, extra.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")


def test_the_initial_delay_lets_members_that_start_together_share_the_first_generation() -> None:
    world = World({"group.initial.rebalance.delay.ms": "3000"})
    first, second = Consumer(world, "g"), Consumer(world, "g")
    for consumer in (first, second):
        consumer.take_join(consumer.send_join())
    one = first.send_join()
    world.advance(2_000)
    two = second.send_join()
    world.advance(1_000)
    assert not one.done, "somebody came meanwhile: the delay begins again"
    world.advance(3_000)
    assert [pending.response.generation_id for pending in (one, two)] == [1, 1]


def test_the_initial_delay_ends_with_the_rebalance_timeout_however_many_come() -> None:
    world = World({"group.initial.rebalance.delay.ms": "3000"})
    first = Consumer(world, "g", rebalance_timeout_ms=7_000)
    first.take_join(first.send_join())
    pending = first.send_join()
    for _ in range(7):
        world.advance(1_000)
        if not pending.done:
            late = Consumer(world, "g", rebalance_timeout_ms=7_000)
            late.take_join(late.send_join())
            late.send_join()
    assert pending.done


# -------------------------------------------------------------- static members


def test_a_static_member_joins_without_a_second_round_under_its_instance_id(client: Client) -> None:
    response = client.ask(join_request("g", group_instance_id="i-1"), 5)
    assert response.error_code == ErrorCode.NONE
    assert re.fullmatch(f"i-1-{UUID}", response.member_id)
    assert response.members[0].group_instance_id == "i-1"


@pytest.mark.parametrize("version", [5, 7, 8, 9])
def test_a_static_leader_comes_back_to_its_generation_and_assignment(world: World, version: int) -> None:
    before = start_alone_static(world)
    after = Consumer(world, "g", instance="i-1")
    pending = after.send_join(version)
    world.settle()
    response = pending.response
    assert (response.error_code, response.generation_id) == (ErrorCode.NONE, 1)
    assert response.member_id != before.member_id
    if version >= 9:
        # It leads and knows that there is nothing to assign.
        assert (response.leader, response.skip_assignment) == (response.member_id, True)
        assert len(response.members) == 1
    else:
        # It must not assign anew: it is told that somebody else leads.
        assert (response.leader, response.skip_assignment) == (before.member_id, False)
        assert response.members == []
    after.take_join(pending)
    assert after.sync() == ErrorCode.NONE
    assert after.assignment == b"everything"


def start_alone_static(world: World) -> Consumer:
    consumer = Consumer(world, "g", instance="i-1")
    assert consumer.join() == ErrorCode.NONE
    assert consumer.sync({consumer.member_id: b"everything"}) == ErrorCode.NONE
    return consumer


def test_the_earlier_incarnation_of_a_static_member_is_fenced(world: World) -> None:
    before = start_alone_static(world)
    after = Consumer(world, "g", instance="i-1")
    assert after.join() == ErrorCode.NONE
    assert before.heartbeat() == ErrorCode.FENCED_INSTANCE_ID
    assert before.sync() == ErrorCode.FENCED_INSTANCE_ID
    assert before.join() == ErrorCode.FENCED_INSTANCE_ID
    assert after.heartbeat() == ErrorCode.NONE


def test_a_static_member_that_waits_to_join_is_fenced_by_its_successor(world: World) -> None:
    first = start_alone(world, "g")
    before, after = Consumer(world, "g", instance="i"), Consumer(world, "g", instance="i")
    waiting = before.send_join()
    assert not waiting.done
    pending = after.send_join()
    assert waiting.response.error_code == ErrorCode.FENCED_INSTANCE_ID
    assert first.join() == ErrorCode.NONE
    assert after.take_join(pending) == ErrorCode.NONE


def test_a_static_member_that_changes_the_chosen_protocol_starts_a_rebalance(world: World) -> None:
    both = {"range": b"", "sticky": b""}
    before = Consumer(world, "g", instance="i-1", protocols=both)
    before.join()
    before.sync({})
    after = Consumer(world, "g", instance="i-1", protocols={"sticky": b""})
    assert after.join() == ErrorCode.NONE
    assert after.generation == 2


def test_an_absent_static_member_keeps_its_place_in_a_rebalance_until_its_session_ends(world: World) -> None:
    static = Consumer(world, "g", instance="i", session_timeout_ms=60_000, rebalance_timeout_ms=10_000)
    static.join()
    static.sync({})
    other = Consumer(world, "g", session_timeout_ms=60_000, rebalance_timeout_ms=10_000)
    other.take_join(other.send_join())
    pending = other.send_join()
    world.advance(10_000)
    assert other.take_join(pending) == ErrorCode.NONE
    assert other.leader
    assert {member.group_instance_id for member in other.members} == {None, "i"}


def test_an_instance_id_cannot_be_used_with_the_id_of_somebody_else(world: World) -> None:
    consumer = start_alone_static(world)
    consumer.instance = "i-2"
    assert consumer.join() == ErrorCode.UNKNOWN_MEMBER_ID
    consumer.instance, consumer.member_id = "i-1", "somebody"
    assert consumer.join() == ErrorCode.FENCED_INSTANCE_ID


def test_two_promises_of_one_member_are_both_kept(world: World) -> None:
    start_alone(world, "g")
    second = Consumer(world, "g")
    second.take_join(second.send_join())
    lost, pending = second.send_join(), second.send_join()
    assert lost.response.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert not pending.done
