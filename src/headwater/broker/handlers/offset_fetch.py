"""OffsetFetch: how far groups have read. What is not durable is not shown.

Null topics mean all. v7 may insist on stable offsets: one that a transaction is about to move is then an
error instead of its old value. v8 asks for several groups, v10 names topics by id.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headwater.broker.groups.offsets import CommittedOffset
from headwater.broker.registry import handles
from headwater.broker.waiting import Later
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

if TYPE_CHECKING:
    from headwater.broker.groups import Groups
    from headwater.broker.registry import Context
    from headwater.broker.state import Broker

GROUP_ERROR_SINCE = 2
MANY_GROUPS_SINCE = 8
TOPIC_IDS_SINCE = 10
NO_OFFSET = -1


def refused(request: OffsetFetchRequest, error: KafkaError) -> OffsetFetchResponse:
    """Before v2 there is no place for the error but every partition."""
    return OffsetFetchResponse(
        error_code=error.code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=index, committed_offset=NO_OFFSET, error_code=error.code
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics or ()
        ],
        groups=[
            OffsetFetchResponseGroup(group_id=group.group_id, error_code=error.code)
            for group in request.groups
        ],
    )


@handles(OffsetFetchRequest, versions=(1, 10), error=refused)
def offset_fetch(
    broker: Broker, request: OffsetFetchRequest, context: Context
) -> OffsetFetchResponse | Later[OffsetFetchResponse]:
    for group_id in [request.group_id, *(group.group_id for group in request.groups)]:
        broker.groups.topic.check(group_id)
    if not request.require_stable:
        return _answer(broker, request, context.api_version)
    # "Stable" promises to include every commit before the question: wait until none is under way.
    promise: Later[OffsetFetchResponse] = Later()
    broker.groups.durable.then(
        lambda: promise.set(_answer(broker, request, context.api_version)),
        lambda: promise.set(refused(request, KafkaError(ErrorCode.NOT_COORDINATOR))),
    )
    return promise


def _answer(broker: Broker, request: OffsetFetchRequest, version: int) -> OffsetFetchResponse:
    if version < MANY_GROUPS_SINCE:
        names = None if request.topics is None else [(t.name, t.partition_indexes) for t in request.topics]
        found = _offsets(broker.groups, request.group_id, names, request.require_stable)
        return OffsetFetchResponse(
            topics=[
                OffsetFetchResponseTopic(name=name, partitions=[_old_part(*part) for part in parts])
                for name, parts in found
            ]
        )
    fetch = _group_by_id if version >= TOPIC_IDS_SINCE else _group
    return OffsetFetchResponse(
        groups=[fetch(broker, group, request.require_stable) for group in request.groups]
    )


Part = tuple[int, CommittedOffset | None, ErrorCode]


def _offsets(
    groups: Groups, group_id: str, asked: Sequence[tuple[str, Sequence[int]]] | None, stable: bool
) -> list[tuple[str, list[Part]]]:
    """What each partition answers: (index, offset if there is one, error)."""
    known = groups.visible.groups.get(group_id, {})
    if asked is None:
        current = [
            (topic, [index for index, each in partitions.items() if not groups.is_stale(topic, each)])
            for topic, partitions in known.items()
        ]
        asked = [(topic, indexes) for topic, indexes in current if indexes]
    found: list[tuple[str, list[Part]]] = []
    for topic, partitions in asked:
        here = known.get(topic, {})
        parts: list[Part] = []
        for index in partitions:
            if stable and groups.pending.has(group_id, topic, index):
                parts.append((index, None, ErrorCode.UNSTABLE_OFFSET_COMMIT))
            else:
                committed = here.get(index)
                if committed is not None and groups.is_stale(topic, committed):
                    committed = None
                parts.append((index, committed, ErrorCode.NONE))
        found.append((topic, parts))
    return found


def _group(broker: Broker, asked: OffsetFetchRequestGroup, stable: bool) -> OffsetFetchResponseGroup:
    names = None if asked.topics is None else [(t.name, t.partition_indexes) for t in asked.topics]
    return OffsetFetchResponseGroup(
        group_id=asked.group_id,
        topics=[
            OffsetFetchResponseTopics(name=name, partitions=[_part(*part) for part in parts])
            for name, parts in _offsets(broker.groups, asked.group_id, names, stable)
        ],
    )


def _group_by_id(broker: Broker, asked: OffsetFetchRequestGroup, stable: bool) -> OffsetFetchResponseGroup:
    if asked.topics is None:
        return _everything_by_id(broker, asked.group_id, stable)
    names, unknown = [], []
    for topic in asked.topics:
        found = broker.log.topic_by_id(bytes(topic.topic_id))
        if found is None:
            unknown.append(_unknown(topic))
        else:
            names.append((found.name, topic))
    answers = _offsets(broker.groups, asked.group_id, [(n, t.partition_indexes) for n, t in names], stable)
    topics = [
        OffsetFetchResponseTopics(
            topic_id=bytes(topic.topic_id),
            partitions=[_part(*part) for part in parts],
        )
        for (_, topic), (_, parts) in zip(names, answers, strict=True)
    ]
    return OffsetFetchResponseGroup(group_id=asked.group_id, topics=topics + unknown)


def _everything_by_id(broker: Broker, group_id: str, stable: bool) -> OffsetFetchResponseGroup:
    topics = []
    for name, parts in _offsets(broker.groups, group_id, None, stable):
        topic = broker.log.topics.get(name)
        if topic is not None:
            shown = [_part(*part) for part in parts]
            topics.append(OffsetFetchResponseTopics(topic_id=topic.topic_id, partitions=shown))
    return OffsetFetchResponseGroup(group_id=group_id, topics=topics)


def _unknown(topic: OffsetFetchRequestTopics) -> OffsetFetchResponseTopics:
    error = ErrorCode.UNKNOWN_TOPIC_ID
    partitions = [_part(index, None, error) for index in topic.partition_indexes]
    return OffsetFetchResponseTopics(topic_id=bytes(topic.topic_id), partitions=partitions)


def _part(index: int, committed: CommittedOffset | None, error: ErrorCode) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(**_fields(index, committed, error))


def _old_part(
    index: int, committed: CommittedOffset | None, error: ErrorCode
) -> OffsetFetchResponsePartition:
    return OffsetFetchResponsePartition(**_fields(index, committed, error))


def _fields(index: int, committed: CommittedOffset | None, error: ErrorCode) -> dict[str, Any]:
    return {
        "partition_index": index,
        "committed_offset": NO_OFFSET if committed is None else committed.offset,
        "committed_leader_epoch": -1 if committed is None else committed.leader_epoch,
        "metadata": "" if committed is None else committed.metadata,
        "error_code": error,
    }
