"""Produce: append record batches to partitions.

v8 names the records that caused a refusal, v9 is flexible, v10 adds leader hints (tagged), v12 adds
partitions to the transaction implicitly, v13 names topics by id.
"""

from __future__ import annotations

from headwater.wire.schema import Int16, Int32, Int64, Records, String, Uuid, field, message, struct


@struct
class PartitionProduceData:
    index: Int32 = 0
    records: Records | None = None


@struct
class TopicProduceData:
    name: String = field(until=12, ignorable=True)
    topic_id: Uuid = field(since=13, ignorable=True)
    partition_data: list[PartitionProduceData] = field()


@message(key=0, versions=(3, 13), flexible=9)
class ProduceRequest:
    transactional_id: String | None = None
    acks: Int16 = 0
    timeout_ms: Int32 = 0
    topic_data: list[TopicProduceData] = field()


@struct
class BatchIndexAndErrorMessage:
    batch_index: Int32 = 0
    batch_index_error_message: String | None = None


@struct
class LeaderIdAndEpoch:
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


@struct
class PartitionProduceResponse:
    index: Int32 = 0
    error_code: Int16 = 0
    base_offset: Int64 = 0
    log_append_time_ms: Int64 = -1
    log_start_offset: Int64 = field(since=5, default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = field(since=8, ignorable=True)
    error_message: String | None = field(since=8, default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = field(since=10, tag=0)


@struct
class TopicProduceResponse:
    name: String = field(until=12, ignorable=True)
    topic_id: Uuid = field(since=13, ignorable=True)
    partition_responses: list[PartitionProduceResponse] = field()


@struct
class NodeEndpoint:
    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: String | None = None


@message(key=0, versions=(3, 13), flexible=9)
class ProduceResponse:
    responses: list[TopicProduceResponse] = field()
    throttle_time_ms: Int32 = 0
    node_endpoints: list[NodeEndpoint] = field(since=10, tag=0)
