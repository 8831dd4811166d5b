"""Metadata, v0-13: brokers, topics, leaders. v1 tells none (empty) from all (null), v4 may forbid the creation of
topics, v10 shows topic ids, v12 may ask by id.

A topic that is created because somebody asked for it is there at once, but this answer still says
UNKNOWN_TOPIC_OR_PARTITION, as Apache Kafka's does: clients ask again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.broker.registry import Context, handles
from headwater.broker.topics import ALL_CLUSTER_OPERATIONS, ALL_TOPIC_OPERATIONS, NOT_ASKED, name_problem
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)  # fmt: skip
from headwater.wire.schema import ZERO_UUID

if TYPE_CHECKING:
    from headwater.broker.state import Broker
    from headwater.log import Topic


def refused(request: MetadataRequest, error: KafkaError) -> MetadataResponse:
    code = int(error.code)
    topics = [
        MetadataResponseTopic(error_code=code, name=topic.name or "", topic_id=topic.topic_id)
        for topic in request.topics or ()
    ]
    return MetadataResponse(cluster_id=None, topics=topics, error_code=code)


@handles(MetadataRequest, versions=(0, 13), error=refused)
def metadata(broker: Broker, request: MetadataRequest, context: Context) -> MetadataResponse:
    asked, version = request.topics, context.api_version
    _check(request, version)
    if asked is None or (version == 0 and not asked):
        topics = [_described(broker, topic, request) for _, topic in sorted(broker.log.topics.items())]
    elif any(topic.topic_id != ZERO_UUID for topic in asked):
        topics = _by_id(broker, request)
    else:
        topics = _by_name(broker, request)
    here = MetadataResponseBroker(node_id=broker.node_id, host=context.listener_host, port=context.listener_port)
    return MetadataResponse(
        brokers=[here],
        cluster_id=broker.cluster_id,
        controller_id=broker.node_id,
        topics=topics,
        cluster_authorized_operations=(
            ALL_CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def _check(request: MetadataRequest, version: int) -> None:
    for topic in request.topics or ():
        if 10 <= version < 12 and (topic.name is None or topic.topic_id != ZERO_UUID):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Topic IDs are not supported in this version")
        if topic.name is None and topic.topic_id == ZERO_UUID:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "Neither topic name nor id were specified.")


def _by_name(broker: Broker, request: MetadataRequest) -> list[MetadataResponseTopic]:
    found: list[MetadataResponseTopic] = []
    refused_names: list[MetadataResponseTopic] = []
    missing: list[MetadataResponseTopic] = []
    create = request.allow_auto_topic_creation and broker.settings.auto_create_topics_enable
    for name in dict.fromkeys(topic.name or "" for topic in request.topics or ()):
        topic = broker.topics.get(name)
        if topic is not None:
            found.append(_described(broker, topic, request))
            continue
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if name_problem(name) is not None:
            code = ErrorCode.INVALID_TOPIC_EXCEPTION
        elif create:
            code = _created(broker, name)
        internal = broker.topics.is_internal(name)
        answer = MetadataResponseTopic(error_code=int(code), name=name, is_internal=internal)
        (missing if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else refused_names).append(answer)
    return found + refused_names + missing


def _created(broker: Broker, name: str) -> ErrorCode:
    try:
        broker.topics.create_automatically(name)
    except KafkaError as error:
        return error.code
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _by_id(broker: Broker, request: MetadataRequest) -> list[MetadataResponseTopic]:
    """Where one topic is named by id, those named otherwise are passed over, as Kafka does."""
    found, missing = [], []
    for topic_id in dict.fromkeys(topic.topic_id for topic in request.topics or ()):
        topic = broker.topics.by_id(topic_id)
        if topic is not None:
            found.append(_described(broker, topic, request))
        elif topic_id != ZERO_UUID:
            code = int(ErrorCode.UNKNOWN_TOPIC_ID)
            missing.append(MetadataResponseTopic(error_code=code, name=None, topic_id=topic_id))
    return missing + found


def _described(broker: Broker, topic: Topic, request: MetadataRequest) -> MetadataResponseTopic:
    node = broker.node_id
    nodes = [node]
    partitions = [
        MetadataResponsePartition(
            partition_index=partition.index,
            leader_id=node,
            leader_epoch=partition.leader_epoch,
            replica_nodes=nodes,
            isr_nodes=nodes,
        )
        for partition in topic.partitions
    ]
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=broker.topics.is_internal(topic.name),
        partitions=partitions,
        topic_authorized_operations=(
            ALL_TOPIC_OPERATIONS if request.include_topic_authorized_operations else NOT_ASKED
        ),
    )
