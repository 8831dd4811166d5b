"""FindCoordinator: on one node every group and every transaction has the same coordinator, this one.

The first question about groups (or transactions) creates their internal topic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.broker.registry import handles
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

if TYPE_CHECKING:
    from headwater.broker.registry import Context
    from headwater.broker.state import Broker

GROUP, TRANSACTION, SHARE = 0, 1, 2
BATCHED_SINCE = 4
SHARE_SINCE = 6
MALFORMED = (
    "This most likely occurs because of a request being malformed by the client library or the message was"
    " sent to an incompatible broker. See the broker logs for more details."
)
SHARE_KEY_PARTS = 3  # group:topic id:partition


def refused(request: FindCoordinatorRequest, error: KafkaError) -> FindCoordinatorResponse:
    message = MALFORMED if error.code == ErrorCode.INVALID_REQUEST else error.message
    if request.coordinator_keys:
        return FindCoordinatorResponse(
            coordinators=[
                Coordinator(key=key, node_id=-1, port=-1, error_code=error.code, error_message=message)
                for key in request.coordinator_keys
            ]
        )
    return FindCoordinatorResponse(error_code=error.code, error_message=message, node_id=-1, port=-1)


@handles(FindCoordinatorRequest, versions=(0, 6), error=refused)
def find_coordinator(
    broker: Broker, request: FindCoordinatorRequest, context: Context
) -> FindCoordinatorResponse:
    many = context.api_version >= BATCHED_SINCE
    if many and not request.coordinator_keys:
        return FindCoordinatorResponse()
    if request.key_type not in (GROUP, TRANSACTION, SHARE):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if many:
        found = [_coordinator(broker, request.key_type, key, context) for key in request.coordinator_keys]
        return FindCoordinatorResponse(coordinators=found)
    error = _find(broker, request.key_type, request.key, context.api_version)
    if error != ErrorCode.NONE:
        raise KafkaError(error)
    return FindCoordinatorResponse(
        error_message="NONE",  # Kafka spells the code out here, and only here
        node_id=broker.node_id,
        host=context.listener_host,
        port=context.listener_port,
    )


def _coordinator(broker: Broker, key_type: int, key: str, context: Context) -> Coordinator:
    error = _find(broker, key_type, key, context.api_version)
    if error != ErrorCode.NONE:
        return Coordinator(key=key, node_id=-1, port=-1, error_code=error)
    return Coordinator(
        key=key, node_id=broker.node_id, host=context.listener_host, port=context.listener_port
    )  # fmt: skip


def _find(broker: Broker, key_type: int, key: str, version: int) -> ErrorCode:
    if key_type == SHARE:
        # No share groups yet: what Kafka answers while it has no place for their state.
        named = version >= SHARE_SINCE and len(key.split(":")) == SHARE_KEY_PARTS
        return ErrorCode.COORDINATOR_NOT_AVAILABLE if named else ErrorCode.INVALID_REQUEST
    if broker.log.fenced is not None:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    (broker.groups if key_type == GROUP else broker.transactions).topic.ensure()
    return ErrorCode.NONE
