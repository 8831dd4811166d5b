"""DescribeTopicPartitions: topics page by page; the cursor says where the next page begins."""

from __future__ import annotations

from headwater.wire.schema import ZERO_UUID, Bool, Int16, Int32, String, Uuid, field, message, struct


@struct
class TopicRequest:
    name: String = ""


@struct
class Cursor:
    topic_name: String = ""
    partition_index: Int32 = 0


@message(key=75, versions=(0, 0), flexible=0)
class DescribeTopicPartitionsRequest:
    topics: list[TopicRequest] = field()
    response_partition_limit: Int32 = 2000
    cursor: Cursor | None = None


@struct
class DescribeTopicPartitionsResponsePartition:
    error_code: Int16 = 0
    partition_index: Int32 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = -1
    replica_nodes: list[Int32] = field()
    isr_nodes: list[Int32] = field()
    eligible_leader_replicas: list[Int32] | None = None
    last_known_elr: list[Int32] | None = None
    offline_replicas: list[Int32] = field()


@struct
class DescribeTopicPartitionsResponseTopic:
    error_code: Int16 = 0
    name: String | None = ""
    topic_id: Uuid = ZERO_UUID
    is_internal: Bool = False
    partitions: list[DescribeTopicPartitionsResponsePartition] = field()
    topic_authorized_operations: Int32 = -2147483648


@struct
class ResponseCursor:
    topic_name: String = ""
    partition_index: Int32 = 0


@message(key=75, versions=(0, 0), flexible=0)
class DescribeTopicPartitionsResponse:
    throttle_time_ms: Int32 = 0
    topics: list[DescribeTopicPartitionsResponseTopic] = field()
    next_cursor: ResponseCursor | None = None
