"""OffsetDelete: a group forgets how far it has read some partitions that it does not read any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.broker.groups import commits
from headwater.broker.groups.answers import PartitionErrors, known_topic
from headwater.broker.groups.offsets import NO_TOPIC_ID
from headwater.broker.registry import handles
from headwater.broker.waiting import Later
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from headwater.broker.registry import Context
    from headwater.broker.state import Broker


@handles(OffsetDeleteRequest, versions=(0, 0))
def offset_delete(
    broker: Broker, request: OffsetDeleteRequest, _context: Context
) -> Later[OffsetDeleteResponse]:
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    errors = PartitionErrors()
    asked: list[tuple[str, int]] = []
    for topic in request.topics:
        found, name, missing = known_topic(broker, topic.name, NO_TOPIC_ID, by_id=False)
        for part in topic.partitions:
            if found is None or not 0 <= part.partition_index < len(found.partitions):
                errors.add(name, part.partition_index, missing)
            else:
                asked.append((topic.name, part.partition_index))
    promise: Later[OffsetDeleteResponse] = Later()

    def finish(results: list[ErrorCode]) -> None:
        for (name, index), error in zip(asked, results, strict=True):
            errors.add((name, NO_TOPIC_ID), index, error)
        promise.set(_response(errors))

    commits.delete(broker.groups, request.group_id, asked, finish)
    return promise


def _response(errors: PartitionErrors) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(
        topics=[
            OffsetDeleteResponseTopic(
                name=name,
                partitions=[
                    OffsetDeleteResponsePartition(partition_index=index, error_code=error)
                    for index, error in partitions
                ],
            )
            for (name, _), partitions in errors.topics()
        ]
    )
