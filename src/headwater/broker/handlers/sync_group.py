"""SyncGroup: the leader brings the assignment, everybody gets its part once that is durable.

From v5 a member must say which protocol it believes in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.broker.groups import membership
from headwater.broker.registry import handles
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from headwater.broker.registry import Context
    from headwater.broker.state import Broker
    from headwater.broker.waiting import Later

PROTOCOL_REQUIRED_SINCE = 5


@handles(SyncGroupRequest, versions=(0, 5))
def sync_group(
    broker: Broker, request: SyncGroupRequest, context: Context
) -> SyncGroupResponse | Later[SyncGroupResponse]:
    named = request.protocol_type is not None and request.protocol_name is not None
    if context.api_version >= PROTOCOL_REQUIRED_SINCE and not named:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    return membership.sync(broker.groups, request)
