"""DescribeGroups: what an administrator sees of a group."""

from __future__ import annotations

import pytest

from headwater.wire.errors import ErrorCode
from headwater.wire.messages.describe_groups import DescribeGroupsRequest
from tests.broker.conftest import Client, World
from tests.broker.members import Consumer, start_alone, start_together, subscription

NOT_ASKED = -2147483648


@pytest.mark.parametrize("version", range(7))
def test_a_stable_group_shows_what_its_members_offer_and_have(
    world: World, client: Client, version: int
) -> None:
    leader, follower = start_together(world, "g", 2)
    (group,) = client.ask(DescribeGroupsRequest(groups=["g"]), version).groups
    assert (group.error_code, group.group_id, group.group_state) == (0, "g", "Stable")
    assert (group.protocol_type, group.protocol_data) == ("consumer", "range")
    assert group.authorized_operations == NOT_ASKED
    shown = {member.member_id: member for member in group.members}
    assert shown.keys() == {leader.member_id, follower.member_id}
    for consumer in (leader, follower):
        member = shown[consumer.member_id]
        assert (member.client_id, member.client_host) == ("consumer", "/127.0.0.1")
        assert bytes(member.member_metadata) == subscription("events")
        assert bytes(member.member_assignment) == consumer.assignment


def test_before_it_is_stable_a_group_shows_only_who_is_there(world: World, client: Client) -> None:
    consumer = Consumer(world, "g", instance="i")
    consumer.join()
    (group,) = client.ask(DescribeGroupsRequest(groups=["g"]), 5).groups
    assert (group.group_state, group.protocol_data) == ("CompletingRebalance", "")
    (member,) = group.members
    assert (member.group_instance_id, bytes(member.member_metadata)) == ("i", b"")
    other = Consumer(world, "g")
    other.take_join(other.send_join())
    other.send_join()
    (group,) = client.ask(DescribeGroupsRequest(groups=["g"]), 5).groups
    assert group.group_state == "PreparingRebalance"


def test_an_unknown_group_is_dead_and_from_version_6_an_error(client: Client) -> None:
    (group,) = client.ask(
        DescribeGroupsRequest(groups=["none"], include_authorized_operations=True), 5
    ).groups
    assert (group.error_code, group.group_state, group.authorized_operations) == (0, "Dead", 3400)
    (group,) = client.ask(
        DescribeGroupsRequest(groups=["none"], include_authorized_operations=True), 6
    ).groups
    assert (group.error_code, group.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert (group.error_message, group.authorized_operations) == ("Group none not found.", NOT_ASKED)


def test_operations_are_shown_when_they_are_asked_for(world: World, client: Client) -> None:
    start_alone(world, "g")
    request = DescribeGroupsRequest(groups=["g"], include_authorized_operations=True)
    assert client.ask(request, 5).groups[0].authorized_operations == 3400
