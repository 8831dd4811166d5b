"""JoinGroup: become, or remain, a member of a classic group. The answer comes when the rebalance is done.

v1 has a timeout for the rebalance, v4 gives a member its id first (KIP-394), v5 knows static members, from
v7 an absent protocol is null, v9 spares a returning static leader the assignment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.broker.registry import handles
from headwater.broker.waiting import Later
from headwater.wire.errors import KafkaError
from headwater.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

if TYPE_CHECKING:
    from headwater.broker.registry import Context
    from headwater.broker.state import Broker

NULL_PROTOCOL_SINCE = 7


def refused(_request: JoinGroupRequest, error: KafkaError) -> JoinGroupResponse:
    """Readable in every version; what has gone wrong here is not the member's protocol."""
    return JoinGroupResponse(error_code=error.code, protocol_name="")


@handles(JoinGroupRequest, versions=(0, 9), error=refused)
def join_group(broker: Broker, request: JoinGroupRequest, context: Context) -> Later[JoinGroupResponse]:
    promise: Later[JoinGroupResponse] = Later()
    answer: Later[JoinGroupResponse] = Later()

    def shape(response: JoinGroupResponse) -> None:
        if response.protocol_name is None and context.api_version < NULL_PROTOCOL_SINCE:
            response.protocol_name = ""
        answer.set(response)

    promise.on_set(shape)
    try:
        broker.groups.join(request, context, promise)
    except KafkaError as error:
        promise.set(JoinGroupResponse(error_code=error.code, protocol_name=None))
    return answer
