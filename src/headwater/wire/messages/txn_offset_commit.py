"""TxnOffsetCommit: offsets of a group that count once the transaction commits.

v2 adds leader epochs, v3 is flexible and names the member, v5 adds the group to the transaction implicitly.
"""

from __future__ import annotations

from headwater.wire.schema import Int16, Int32, Int64, String, field, message, struct


@struct
class TxnOffsetCommitRequestPartition:
    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Int32 = field(since=2, default=-1, ignorable=True)
    committed_metadata: String | None = ""


@struct
class TxnOffsetCommitRequestTopic:
    name: String = ""
    partitions: list[TxnOffsetCommitRequestPartition] = field()


@message(key=28, versions=(0, 5), flexible=3)
class TxnOffsetCommitRequest:
    transactional_id: String = ""
    group_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    generation_id: Int32 = field(since=3, default=-1)
    member_id: String = field(since=3)
    group_instance_id: String | None = field(since=3, default=None)
    topics: list[TxnOffsetCommitRequestTopic] = field()


@struct
class TxnOffsetCommitResponsePartition:
    partition_index: Int32 = 0
    error_code: Int16 = 0


@struct
class TxnOffsetCommitResponseTopic:
    name: String = ""
    partitions: list[TxnOffsetCommitResponsePartition] = field()


@message(key=28, versions=(0, 5), flexible=3)
class TxnOffsetCommitResponse:
    throttle_time_ms: Int32 = 0
    topics: list[TxnOffsetCommitResponseTopic] = field()
