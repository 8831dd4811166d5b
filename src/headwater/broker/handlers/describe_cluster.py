"""DescribeCluster, v0-2: the one broker, which is also the controller. v1 asks for a kind of endpoint; ours are all
of brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.broker.registry import Context, handles
from headwater.broker.topics import ALL_CLUSTER_OPERATIONS, NOT_ASKED
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)  # fmt: skip

if TYPE_CHECKING:
    from headwater.broker.state import Broker

BROKERS, CONTROLLERS = 1, 2


@handles(DescribeClusterRequest, versions=(0, 2))
def describe_cluster(
    broker: Broker, request: DescribeClusterRequest, context: Context
) -> DescribeClusterResponse:
    if request.endpoint_type == CONTROLLERS:
        raise KafkaError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
        )
    if request.endpoint_type != BROKERS:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {request.endpoint_type}"
        )
    here = DescribeClusterBroker(broker_id=broker.node_id, host=context.listener_host, port=context.listener_port)
    allowed = ALL_CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
    return DescribeClusterResponse(
        cluster_id=broker.cluster_id,
        controller_id=broker.node_id,
        brokers=[here],
        cluster_authorized_operations=allowed,
    )
