"""What the members of a group have in common: the protocol they vote for and the topics they read.

The coordinator does not understand assignments; it counts votes, and of the embedded consumer protocol it
reads only the topic names (so that offsets of topics in use neither expire nor are deleted).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import TypeVar

from headwater.broker.internal_topics import CONSUMER_OFFSETS, java_hash, partition_for

T = TypeVar("T")
CONSUMER_PROTOCOL_TYPE = "consumer"


def hash_map_order(keys: Iterable[T], hash_of: Callable[[T], int]) -> list[T]:
    """The order in which Java's HashMap lists these keys."""
    listed = list(keys)
    buckets = 16
    while len(listed) > buckets * 3 // 4:
        buckets *= 2

    def bucket(key: T) -> int:
        value = hash_of(key) & 0xFFFFFFFF
        return (value ^ value >> 16) & (buckets - 1)

    return sorted(listed, key=bucket)


def coordinator_order(group_ids: Iterable[str], partitions: int) -> list[str]:
    """Kafka answers for several groups in the order of a table by partition of __consumer_offsets."""
    by_partition: dict[int, list[str]] = {}
    for group_id in group_ids:
        by_partition.setdefault(partition_for(group_id, partitions), []).append(group_id)
    topic = java_hash(CONSUMER_OFFSETS)
    order = hash_map_order(by_partition, lambda partition: 31 * (31 + partition) + topic)
    return [group_id for partition in order for group_id in by_partition[partition]]


def elect(votes: Iterable[str]) -> str:
    """The name with most votes; a tie is broken as Kafka's table of votes happens to be ordered."""
    count: dict[str, int] = {}
    for vote in votes:
        count[vote] = count.get(vote, 0) + 1
    return max(hash_map_order(count, java_hash), key=count.__getitem__)


def subscribed_topics(metadata: bytes) -> list[str]:
    """Topic names of a consumer's subscription, any version (later ones append). ValueError if it is none."""
    try:
        version, count = struct.unpack_from(">hi", metadata)
        if version < 0 or not 0 <= count <= len(metadata):
            raise ValueError(f"not a subscription: version {version}, {count} topics")
        topics, position = [], 6
        for _ in range(count):
            (length,) = struct.unpack_from(">h", metadata, position)
            position += 2
            if length < 0 or position + length > len(metadata):
                raise ValueError("a topic name runs past the end of the subscription")
            topics.append(str(metadata[position : position + length], "utf-8"))
            position += length
        return topics
    except struct.error as error:
        raise ValueError("the subscription is cut short") from error
