"""OffsetForLeaderEpoch: where a leader epoch ended, for consumers that check for truncation.

v3 adds the replica id, v4 is flexible.
"""

from __future__ import annotations

from headwater.wire.schema import Int16, Int32, Int64, String, field, message, struct


@struct
class OffsetForLeaderPartition:
    partition: Int32 = 0
    current_leader_epoch: Int32 = -1
    leader_epoch: Int32 = 0


@struct
class OffsetForLeaderTopic:
    topic: String = ""
    partitions: list[OffsetForLeaderPartition] = field()


@message(key=23, versions=(2, 4), flexible=4)
class OffsetForLeaderEpochRequest:
    replica_id: Int32 = field(since=3, default=-2, ignorable=True)
    topics: list[OffsetForLeaderTopic] = field()


@struct
class EpochEndOffset:
    error_code: Int16 = 0
    partition: Int32 = 0
    leader_epoch: Int32 = -1
    end_offset: Int64 = -1


@struct
class OffsetForLeaderTopicResult:
    topic: String = ""
    partitions: list[EpochEndOffset] = field()


@message(key=23, versions=(2, 4), flexible=4)
class OffsetForLeaderEpochResponse:
    throttle_time_ms: Int32 = 0
    topics: list[OffsetForLeaderTopicResult] = field()
