"""Answers of the offset APIs: one error for each partition, under its topic, in Kafka's order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from headwater.broker.groups.offsets import NO_TOPIC_ID
from headwater.wire.errors import ErrorCode

if TYPE_CHECKING:
    from headwater.broker.state import Broker
    from headwater.log import Topic

TopicName = tuple[str, bytes]  # name and id as the client gave them


class PartitionErrors:
    """What was refused before the group was asked stands first; the group's own answers follow."""

    __slots__ = ("_topics",)

    def __init__(self) -> None:
        self._topics: dict[TopicName, list[tuple[int, ErrorCode]]] = {}

    def add(self, topic: TopicName, partition: int, error: ErrorCode) -> None:
        self._topics.setdefault(topic, []).append((partition, error))

    def topics(self) -> Iterable[tuple[TopicName, list[tuple[int, ErrorCode]]]]:
        return self._topics.items()

    def __bool__(self) -> bool:
        return bool(self._topics)


def known_topic(
    broker: Broker, name: str, topic_id: bytes | memoryview, *, by_id: bool
) -> tuple[Topic | None, TopicName, ErrorCode]:
    """(the topic, what to call it in the answer, what to say of partitions that do not exist)"""
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if not by_id:
        return broker.log.topics.get(name), (name, NO_TOPIC_ID), unknown
    identity = bytes(topic_id)
    found = None if identity == NO_TOPIC_ID else broker.log.topic_by_id(identity)
    return found, ("", identity), unknown if found is not None else ErrorCode.UNKNOWN_TOPIC_ID
