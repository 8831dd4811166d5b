"""DescribeCluster: the cluster id and its brokers.

v1 tells brokers from controllers, v2 includes fenced brokers.
"""

from __future__ import annotations

from headwater.wire.schema import Bool, Int8, Int16, Int32, String, field, message, struct


@message(key=60, versions=(0, 2), flexible=0)
class DescribeClusterRequest:
    include_cluster_authorized_operations: Bool = False
    endpoint_type: Int8 = field(since=1, default=1)
    include_fenced_brokers: Bool = field(since=2)


@struct
class DescribeClusterBroker:
    broker_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: String | None = None
    is_fenced: Bool = field(since=2)


@message(key=60, versions=(0, 2), flexible=0)
class DescribeClusterResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    endpoint_type: Int8 = field(since=1, default=1)
    cluster_id: String = ""
    controller_id: Int32 = -1
    brokers: list[DescribeClusterBroker] = field()
    cluster_authorized_operations: Int32 = -2147483648
