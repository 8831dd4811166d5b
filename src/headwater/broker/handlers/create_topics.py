"""CreateTopics, v2-7: v4 allows -1 for the broker's defaults, v5 answers with the settings, v7 with the topic id.

Every name is looked at before any topic is made, as Apache Kafka's controller does: two names of one request
that differ in '.' and '_' only are both accepted. What is answered is durable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.broker.handlers.describe_configs import topic_settings
from headwater.broker.registry import Context, handles
from headwater.broker.topics import PARTITIONS_PER_REQUEST_MAX
from headwater.broker.waiting import Later
from headwater.core.ids import random_id
from headwater.log.topic_config import parse
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)  # fmt: skip
from headwater.wire.schema import ZERO_UUID

if TYPE_CHECKING:
    from headwater.broker.state import Broker


def refused(request: CreateTopicsRequest, error: KafkaError) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=[_refusal(topic.name, error) for topic in request.topics])


@handles(CreateTopicsRequest, versions=(2, 7), error=refused)
def create_topics(
    broker: Broker, request: CreateTopicsRequest, context: Context
) -> CreateTopicsResponse | Later[CreateTopicsResponse]:
    names = [topic.name for topic in request.topics]
    twice = dict.fromkeys(name for name in names if names.count(name) > 1) if len(set(names)) < len(names) else {}
    once = [topic for topic in request.topics if topic.name not in twice]
    results = _created(broker, once, request)
    duplicate = KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    results += [_refusal(name, duplicate) for name in twice]
    later: Later[CreateTopicsResponse] = Later()
    broker.durable.then(
        lambda: later.set(CreateTopicsResponse(topics=results)),
        lambda: later.set(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)),
    )
    return later


def _created(
    broker: Broker, topics: list[CreatableTopic], request: CreateTopicsRequest
) -> list[CreatableTopicResult]:
    problems = {}
    for topic in topics:
        try:
            broker.topics.check_new(topic.name)
            broker.topics.check_collision(topic.name)
        except KafkaError as error:
            problems[topic.name] = error
    whole = None
    if request.timeout_ms <= 0:
        whole = KafkaError(ErrorCode.REQUEST_TIMED_OUT)
    elif sum(max(_asked_partitions(broker, topic), 0) for topic in topics) > PARTITIONS_PER_REQUEST_MAX:
        whole = KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    results = []
    for topic in topics:
        problem = whole or problems.get(topic.name)
        try:
            if problem is not None:
                raise problem
            results.append(_create(broker, topic, request.validate_only))
        except KafkaError as error:
            results.append(_refusal(topic.name, error))
    return results


def _asked_partitions(broker: Broker, topic: CreatableTopic) -> int:
    if topic.assignments:
        return len(topic.assignments)
    return broker.settings.num_partitions if topic.num_partitions == -1 else topic.num_partitions


def _create(broker: Broker, asked: CreatableTopic, validate_only: bool) -> CreatableTopicResult:
    config = _checked_config(asked)
    if asked.assignments:
        _check_assignments(broker, asked)
    else:
        _check_counts(asked)
    partitions = _asked_partitions(broker, asked)
    result = CreatableTopicResult(
        name=asked.name, error_message=None, num_partitions=partitions, replication_factor=1
    )
    if validate_only:
        result.topic_id = random_id()
    else:
        result.topic_id = broker.topics.create(asked.name, partitions, config).topic_id
    result.configs = [
        CreatableTopicConfigs(
            name=each.config.name, value=each.text, read_only=each.read_only, config_source=each.source
        )
        for each in topic_settings(broker, config)
    ]
    return result


def _checked_config(asked: CreatableTopic) -> dict[str, str]:
    nulls = [each.name for each in asked.configs if each.value is None]
    if nulls:
        text = f"Null value not supported for topic configs: {','.join(nulls)}"
        raise KafkaError(ErrorCode.INVALID_CONFIG, text)
    config = {each.name: each.value for each in asked.configs if each.value is not None}
    parse(config)
    return config


def _check_counts(asked: CreatableTopic) -> None:
    factor = asked.replication_factor
    if factor < -1 or factor == 0:
        text = "Replication factor must be larger than 0, or -1 to use the default value."
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, text)
    if asked.num_partitions < -1 or asked.num_partitions == 0:
        text = "Number of partitions was set to an invalid non-positive value."
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, text)
    if factor > 1:
        text = (
            f"Unable to replicate the partition {factor} time(s): The target replication factor of {factor} cannot "
            "be reached because only 1 broker(s) are registered or some brokers have all their log directories "
            "cordoned."
        )
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, text)


def _check_assignments(broker: Broker, asked: CreatableTopic) -> None:
    if asked.replication_factor != -1:
        text = "A manual partition assignment was specified, but replication factor was not set to -1."
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    if asked.num_partitions != -1:
        text = "A manual partition assignment was specified, but numPartitions was not set to -1."
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    seen = set()
    for each in asked.assignments:
        if each.partition_index in seen:
            text = f"Found multiple manual partition assignments for partition {each.partition_index}"
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
        seen.add(each.partition_index)
        broker.topics.check_replicas(each.broker_ids)
    if seen != set(range(len(seen))):
        text = "partitions should be a consecutive 0-based integer sequence"
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)


def _refusal(name: str, error: KafkaError) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=name, topic_id=ZERO_UUID, error_code=int(error.code), error_message=error.message, configs=[]
    )
