"""CreatePartitions: raise the number of a topic's partitions. v2 is flexible."""

from __future__ import annotations

from headwater.wire.schema import Bool, Int16, Int32, String, field, message, struct


@struct
class CreatePartitionsAssignment:
    broker_ids: list[Int32] = field()


@struct
class CreatePartitionsTopic:
    name: String = ""
    count: Int32 = 0
    assignments: list[CreatePartitionsAssignment] | None = field()


@message(key=37, versions=(0, 3), flexible=2)
class CreatePartitionsRequest:
    topics: list[CreatePartitionsTopic] = field()
    timeout_ms: Int32 = 0
    validate_only: Bool = False


@struct
class CreatePartitionsTopicResult:
    name: String = ""
    error_code: Int16 = 0
    error_message: String | None = None


@message(key=37, versions=(0, 3), flexible=2)
class CreatePartitionsResponse:
    throttle_time_ms: Int32 = 0
    results: list[CreatePartitionsTopicResult] = field()
