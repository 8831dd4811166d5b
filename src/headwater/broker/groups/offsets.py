"""Committed offsets, in two views, and those that wait for the end of their transaction.

``latest`` is what has been written, ``visible`` what is durable: a reader is answered from ``visible``
alone, so no crash takes back what it saw; whoever decides what to write (delete, expire) uses ``latest``.
Changes reach ``visible`` in the order in which they reached ``latest``, because both follow the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

NO_TOPIC_ID = bytes(16)
NO_EXPIRY = -1


class CommittedOffset(NamedTuple):
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int  # only clients of OffsetCommit 2 to 4 could ask for it
    topic_id: bytes
    record_offset: int  # where it stands in its partition of __consumer_offsets: the later one wins


Topics = dict[str, dict[int, CommittedOffset]]


class OffsetView:
    """Offsets by group, topic and partition."""

    __slots__ = ("groups",)

    def __init__(self) -> None:
        self.groups: dict[str, Topics] = {}

    def get(self, group: str, topic: str, partition: int) -> CommittedOffset | None:
        return self.groups.get(group, {}).get(topic, {}).get(partition)

    def put(self, group: str, topic: str, partition: int, committed: CommittedOffset | None) -> None:
        """None removes, and leaves no empty tables behind."""
        if committed is not None:
            self.groups.setdefault(group, {}).setdefault(topic, {})[partition] = committed
            return
        topics = self.groups.get(group, {})
        partitions = topics.get(topic, {})
        if partitions.pop(partition, None) is not None and not partitions:
            del topics[topic]
            if not topics:
                del self.groups[group]

    def remove_group(self, group: str) -> None:
        self.groups.pop(group, None)

    def of_group(self, group: str) -> Iterator[tuple[str, int, CommittedOffset]]:
        for topic, partitions in list(self.groups.get(group, {}).items()):
            for partition, committed in list(partitions.items()):
                yield topic, partition, committed

    def of_topic(self, topic: str) -> Iterator[tuple[str, int]]:
        for group, topics in list(self.groups.items()):
            for partition in list(topics.get(topic, ())):
                yield group, partition

    def copy(self) -> OffsetView:
        view = OffsetView()
        view.groups = {
            group: {topic: dict(partitions) for topic, partitions in topics.items()}
            for group, topics in self.groups.items()
        }
        return view


class PendingOffsets:
    """Offsets inside transactions: by partition of __consumer_offsets and producer, as markers end them."""

    __slots__ = ("_groups_of", "_keys_of", "_open")

    def __init__(self) -> None:
        self._open: dict[tuple[int, int], OffsetView] = {}
        self._groups_of: dict[tuple[int, int], set[str]] = {}
        self._keys_of: dict[str, set[tuple[int, int]]] = {}

    def put(
        self, key: tuple[int, int], group: str, topic: str, partition: int, offset: CommittedOffset
    ) -> None:
        self._open.setdefault(key, OffsetView()).put(group, topic, partition, offset)
        self._groups_of.setdefault(key, set()).add(group)
        self._keys_of.setdefault(group, set()).add(key)

    def discard(self, group: str, topic: str, partition: int) -> None:
        """The offset was deleted: the end of the transaction must not bring it back."""
        for key in self._keys_of.get(group, ()):
            self._open[key].put(group, topic, partition, None)

    def of_key(self, key: tuple[int, int]) -> list[tuple[str, str, int, CommittedOffset]]:
        """What a commit of this producer would make visible."""
        view = self._open.get(key)
        if view is None:
            return []
        return [(group, *entry) for group in list(view.groups) for entry in view.of_group(group)]

    def end(self, key: tuple[int, int], after: int | None = None) -> None:
        """Forget what stands before ``after``: the producer's next transaction may have begun behind its marker."""
        kept = [] if after is None else [entry for entry in self.of_key(key) if entry[3].record_offset >= after]
        self._open.pop(key, None)
        for group in self._groups_of.pop(key, ()):
            keys = self._keys_of[group]
            keys.discard(key)
            if not keys:
                del self._keys_of[group]
        for entry in kept:
            self.put(key, *entry)

    def forget_partition(self, index: int) -> None:
        """Of one partition of __consumer_offsets: it could not be loaded."""
        for key in [key for key in self._open if key[0] == index]:
            self.end(key)

    def is_open(self, group: str) -> bool:
        return group in self._keys_of

    def has(self, group: str, topic: str, partition: int) -> bool:
        return any(
            self._open[key].get(group, topic, partition) is not None for key in self._keys_of.get(group, ())
        )

    def of_group(self, group: str) -> Iterator[tuple[str, int]]:
        for key in list(self._keys_of.get(group, ())):
            for topic, partition, _ in self._open[key].of_group(group):
                yield topic, partition

    def of_topic(self, topic: str) -> Iterator[tuple[str, int]]:
        for view in list(self._open.values()):
            yield from view.of_topic(topic)
