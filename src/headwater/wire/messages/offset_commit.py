"""OffsetCommit: store how far a group has read.

v5 drops the retention time, v6 adds the leader epoch, v7 static members, v8 is flexible, v9 is for the newer
group protocol too, v10 names topics by id.
"""

from __future__ import annotations

from headwater.wire.schema import Int16, Int32, Int64, String, Uuid, field, message, struct


@struct
class OffsetCommitRequestPartition:
    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Int32 = field(since=6, default=-1, ignorable=True)
    committed_metadata: String | None = ""


@struct
class OffsetCommitRequestTopic:
    name: String = field(until=9, ignorable=True)
    topic_id: Uuid = field(since=10, ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = field()


@message(key=8, versions=(2, 10), flexible=8)
class OffsetCommitRequest:
    group_id: String = ""
    generation_id_or_member_epoch: Int32 = -1
    member_id: String = ""
    group_instance_id: String | None = field(since=7, default=None)
    retention_time_ms: Int64 = field(until=4, default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = field()


@struct
class OffsetCommitResponsePartition:
    partition_index: Int32 = 0
    error_code: Int16 = 0


@struct
class OffsetCommitResponseTopic:
    name: String = field(until=9, ignorable=True)
    topic_id: Uuid = field(since=10, ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = field()


@message(key=8, versions=(2, 10), flexible=8)
class OffsetCommitResponse:
    throttle_time_ms: Int32 = field(since=3, ignorable=True)
    topics: list[OffsetCommitResponseTopic] = field()
