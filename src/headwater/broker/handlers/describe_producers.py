"""DescribeProducers, v0: the producers that partitions remember, and which of them have a transaction open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.broker.registry import Context, error_text, handles
from headwater.broker.topics import check_name
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)  # fmt: skip

if TYPE_CHECKING:
    from headwater.broker.state import Broker


def refused(request: DescribeProducersRequest, error: KafkaError) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(name=topic.name, partitions=[_refusal(index, error) for index in topic.partition_indexes])
            for topic in request.topics
        ]
    )


@handles(DescribeProducersRequest, versions=(0, 0), error=refused)
def describe_producers(
    broker: Broker, request: DescribeProducersRequest, context: Context
) -> DescribeProducersResponse:
    topics = []
    for topic in request.topics:
        partitions = []
        for index in topic.partition_indexes:
            try:
                partitions.append(_described(broker, topic.name, index))
            except KafkaError as error:
                partitions.append(_refusal(index, error))
        topics.append(TopicResponse(name=topic.name, partitions=partitions))
    return DescribeProducersResponse(topics=topics)


def _described(broker: Broker, name: str, index: int) -> PartitionResponse:
    check_name(name)
    topic = broker.topics.get(name)
    if topic is None:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        raise KafkaError(code, error_text(code))
    if not 0 <= index < len(topic.partitions):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    producers = [
        ProducerState(
            producer_id=entry.producer_id,
            producer_epoch=entry.epoch,
            last_sequence=entry.last_sequence,
            last_timestamp=entry.last_timestamp,
            coordinator_epoch=entry.coordinator_epoch,
            current_txn_start_offset=entry.txn_first_offset,
        )
        for entry in topic.partitions[index].producers.entries.values()
    ]
    return PartitionResponse(partition_index=index, active_producers=producers)


def _refusal(index: int, error: KafkaError) -> PartitionResponse:
    return PartitionResponse(partition_index=index, error_code=int(error.code), error_message=error.message)
