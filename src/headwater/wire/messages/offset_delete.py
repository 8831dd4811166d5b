"""OffsetDelete: forget a group's offsets for partitions that it no longer reads. Never flexible."""

from __future__ import annotations

from headwater.wire.schema import Int16, Int32, String, field, message, struct


@struct
class OffsetDeleteRequestPartition:
    partition_index: Int32 = 0


@struct
class OffsetDeleteRequestTopic:
    name: String = ""
    partitions: list[OffsetDeleteRequestPartition] = field()


@message(key=47, versions=(0, 0))
class OffsetDeleteRequest:
    group_id: String = ""
    topics: list[OffsetDeleteRequestTopic] = field()


@struct
class OffsetDeleteResponsePartition:
    partition_index: Int32 = 0
    error_code: Int16 = 0


@struct
class OffsetDeleteResponseTopic:
    name: String = ""
    partitions: list[OffsetDeleteResponsePartition] = field()


@message(key=47, versions=(0, 0))
class OffsetDeleteResponse:
    error_code: Int16 = 0
    throttle_time_ms: Int32 = 0
    topics: list[OffsetDeleteResponseTopic] = field()
