"""OffsetFetch: how far groups have read.

v2 takes null for "all topics" and has a top-level error, v5 adds leader epochs, v6 is flexible, v7 can insist
on stable offsets, v8 asks for several groups, v9 names the member, v10 names topics by id.
"""

from __future__ import annotations

from headwater.wire.schema import Bool, Int16, Int32, Int64, String, Uuid, field, message, struct


@struct
class OffsetFetchRequestTopic:
    name: String = ""
    partition_indexes: list[Int32] = field()


@struct
class OffsetFetchRequestTopics:
    name: String = field(until=9, ignorable=True)
    topic_id: Uuid = field(since=10, ignorable=True)
    partition_indexes: list[Int32] = field()


@struct
class OffsetFetchRequestGroup:
    group_id: String = ""
    member_id: String | None = field(since=9, default=None, ignorable=True)
    member_epoch: Int32 = field(since=9, default=-1, ignorable=True)
    topics: list[OffsetFetchRequestTopics] | None = field()


@message(key=9, versions=(1, 10), flexible=6)
class OffsetFetchRequest:
    group_id: String = field(until=7)
    topics: list[OffsetFetchRequestTopic] | None = field(until=7, nullable_since=2)
    groups: list[OffsetFetchRequestGroup] = field(since=8)
    require_stable: Bool = field(since=7)


@struct
class OffsetFetchResponsePartition:
    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Int32 = field(since=5, default=-1, ignorable=True)
    metadata: String | None = ""
    error_code: Int16 = 0


@struct
class OffsetFetchResponseTopic:
    name: String = ""
    partitions: list[OffsetFetchResponsePartition] = field()


@struct
class OffsetFetchResponsePartitions:
    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Int32 = -1
    metadata: String | None = ""
    error_code: Int16 = 0


@struct
class OffsetFetchResponseTopics:
    name: String = field(until=9, ignorable=True)
    topic_id: Uuid = field(since=10, ignorable=True)
    partitions: list[OffsetFetchResponsePartitions] = field()


@struct
class OffsetFetchResponseGroup:
    group_id: String = ""
    topics: list[OffsetFetchResponseTopics] = field()
    error_code: Int16 = 0


@message(key=9, versions=(1, 10), flexible=6)
class OffsetFetchResponse:
    throttle_time_ms: Int32 = field(since=3, ignorable=True)
    topics: list[OffsetFetchResponseTopic] = field(until=7)
    error_code: Int16 = field(since=2, until=7, ignorable=True)
    groups: list[OffsetFetchResponseGroup] = field(since=8)
