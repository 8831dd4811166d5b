"""DescribeTopicPartitions, v0: Metadata in pages. The cursor names the topic and partition that the page begins with;
topics come in the order of their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.broker.registry import Context, handles
from headwater.broker.topics import ALL_TOPIC_OPERATIONS, name_problem
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    ResponseCursor,
)  # fmt: skip

if TYPE_CHECKING:
    from headwater.broker.state import Broker
    from headwater.log import Topic


def refused(request: DescribeTopicPartitionsRequest, error: KafkaError) -> DescribeTopicPartitionsResponse:
    code = int(error.code)
    return DescribeTopicPartitionsResponse(
        topics=[DescribeTopicPartitionsResponseTopic(error_code=code, name=each.name) for each in request.topics]
    )


@handles(DescribeTopicPartitionsRequest, versions=(0, 0), error=refused)
def describe_topic_partitions(
    broker: Broker, request: DescribeTopicPartitionsRequest, context: Context
) -> DescribeTopicPartitionsResponse:
    names = sorted({each.name for each in request.topics} or set(broker.log.topics))
    first, start = "", 0
    if request.cursor is not None:
        first, start = request.cursor.topic_name, request.cursor.partition_index
        if start < 0 or first not in broker.log.topics:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        names = [name for name in names if name >= first]
    room = max(1, min(request.response_partition_limit, broker.settings.max_request_partition_size_limit))
    response = DescribeTopicPartitionsResponse(topics=[])
    for name in names:
        if room == 0:
            response.next_cursor = ResponseCursor(topic_name=name, partition_index=0)
            break
        topic = broker.topics.get(name)
        if topic is None:
            response.topics.append(_missing(name))
            continue
        begin = start if name == first else 0
        indexes = range(begin, min(begin + room, len(topic.partitions)))
        response.topics.append(_page(broker, topic, indexes))
        room -= len(indexes)
        if indexes.stop < len(topic.partitions):
            response.next_cursor = ResponseCursor(topic_name=name, partition_index=indexes.stop)
            break
    return response


def _missing(name: str) -> DescribeTopicPartitionsResponseTopic:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if name_problem(name) is not None:
        code = ErrorCode.INVALID_TOPIC_EXCEPTION
    return DescribeTopicPartitionsResponseTopic(
        error_code=int(code), name=name, topic_authorized_operations=ALL_TOPIC_OPERATIONS
    )


def _page(broker: Broker, topic: Topic, indexes: range) -> DescribeTopicPartitionsResponseTopic:
    nodes = [broker.node_id]
    partitions = [
        DescribeTopicPartitionsResponsePartition(
            partition_index=index,
            leader_id=broker.node_id,
            leader_epoch=topic.partitions[index].leader_epoch,
            replica_nodes=nodes,
            isr_nodes=nodes,
            eligible_leader_replicas=[],
            last_known_elr=[],
        )
        for index in indexes
    ]
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=broker.topics.is_internal(topic.name),
        partitions=partitions,
        topic_authorized_operations=ALL_TOPIC_OPERATIONS,
    )
