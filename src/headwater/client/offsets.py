"""Offsets by name and by time, many partitions at a time: earliest, latest (of one isolation level), at a time.

A `Start` is what people write: "earliest", "latest", an offset (negative: that many before the end), a time.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from headwater.client import librdkafka
from headwater.client.connection import Connection, Partition
from headwater.client.record import to_milliseconds
from headwater.core.errors import NotFound, UsageError
from headwater.core.position import Position

Start = "str | int | datetime | Position | Iterable[Position]"
Offsets = dict[Partition, int]


def earliest(connection: Connection, partitions: Iterable[Partition]) -> Offsets:
    spec = librdkafka.load_admin().OffsetSpec
    return _ask(connection, partitions, spec.earliest(), committed=False)


def latest(connection: Connection, partitions: Iterable[Partition], committed: bool = True) -> Offsets:
    """The end of each partition; of the committed records only, when `committed`."""
    spec = librdkafka.load_admin().OffsetSpec
    return _ask(connection, partitions, spec.latest(), committed)


def at_time(
    connection: Connection, partitions: Iterable[Partition], milliseconds: int, committed: bool = True
) -> Offsets:
    """The first record at or after a time; the end of the partition where there is none."""
    spec = librdkafka.load_admin().OffsetSpec
    wanted = list(partitions)
    found = _ask(connection, wanted, spec.for_timestamp(milliseconds), committed)
    missing = [partition for partition, offset in found.items() if offset < 0]
    if missing:
        found.update(latest(connection, missing, committed))
    return found


def resolve(connection: Connection, partitions: list[Partition], start: Any, committed: bool = True) -> Offsets:
    """Where each partition begins, for any form of `Start`."""
    if start in ("earliest", "beginning"):
        return earliest(connection, partitions)
    if start in ("latest", "end"):
        return latest(connection, partitions, committed)
    if isinstance(start, datetime):
        milliseconds = to_milliseconds(start)
        assert milliseconds is not None
        return at_time(connection, partitions, milliseconds, committed)
    if isinstance(start, (bool, str)):
        raise UsageError(
            operation="read", place="from there", cause=f"{start!r} is not a place in a log",
            next_step='Give "earliest", "latest", an offset, a datetime or a position',
        )
    first = earliest(connection, partitions)
    last = latest(connection, partitions, committed)
    if isinstance(start, int):
        return {partition: _offset(partition, start, first, last) for partition in partitions}
    positions = [start] if isinstance(start, Position) else list(start)
    return _from_positions(connection, partitions, positions, first, last)


def _offset(partition: Partition, wanted: int, first: Offsets, last: Offsets) -> int:
    if wanted < 0:
        return max(last[partition] + wanted, first[partition])
    if not first[partition] <= wanted <= last[partition]:
        topic, index = partition
        raise NotFound(
            operation="read", place=f"topic {topic}, partition {index}",
            cause=f"offset {wanted} is not there: the partition holds {first[partition]} to {last[partition]}",
            next_step="Start at earliest, at a time, or name the partition that you mean",
        )
    return wanted


def _from_positions(
    connection: Connection, partitions: list[Partition], positions: list[Position], first: Offsets, last: Offsets
) -> Offsets:
    """Positions name a topic by its id: one of a topic that was deleted and made again is refused."""
    from headwater.client.topics import topic_ids

    names = topic_ids(connection, {topic for topic, _ in partitions})
    found: Offsets = {}
    for position in positions:
        for topic, index in partitions:
            if index == position.partition and names.get(topic) == position.topic_id:
                found[topic, index] = _offset((topic, index), position.offset, first, last)
    if len(found) < len(positions):
        raise NotFound(
            operation="read topic", place=", ".join(sorted({topic for topic, _ in partitions})),
            cause="a position belongs to another topic, or to one of the same name that was deleted since",
            next_step="Read from earliest, or open the log that the position came from",
        )
    return found


def _ask(connection: Connection, partitions: Iterable[Partition], spec: Any, committed: bool) -> Offsets:
    kafka = librdkafka.load()
    wanted = {kafka.TopicPartition(topic, index): spec for topic, index in partitions}
    if not wanted:
        return {}
    level = kafka.IsolationLevel
    futures: Mapping[Any, Any] = connection.admin.list_offsets(
        wanted,
        isolation_level=level.READ_COMMITTED if committed else level.READ_UNCOMMITTED,
        request_timeout=connection.timeout,
    )
    found: Offsets = {}
    for partition, future in futures.items():
        place = f"{partition.topic}, partition {partition.partition}"
        found[partition.topic, partition.partition] = connection.answer(future, "ask for the offsets of", place).offset
    return found
