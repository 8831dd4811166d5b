"""Heartbeat: a member of a classic group is alive, and hears whether it must join again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.broker.groups import membership
from headwater.broker.registry import handles
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

if TYPE_CHECKING:
    from headwater.broker.registry import Context
    from headwater.broker.state import Broker


@handles(HeartbeatRequest, versions=(0, 4))
def heartbeat(broker: Broker, request: HeartbeatRequest, _context: Context) -> HeartbeatResponse:
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    membership.heartbeat(
        broker.groups, request.group_id, request.member_id, request.group_instance_id, request.generation_id
    )  # fmt: skip
    return HeartbeatResponse()
