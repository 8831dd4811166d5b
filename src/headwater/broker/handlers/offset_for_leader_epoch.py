"""OffsetForLeaderEpoch, v2-4: where the log of a leader epoch ends, so that a consumer finds out that its position was
taken back. librdkafka asks in v2 only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.broker.registry import Context, handles
from headwater.broker.topics import check_leader_epoch
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)  # fmt: skip

if TYPE_CHECKING:
    from headwater.broker.state import Broker


def refused(request: OffsetForLeaderEpochRequest, error: KafkaError) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    EpochEndOffset(partition=each.partition, error_code=int(error.code)) for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


@handles(OffsetForLeaderEpochRequest, versions=(2, 4), error=refused)
def offset_for_leader_epoch(
    broker: Broker, request: OffsetForLeaderEpochRequest, context: Context
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_answer(broker, topic.topic, each) for each in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _answer(broker: Broker, name: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    answer = EpochEndOffset(partition=asked.partition)
    try:
        partition = broker.partition(name, asked.partition)
        if partition is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        check_leader_epoch(partition, asked.current_leader_epoch)
        answer.leader_epoch, answer.end_offset = partition.end_offset_for_epoch(asked.leader_epoch)
    except KafkaError as error:
        answer.error_code = int(error.code)
    return answer
