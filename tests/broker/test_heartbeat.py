"""Heartbeat: it keeps a member, and says when to join again."""

from __future__ import annotations

from headwater.wire.errors import ErrorCode
from headwater.wire.messages.describe_groups import DescribeGroupsRequest
from headwater.wire.messages.heartbeat import HeartbeatRequest
from tests.broker.conftest import Client, World
from tests.broker.members import Consumer, start_alone, start_together


def test_a_member_lives_as_long_as_it_beats(world: World) -> None:
    consumer = start_alone(world, "g", session_timeout_ms=10_000)
    for _ in range(10):
        world.advance(9_999)
        assert consumer.heartbeat() == ErrorCode.NONE


def test_a_member_that_falls_silent_is_removed_after_its_session_timeout(
    world: World, client: Client
) -> None:
    silent = start_alone(world, "g", session_timeout_ms=10_000)
    world.advance(9_999)
    assert state(client) == "Stable"
    world.advance(1)
    assert state(client) == "Empty"
    assert silent.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def state(client: Client) -> str:
    return str(client.ask(DescribeGroupsRequest(groups=["g"]), 5).groups[0].group_state)


def test_the_others_share_what_a_silent_member_had(world: World) -> None:
    leader, follower = start_together(world, "g", 2, session_timeout_ms=10_000)
    world.advance(6_000)
    assert leader.heartbeat() == ErrorCode.NONE
    world.advance(4_000)
    assert leader.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    assert leader.join() == ErrorCode.NONE
    assert (leader.generation, len(leader.members)) == (3, 1)
    assert follower.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_jump_of_the_wall_clock_removes_nobody(world: World) -> None:
    consumer = start_alone(world, "g")
    for jump_ms in (365 * 86_400_000, -2 * 365 * 86_400_000):
        world.clock.jump(jump_ms)
        world.settle()
        assert consumer.heartbeat() == ErrorCode.NONE


def test_while_the_assignment_is_awaited_a_heartbeat_is_fine(world: World) -> None:
    consumer = Consumer(world, "g")
    consumer.join()
    assert consumer.heartbeat() == ErrorCode.NONE


def test_who_is_not_of_this_generation_is_refused(world: World, client: Client) -> None:
    consumer = start_alone(world, "g")

    def error(**fields: object) -> int:
        values = {"group_id": "g", "generation_id": 1, "member_id": consumer.member_id, **fields}
        return int(client.ask(HeartbeatRequest(**values), 4).error_code)

    assert error() == ErrorCode.NONE
    assert error(group_id="") == ErrorCode.INVALID_GROUP_ID
    assert error(group_id="other") == ErrorCode.UNKNOWN_MEMBER_ID
    assert error(member_id="other") == ErrorCode.UNKNOWN_MEMBER_ID
    assert error(generation_id=2) == ErrorCode.ILLEGAL_GENERATION
    assert error(group_instance_id="i") == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_commit_is_a_sign_of_life_too(world: World, client: Client) -> None:
    client.create("events")
    consumer = start_alone(world, "g", session_timeout_ms=10_000)
    for offset in range(5):
        world.advance(9_000)
        assert consumer.commit(offset) == ErrorCode.NONE
