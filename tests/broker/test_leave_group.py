"""LeaveGroup: one member or many, dynamic or static, joined or about to."""

from __future__ import annotations

import pytest

from headwater.wire.errors import ErrorCode
from headwater.wire.messages.describe_groups import DescribeGroupsRequest
from headwater.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tests.broker.conftest import Client, World
from tests.broker.members import Consumer, start_alone, start_together


def test_the_others_are_told_at_once(world: World) -> None:
    leader, follower = start_together(world, "g", 2)
    assert follower.leave() == ErrorCode.NONE
    assert leader.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    assert leader.join() == ErrorCode.NONE
    assert len(leader.members) == 1


def test_the_last_member_leaves_an_empty_group_of_the_next_generation(world: World, client: Client) -> None:
    consumer = start_alone(world, "g")
    assert consumer.leave() == ErrorCode.NONE
    (group,) = client.ask(DescribeGroupsRequest(groups=["g"]), 5).groups
    assert (group.group_state, group.protocol_type, group.members) == ("Empty", "consumer", [])
    again = start_alone(world, "g")
    assert again.generation == 3


@pytest.mark.parametrize("version", [0, 1, 2])
def test_before_version_3_the_error_of_the_member_is_that_of_the_answer(
    world: World, client: Client, version: int
) -> None:
    consumer = start_alone(world, "g")

    def error(group: str, member: str) -> int:
        response = client.ask(LeaveGroupRequest(group_id=group, member_id=member), version)
        assert response.members == []
        return int(response.error_code)

    assert error("", consumer.member_id) == ErrorCode.INVALID_GROUP_ID
    assert error("other", consumer.member_id) == ErrorCode.UNKNOWN_MEMBER_ID
    assert error("g", "other") == ErrorCode.UNKNOWN_MEMBER_ID
    assert error("g", consumer.member_id) == ErrorCode.NONE


@pytest.mark.parametrize("version", [3, 4, 5])
def test_several_leave_each_with_its_own_answer(world: World, client: Client, version: int) -> None:
    static = Consumer(world, "g", instance="i")
    static.join()
    static.sync({})
    pending = Consumer(world, "g")
    pending.take_join(pending.send_join())
    leaving = [
        MemberIdentity(member_id="", group_instance_id="i"),
        MemberIdentity(member_id="", group_instance_id="j"),
        MemberIdentity(member_id="stranger", group_instance_id=None),
        MemberIdentity(member_id=pending.member_id, group_instance_id=None),
    ]
    response = client.ask(LeaveGroupRequest(group_id="g", members=leaving), version)
    assert response.error_code == ErrorCode.NONE
    assert [
        (member.member_id, member.group_instance_id, member.error_code) for member in response.members
    ] == [
        ("", "i", ErrorCode.NONE),
        ("", "j", ErrorCode.UNKNOWN_MEMBER_ID),
        ("stranger", None, ErrorCode.UNKNOWN_MEMBER_ID),
        (pending.member_id, None, ErrorCode.NONE),
    ]


def test_a_static_member_may_only_be_removed_by_its_own_member_id(world: World) -> None:
    static = Consumer(world, "g", instance="i")
    static.join()
    static.sync({})
    static.member_id, kept = "another", static.member_id
    assert static.leave() == ErrorCode.FENCED_INSTANCE_ID
    static.member_id = kept
    assert static.leave() == ErrorCode.NONE


def test_an_unknown_group_is_the_members_error_from_version_3(client: Client) -> None:
    leaving = [MemberIdentity(member_id="m", group_instance_id=None)]
    response = client.ask(LeaveGroupRequest(group_id="none", members=leaving), 5)
    assert response.error_code == ErrorCode.NONE
    assert [member.error_code for member in response.members] == [ErrorCode.UNKNOWN_MEMBER_ID]


def test_whoever_waits_when_it_is_removed_is_told(world: World, client: Client) -> None:
    start_alone(world, "g")
    joining = Consumer(world, "g")
    joining.take_join(joining.send_join())
    waiting = joining.send_join()
    assert not waiting.done
    assert joining.leave() == ErrorCode.NONE
    assert waiting.response.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_leaving_member_ends_the_wait_of_the_others(world: World) -> None:
    leader, first, second = start_together(world, "g", 3)
    waiting = [leader.send_join(), first.send_join()]
    world.settle()
    assert not any(pending.done for pending in waiting)
    assert second.leave() == ErrorCode.NONE
    assert all(pending.response.error_code == ErrorCode.NONE for pending in waiting)
