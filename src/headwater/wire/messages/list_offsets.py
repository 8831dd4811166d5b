"""ListOffsets: the offset for a timestamp; -1 asks for the latest, -2 for the earliest.

v2 adds isolation, v4 leader epochs, v6 is flexible, v7 knows -3 (the largest timestamp), v8 -4 (the earliest local
one), v9 -5 (the latest tiered one), v10 a timeout for tiered storage, v11 -6 (the earliest not yet tiered).
"""

from __future__ import annotations

from headwater.wire.schema import Int8, Int16, Int32, Int64, String, field, message, struct


@struct
class ListOffsetsPartition:
    partition_index: Int32 = 0
    current_leader_epoch: Int32 = field(since=4, default=-1, ignorable=True)
    timestamp: Int64 = 0


@struct
class ListOffsetsTopic:
    name: String = ""
    partitions: list[ListOffsetsPartition] = field()


@message(key=2, versions=(1, 11), flexible=6)
class ListOffsetsRequest:
    replica_id: Int32 = 0
    isolation_level: Int8 = field(since=2)
    topics: list[ListOffsetsTopic] = field()
    timeout_ms: Int32 = field(since=10, ignorable=True)


@struct
class ListOffsetsPartitionResponse:
    partition_index: Int32 = 0
    error_code: Int16 = 0
    timestamp: Int64 = -1
    offset: Int64 = -1
    leader_epoch: Int32 = field(since=4, default=-1)


@struct
class ListOffsetsTopicResponse:
    name: String = ""
    partitions: list[ListOffsetsPartitionResponse] = field()


@message(key=2, versions=(1, 11), flexible=6)
class ListOffsetsResponse:
    throttle_time_ms: Int32 = field(since=2, ignorable=True)
    topics: list[ListOffsetsTopicResponse] = field()
