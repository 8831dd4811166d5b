"""Fetch: read record batches, waiting for `min_bytes`, within an incremental session from v7 on.

v4 adds isolation, v5 the log start, v9 leader epochs, v11 racks, v12 is flexible and detects divergence, v13
names topics by id, v15 moves the replica id to a tagged struct, v16 adds node endpoints (tagged). v14, v17
and v18 are for tiered storage and followers.
"""

from __future__ import annotations

from headwater.wire.schema import (
    Int8,
    Int16,
    Int32,
    Int64,
    RecordPieces,
    String,
    Uuid,
    field,
    message,
    struct,
)


@struct
class ReplicaState:
    replica_id: Int32 = -1
    replica_epoch: Int64 = -1


@struct
class FetchPartition:
    partition: Int32 = 0
    current_leader_epoch: Int32 = field(since=9, default=-1, ignorable=True)
    fetch_offset: Int64 = 0
    last_fetched_epoch: Int32 = field(since=12, default=-1)
    log_start_offset: Int64 = field(since=5, default=-1, ignorable=True)
    partition_max_bytes: Int32 = 0
    replica_directory_id: Uuid = field(since=17, tag=0, ignorable=True)
    high_watermark: Int64 = field(since=18, default=9223372036854775807, tag=1, ignorable=True)


@struct
class FetchTopic:
    topic: String = field(until=12, ignorable=True)
    topic_id: Uuid = field(since=13, ignorable=True)
    partitions: list[FetchPartition] = field()


@struct
class ForgottenTopic:
    topic: String = field(until=12, ignorable=True)
    topic_id: Uuid = field(since=13, ignorable=True)
    partitions: list[Int32] = field()


@message(key=1, versions=(4, 18), flexible=12)
class FetchRequest:
    cluster_id: String | None = field(since=12, default=None, tag=0, ignorable=True)
    replica_id: Int32 = field(until=14, default=-1)
    replica_state: ReplicaState = field(since=15, tag=1)
    max_wait_ms: Int32 = 0
    min_bytes: Int32 = 0
    max_bytes: Int32 = 2147483647
    isolation_level: Int8 = 0
    session_id: Int32 = field(since=7, ignorable=True)
    session_epoch: Int32 = field(since=7, default=-1, ignorable=True)
    topics: list[FetchTopic] = field()
    forgotten_topics_data: list[ForgottenTopic] = field(since=7)
    rack_id: String = field(since=11, ignorable=True)


@struct
class EpochEndOffset:
    epoch: Int32 = -1
    end_offset: Int64 = -1


@struct
class LeaderIdAndEpoch:
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


@struct
class SnapshotId:
    end_offset: Int64 = -1
    epoch: Int32 = -1


@struct
class AbortedTransaction:
    producer_id: Int64 = 0
    first_offset: Int64 = 0


@struct
class PartitionData:
    partition_index: Int32 = 0
    error_code: Int16 = 0
    high_watermark: Int64 = 0
    last_stable_offset: Int64 = -1
    log_start_offset: Int64 = field(since=5, default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset = field(since=12, tag=0)
    current_leader: LeaderIdAndEpoch = field(since=12, tag=1)
    snapshot_id: SnapshotId = field(since=12, tag=2)
    aborted_transactions: list[AbortedTransaction] | None = field()
    preferred_read_replica: Int32 = field(since=11, default=-1)
    records: RecordPieces | None = None


@struct
class FetchableTopicResponse:
    topic: String = field(until=12, ignorable=True)
    topic_id: Uuid = field(since=13, ignorable=True)
    partitions: list[PartitionData] = field()


@struct
class NodeEndpoint:
    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: String | None = None


@message(key=1, versions=(4, 18), flexible=12)
class FetchResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = field(since=7, ignorable=True)
    session_id: Int32 = field(since=7)
    responses: list[FetchableTopicResponse] = field()
    node_endpoints: list[NodeEndpoint] = field(since=16, tag=0)
