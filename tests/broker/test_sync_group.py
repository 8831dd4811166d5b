"""SyncGroup: nobody has an assignment that is not durable, and nobody waits for a leader for ever."""

from __future__ import annotations

import pytest

from headwater.wire.errors import ErrorCode
from headwater.wire.messages.sync_group import SyncGroupRequest
from tests.broker.conftest import Client, World
from tests.broker.members import Consumer, start_alone, start_together


def test_followers_wait_for_the_leader_and_get_their_part(world: World) -> None:
    leader, *followers = start_together(world, "g", 3)
    for consumer in (leader, *followers):
        assert consumer.assignment == b"part of " + consumer.member_id.encode()


def test_an_assignment_is_answered_only_when_it_is_durable(world: World) -> None:
    consumer = Consumer(world, "g")
    consumer.join()
    pending = consumer.send_sync({consumer.member_id: b"part"})
    assert not pending.done
    world.log.commit()
    assert bytes(pending.response.assignment) == b"part"


def test_a_member_that_the_leader_forgot_gets_nothing(world: World) -> None:
    consumer = Consumer(world, "g")
    consumer.join()
    assert consumer.sync({"stranger": b"x"}) == ErrorCode.NONE
    assert consumer.assignment == b""


def test_a_rebalance_takes_the_syncs_that_wait_with_it(world: World) -> None:
    leader, follower = start_together(world, "g", 2)
    rejoin = leader.send_join()
    assert follower.join() == ErrorCode.NONE
    leader.take_join(rejoin)
    waiting = follower.send_sync()
    third = Consumer(world, "g")
    third.take_join(third.send_join())
    third.send_join()
    assert waiting.response.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert bytes(waiting.response.assignment) == b""


def test_members_that_never_sync_are_removed_after_the_rebalance_timeout(world: World) -> None:
    first = start_alone(world, "g", session_timeout_ms=60_000, rebalance_timeout_ms=20_000)
    second = Consumer(world, "g", session_timeout_ms=60_000, rebalance_timeout_ms=20_000)
    second.take_join(second.send_join())
    pending = second.send_join()
    assert first.join() == ErrorCode.NONE
    assert second.take_join(pending) == ErrorCode.NONE
    assert first.sync({}) == ErrorCode.NONE
    world.advance(20_000)
    assert second.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    assert first.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_leader_that_vanishes_before_it_assigned_does_not_hold_the_others(world: World) -> None:
    first = start_alone(world, "g", session_timeout_ms=60_000, rebalance_timeout_ms=20_000)
    second = Consumer(world, "g", session_timeout_ms=60_000, rebalance_timeout_ms=20_000)
    second.take_join(second.send_join())
    pending = second.send_join()
    assert first.join() == ErrorCode.NONE
    assert second.take_join(pending) == ErrorCode.NONE
    waiting = second.send_sync()
    world.advance(20_000)
    assert waiting.response.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert second.join() == ErrorCode.NONE
    assert second.leader


def test_a_later_sync_of_a_stable_group_is_told_the_same_again(world: World) -> None:
    consumer = start_alone(world, "g")
    assert consumer.sync() == ErrorCode.NONE
    assert consumer.assignment == b"everything"


@pytest.mark.parametrize("version", range(6))
def test_who_is_not_of_this_generation_is_refused(world: World, client: Client, version: int) -> None:
    consumer = start_alone(world, "g")

    def error(**fields: object) -> int:
        values = {"group_id": "g", "generation_id": 1, "member_id": consumer.member_id, **fields}
        if version >= 5:
            values = {"protocol_type": "consumer", "protocol_name": "range", **values}
        return int(client.ask(SyncGroupRequest(**values), version).error_code)

    assert error() == ErrorCode.NONE
    assert error(group_id="") == ErrorCode.INVALID_GROUP_ID
    assert error(group_id="other") == ErrorCode.UNKNOWN_MEMBER_ID
    assert error(member_id="other") == ErrorCode.UNKNOWN_MEMBER_ID
    assert error(generation_id=0) == ErrorCode.ILLEGAL_GENERATION
    assert error(generation_id=2) == ErrorCode.ILLEGAL_GENERATION
    if version >= 5:
        for wrong in ({"protocol_type": None}, {"protocol_name": None}, {"protocol_name": "sticky"}):
            assert error(**wrong) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_sync_during_the_join_phase_is_sent_back_to_join(world: World) -> None:
    leader, follower = start_together(world, "g", 2)
    leader.send_join()
    assert follower.sync() == ErrorCode.REBALANCE_IN_PROGRESS
