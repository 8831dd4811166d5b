"""DeleteTopics, v1-6: by name, and from v6 on by name or id. A topic that is made again under the same name is another
topic. Apache Kafka shuffles its answers; ours keep the order of the request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.broker.registry import Context, error_text, handles
from headwater.broker.waiting import Later
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)  # fmt: skip
from headwater.wire.schema import ZERO_UUID

if TYPE_CHECKING:
    from headwater.broker.state import Broker
    from headwater.log import Topic


def asked(request: DeleteTopicsRequest) -> list[DeleteTopicState]:
    return request.topics or [DeleteTopicState(name=name) for name in request.topic_names]


def refused(request: DeleteTopicsRequest, error: KafkaError) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(responses=[_refusal(each, error) for each in asked(request)])


@handles(DeleteTopicsRequest, versions=(1, 6), error=refused)
def delete_topics(
    broker: Broker, request: DeleteTopicsRequest, context: Context
) -> Later[DeleteTopicsResponse]:
    if not broker.settings.delete_topic_enable:
        raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED)
    results, chosen = _chosen(broker, request)
    for topic in chosen:
        broker.topics.delete(topic)
    later: Later[DeleteTopicsResponse] = Later()
    broker.durable.then(
        lambda: later.set(DeleteTopicsResponse(responses=results)),
        lambda: later.set(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)),
    )
    return later


def _chosen(broker: Broker, request: DeleteTopicsRequest) -> tuple[list[DeletableTopicResult], list[Topic]]:
    """The answers, and the topics that go. A topic named both by name and by id stays, and has one answer."""
    times: dict[tuple[str | None, bytes], int] = {}
    for each in asked(request):
        times[each.name, each.topic_id] = times.get((each.name, each.topic_id), 0) + 1
    results, chosen = [], []
    for name, topic_id in times:
        each = DeleteTopicState(name=name, topic_id=topic_id)
        try:
            _check(each, times[name, topic_id])
            if request.timeout_ms <= 0:
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
            topic = _found(broker, each)
            if name is None and (topic.name, ZERO_UUID) in times:
                continue
            if name is not None and (None, topic.topic_id) in times:
                each.topic_id = topic.topic_id
                text = "The provided topic name maps to an ID that was already supplied."
                raise KafkaError(ErrorCode.INVALID_REQUEST, text)
        except KafkaError as error:
            results.append(_refusal(each, error))
        else:
            results.append(DeletableTopicResult(name=topic.name, topic_id=topic.topic_id))
            chosen.append(topic)
    return results, chosen


def _check(each: DeleteTopicState, times: int) -> None:
    if each.name is None and each.topic_id == ZERO_UUID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    if each.name is not None and each.topic_id != ZERO_UUID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
    if times > 1:
        kind = "id" if each.name is None else "name"
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Duplicate topic {kind}.")


def _found(broker: Broker, each: DeleteTopicState) -> Topic:
    if each.name is None:
        topic = broker.topics.by_id(each.topic_id)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, error_text(ErrorCode.UNKNOWN_TOPIC_ID))
    else:
        topic = broker.topics.get(each.name)
        if topic is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            raise KafkaError(code, error_text(code))
    return topic


def _refusal(each: DeleteTopicState, error: KafkaError) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=each.name, topic_id=each.topic_id, error_code=int(error.code), error_message=error.message
    )
