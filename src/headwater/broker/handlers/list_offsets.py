"""ListOffsets, v1-11: the offset of a point in time. v2 sees committed records only if asked, v4 has leader epochs, and
later versions have further special timestamps. Without tiered storage everything is local and nothing is tiered.

What is found at or behind the limit (high watermark, or last stable offset) is not found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headwater.broker.registry import Context, handles
from headwater.broker.topics import check_leader_epoch
from headwater.broker.waiting import Later
from headwater.log.reads import ReadJob
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)  # fmt: skip

if TYPE_CHECKING:
    from headwater.broker.state import Broker
    from headwater.log import Partition

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -1, -2, -3, -4, -5, -6
SINCE = {LATEST: 0, EARLIEST: 0, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING: 11}
READ_COMMITTED = 1
LEADER_EPOCHS_SINCE = 4

Job = tuple[ListOffsetsPartitionResponse, "Partition", "ReadJob[Any]"]


def refused(request: ListOffsetsRequest, error: KafkaError) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name, partitions=[_refusal(each, error.code) for each in topic.partitions]
            )
            for topic in request.topics
        ]
    )


@handles(ListOffsetsRequest, versions=(1, 11), error=refused)
def list_offsets(
    broker: Broker, request: ListOffsetsRequest, context: Context
) -> Later[ListOffsetsResponse]:
    jobs: list[Job] = []
    committed = request.isolation_level == READ_COMMITTED

    def look_up(name: str, each: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
        try:
            return _look_up(broker, name, each, context.api_version, committed, jobs)
        except KafkaError as error:
            return _refusal(each, error.code)

    response = ListOffsetsResponse(topics=_topics(request, look_up))
    later: Later[ListOffsetsResponse] = Later()

    def finish() -> None:
        if context.api_version < LEADER_EPOCHS_SINCE:
            _forget_epochs(response)
        later.set(response)

    if jobs:
        _run(broker, jobs, finish)
    else:
        finish()
    return later


def _forget_epochs(response: ListOffsetsResponse) -> None:
    """An old version cannot carry them, and says so by an error."""
    for topic in response.topics:
        for each in topic.partitions:
            each.leader_epoch = -1


def _topics(
    request: ListOffsetsRequest, look_up: Callable[[str, ListOffsetsPartition], ListOffsetsPartitionResponse]
) -> list[ListOffsetsTopicResponse]:
    """Of a partition that is asked for twice nothing is said but that."""
    asked: dict[str, list[ListOffsetsTopic]] = {}
    for topic in request.topics:
        asked.setdefault(topic.name, []).append(topic)
    topics = []
    for name, parts in asked.items():
        partitions: dict[int, ListOffsetsPartition] = {}
        twice = set()
        for each in (each for part in parts for each in part.partitions):
            if each.partition_index in partitions:
                twice.add(each.partition_index)
            partitions[each.partition_index] = each
        answers = [
            _refusal(each, ErrorCode.INVALID_REQUEST) if index in twice else look_up(name, each)
            for index, each in partitions.items()
        ]
        topics.append(ListOffsetsTopicResponse(name=name, partitions=answers))
    return topics


def _look_up(
    broker: Broker, name: str, asked: ListOffsetsPartition, version: int, committed: bool, jobs: list[Job]
) -> ListOffsetsPartitionResponse:
    timestamp = asked.timestamp
    if timestamp < 0 and version < SINCE.get(timestamp, 99):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    partition = broker.partition(name, asked.partition_index)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    check_leader_epoch(partition, asked.current_leader_epoch)
    limit = partition.last_stable_offset if committed else partition.high_watermark
    answer = ListOffsetsPartitionResponse(partition_index=asked.partition_index)
    if timestamp == LATEST:
        answer.offset, answer.leader_epoch = limit, partition.leader_epoch
    elif timestamp in (EARLIEST, EARLIEST_LOCAL):
        answer.offset = partition.log_start_offset
        answer.leader_epoch = partition.epochs.epoch_at(partition.log_start_offset)
    elif timestamp not in (LATEST_TIERED, EARLIEST_PENDING):
        _search(partition, timestamp, limit, answer, jobs)
    return answer


def _search(
    partition: Partition, timestamp: int, limit: int, answer: ListOffsetsPartitionResponse, jobs: list[Job]
) -> None:
    if timestamp == MAX_TIMESTAMP:
        found = partition.max_timestamp(limit)
    else:
        found = partition.offset_by_time(timestamp, limit)
    if isinstance(found, ReadJob):
        jobs.append((answer, partition, found))
    else:
        _fill(answer, found)


def _fill(answer: ListOffsetsPartitionResponse, found: Any) -> None:
    if found is not None:
        answer.timestamp, answer.offset, answer.leader_epoch = found.timestamp, found.offset, found.leader_epoch


def _run(broker: Broker, jobs: list[Job], finish: Callable[[], None]) -> None:
    """All look-ups that must read the disk, as one job of a reader."""

    def read() -> list[Any]:
        results: list[Any] = []
        for _, _, job in jobs:
            try:
                results.append(job.run())
            except KafkaError as error:
                results.append(error)
        return results

    def done(results: Any) -> None:
        if isinstance(results, Exception):
            broker.report_bug("ListOffsets from the disk", results)
            results = [KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)] * len(jobs)
        for (answer, partition, _), result in zip(jobs, results, strict=True):
            if partition.deleted:
                answer.error_code = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif isinstance(result, KafkaError):
                answer.error_code = int(result.code)
            else:
                _fill(answer, result)
        finish()

    broker.io(read, done)


def _refusal(asked: ListOffsetsPartition, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=int(code))
