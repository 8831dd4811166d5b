"""LeaveGroup: members go now instead of being missed later.

Up to v2 one member leaves and its error is the request's; from v3 several do (an administrator removes
static ones by their instance id), each with its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.broker.groups import membership
from headwater.broker.registry import handles
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse

if TYPE_CHECKING:
    from headwater.broker.registry import Context
    from headwater.broker.state import Broker

MANY_SINCE = 3


@handles(LeaveGroupRequest, versions=(0, 5))
def leave_group(broker: Broker, request: LeaveGroupRequest, context: Context) -> LeaveGroupResponse:
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    if context.api_version < MANY_SINCE:
        answers = membership.leave(broker.groups, request.group_id, [(request.member_id, None)])
        return LeaveGroupResponse(error_code=answers[0].error_code)
    leaving = [(member.member_id, member.group_instance_id) for member in request.members]
    return LeaveGroupResponse(members=membership.leave(broker.groups, request.group_id, leaving))
