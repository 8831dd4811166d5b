"""DescribeLogDirs, v1-5: the data directory, what each partition occupies there, and the space that is left (v4)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from headwater.broker.registry import Context, handles
from headwater.broker.waiting import Later
from headwater.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)  # fmt: skip

if TYPE_CHECKING:
    from headwater.broker.state import Broker


@handles(DescribeLogDirsRequest, versions=(1, 5))
def describe_log_dirs(
    broker: Broker, request: DescribeLogDirsRequest, context: Context
) -> Later[DescribeLogDirsResponse]:
    here = DescribeLogDirsResult(log_dir=broker.log.root, topics=_sizes(broker, request))
    later: Later[DescribeLogDirsResponse] = Later()

    def done(free: int | Exception) -> None:
        if not isinstance(free, Exception):
            here.usable_bytes = free  # the size of the whole disk stays unknown, -1
        later.set(DescribeLogDirsResponse(results=[here]))

    log = broker.log
    broker.io(lambda: log.disk.free_bytes(log.root), done)
    return later


def _sizes(broker: Broker, request: DescribeLogDirsRequest) -> list[DescribeLogDirsTopic]:
    wanted: dict[str, Iterable[int]] = {}
    if request.topics is None:
        wanted = {name: range(len(topic.partitions)) for name, topic in sorted(broker.log.topics.items())}
    else:
        wanted = {topic.topic: topic.partitions for topic in request.topics}
    topics = []
    for name, indexes in wanted.items():
        partitions = [
            DescribeLogDirsPartition(partition_index=index, partition_size=partition.size)
            for index in indexes
            if (partition := broker.partition(name, index)) is not None
        ]
        if partitions:
            topics.append(DescribeLogDirsTopic(name=name, partitions=partitions))
    return topics
