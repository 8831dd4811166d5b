"""OffsetCommit: a group's members (or nobody in particular) keep how far they have read.

Topics that do not exist are refused one by one; the others go to the group, which may refuse them all.
v9 says GROUP_ID_NOT_FOUND for an unknown group, v10 names topics by id. The answer comes when the offsets
are durable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.broker.groups import commits
from headwater.broker.groups.answers import PartitionErrors, TopicName, known_topic
from headwater.broker.registry import handles
from headwater.broker.waiting import Later
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from headwater.broker.registry import Context
    from headwater.broker.state import Broker

RETENTION_UNTIL = 4
TOPIC_IDS_SINCE = 10


def refused(request: OffsetCommitRequest, error: KafkaError) -> OffsetCommitResponse:
    errors = PartitionErrors()
    for topic in request.topics:
        for partition in topic.partitions:
            errors.add((topic.name, bytes(topic.topic_id)), partition.partition_index, error.code)
    return _response(errors)


@handles(OffsetCommitRequest, versions=(2, 10), error=refused)
def offset_commit(
    broker: Broker, request: OffsetCommitRequest, context: Context
) -> OffsetCommitResponse | Later[OffsetCommitResponse]:
    errors, names, asked = _sort_out(broker, request, by_id=context.api_version >= TOPIC_IDS_SINCE)
    if not asked:
        return _response(errors)
    promise: Later[OffsetCommitResponse] = Later()

    def finish(results: list[ErrorCode]) -> None:
        for name, each, error in zip(names, asked, results, strict=True):
            errors.add(name, each.partition, error)
        promise.set(_response(errors))

    who = commits.Identity(
        request.group_id, request.member_id, request.group_instance_id, request.generation_id_or_member_epoch
    )
    retention_ms = (
        request.retention_time_ms if context.api_version <= RETENTION_UNTIL else commits.NO_RETENTION
    )
    try:
        commits.commit(
            broker.groups, who, asked, finish, version=context.api_version, retention_ms=retention_ms
        )  # fmt: skip
    except KafkaError as error:
        finish([error.code] * len(asked))
    return promise


def _sort_out(
    broker: Broker, request: OffsetCommitRequest, *, by_id: bool
) -> tuple[PartitionErrors, list[TopicName], list[commits.Asked]]:
    errors = PartitionErrors()
    names: list[TopicName] = []
    asked: list[commits.Asked] = []
    for topic in request.topics:
        found, name, missing = known_topic(broker, topic.name, topic.topic_id, by_id=by_id)
        for part in topic.partitions:
            if found is None or not 0 <= part.partition_index < len(found.partitions):
                errors.add(name, part.partition_index, missing)
                continue
            names.append(name)
            asked.append(
                commits.Asked(
                    found.name,
                    part.partition_index,
                    part.committed_offset,
                    part.committed_leader_epoch,
                    part.committed_metadata,
                    found.topic_id,
                )
            )
    return errors, names, asked


def _response(errors: PartitionErrors) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=name,
                topic_id=topic_id,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=index, error_code=error)
                    for index, error in partitions
                ],
            )
            for (name, topic_id), partitions in errors.topics()
        ]
    )
