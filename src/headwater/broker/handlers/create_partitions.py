"""CreatePartitions, v0-3: more partitions for topics that exist; there are never fewer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.broker.registry import Context, handles
from headwater.broker.topics import PARTITIONS_PER_REQUEST_MAX
from headwater.broker.waiting import Later
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)  # fmt: skip

if TYPE_CHECKING:
    from headwater.broker.state import Broker


def refused(request: CreatePartitionsRequest, error: KafkaError) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(results=[_result(topic.name, error) for topic in request.topics])


@handles(CreatePartitionsRequest, versions=(0, 3), error=refused)
def create_partitions(
    broker: Broker, request: CreatePartitionsRequest, context: Context
) -> Later[CreatePartitionsResponse]:
    names = [topic.name for topic in request.topics]
    twice = dict.fromkeys(name for name in names if names.count(name) > 1) if len(set(names)) < len(names) else {}
    duplicate = KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    results = [_result(name, duplicate) for name in twice]
    for topic in request.topics:
        if topic.name in twice:
            continue
        try:
            if request.timeout_ms <= 0:
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
            _add(broker, topic, request.validate_only)
            results.append(_result(topic.name))
        except KafkaError as error:
            results.append(_result(topic.name, error))
    later: Later[CreatePartitionsResponse] = Later()
    broker.durable.then(
        lambda: later.set(CreatePartitionsResponse(results=results)),
        lambda: later.set(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)),
    )
    return later


def _add(broker: Broker, asked: CreatePartitionsTopic, validate_only: bool) -> None:
    topic = broker.topics.get(asked.name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    present = len(topic.partitions)
    more = asked.count - present
    if more == 0:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    if more < 0:
        text = (
            f"The topic {asked.name} currently has {present} partition(s); {asked.count} would not be an increase."
        )
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, text)
    if more > PARTITIONS_PER_REQUEST_MAX:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as Kafka's controller, which has no code for it
    if asked.assignments is not None:
        if len(asked.assignments) != more:
            text = (
                f"Attempted to add {more} additional partition(s), but only {len(asked.assignments)} assignment(s) "
                "were specified."
            )
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
        for each in asked.assignments:
            broker.topics.check_replicas(each.broker_ids)
    if not validate_only:
        broker.log.add_partitions(topic, asked.count)


def _result(name: str, error: KafkaError | None = None) -> CreatePartitionsTopicResult:
    if error is None:
        return CreatePartitionsTopicResult(name=name)
    return CreatePartitionsTopicResult(name=name, error_code=int(error.code), error_message=error.message)
