"""DeleteRecords, v0-2: everything before an offset goes; -1 means the high watermark. Not from topics that are only
compacted, and not from internal ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.broker.registry import Context, handles
from headwater.broker.waiting import Later
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)  # fmt: skip

if TYPE_CHECKING:
    from headwater.broker.state import Broker

HIGH_WATERMARK = -1


def refused(request: DeleteRecordsRequest, error: KafkaError) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[_result(each.partition_index, error) for each in topic.partitions],
            )
            for topic in request.topics
        ]
    )


@handles(DeleteRecordsRequest, versions=(0, 2), error=refused)
def delete_records(
    broker: Broker, request: DeleteRecordsRequest, context: Context
) -> Later[DeleteRecordsResponse]:
    topics = []
    for topic in request.topics:
        results = []
        for each in topic.partitions:
            try:
                low = _delete(broker, topic.name, each.partition_index, each.offset)
                results.append(DeleteRecordsPartitionResult(partition_index=each.partition_index, low_watermark=low))
            except KafkaError as error:
                results.append(_result(each.partition_index, error))
        topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=results))
    later: Later[DeleteRecordsResponse] = Later()
    broker.durable.then(
        lambda: later.set(DeleteRecordsResponse(topics=topics)),
        lambda: later.set(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)),
    )
    return later


def _delete(broker: Broker, name: str, index: int, offset: int) -> int:
    partition = broker.partition(name, index)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if broker.topics.is_internal(name):
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    settings = partition.topic.settings
    if settings.compact and not settings.delete:
        raise KafkaError(ErrorCode.POLICY_VIOLATION)
    if offset < HIGH_WATERMARK or offset > partition.high_watermark:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    return partition.delete_records(offset)


def _result(index: int, error: KafkaError) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=-1, error_code=int(error.code))
