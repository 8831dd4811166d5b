"""DescribeGroups: state and members. From v6 a group that does not exist is an error, before it is Dead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.broker.groups.group import STABLE, Group
from headwater.broker.groups.protocols import coordinator_order
from headwater.broker.registry import handles
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

if TYPE_CHECKING:
    from headwater.broker.registry import Context
    from headwater.broker.state import Broker

NOT_FOUND_SINCE = 6
EVERY_OPERATION = 3400  # bits of READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS: nobody is refused


def refused(request: DescribeGroupsRequest, error: KafkaError) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(
        groups=[DescribedGroup(error_code=error.code, group_id=group_id) for group_id in request.groups]
    )


@handles(DescribeGroupsRequest, versions=(0, 6), error=refused)
def describe_groups(
    broker: Broker, request: DescribeGroupsRequest, context: Context
) -> DescribeGroupsResponse:
    described = []
    for group_id in coordinator_order(request.groups, broker.groups.topic.count):
        answer = _describe(broker, group_id, context.api_version)
        if request.include_authorized_operations and answer.error_code == ErrorCode.NONE:
            answer.authorized_operations = EVERY_OPERATION
        described.append(answer)
    return DescribeGroupsResponse(groups=described)


def _describe(broker: Broker, group_id: str, version: int) -> DescribedGroup:
    try:
        group = broker.groups.get(group_id)
    except KafkaError as error:
        return DescribedGroup(error_code=error.code, error_message=error.message, group_id=group_id)
    if group is None:
        if version < NOT_FOUND_SINCE:
            return DescribedGroup(group_id=group_id, group_state="Dead")
        return DescribedGroup(
            error_code=ErrorCode.GROUP_ID_NOT_FOUND,
            error_message=f"Group {group_id} not found.",
            group_id=group_id,
            group_state="Dead",
        )
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if group.state is STABLE else "",
        members=_members(group),
    )


def _members(group: Group) -> list[DescribedGroupMember]:
    """What members offer is shown under the chosen protocol, so only when one is in use."""
    return [
        DescribedGroupMember(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            member_metadata=member.metadata(group.protocol_name) if group.state is STABLE else b"",
            member_assignment=member.assignment,
        )
        for member in group.members.values()
    ]
