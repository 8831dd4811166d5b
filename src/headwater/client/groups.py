"""Consumer groups over the protocol: list, describe with lag, move to other offsets, delete.

A move is planned first and applied afterwards, so that a person sees the difference before anything changes.
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from headwater.client import librdkafka, offsets
from headwater.client.connection import Connection, Partition, unknown
from headwater.core.errors import Conflict, HeadwaterError, NotFound, UsageError


class GroupListing(NamedTuple):
    name: str
    state: str
    kind: str


class Progress(NamedTuple):
    """One partition of a group: what it has committed (None: nothing), where the log ends, who reads it."""

    topic: str
    partition: int
    committed: int | None
    end: int
    member: str | None
    host: str | None

    @property
    def lag(self) -> int | None:
        return None if self.committed is None else max(self.end - self.committed, 0)


class GroupDescription(NamedTuple):
    name: str
    state: str
    kind: str
    assignor: str
    coordinator: int
    members: int
    progress: list[Progress]

    @property
    def lag(self) -> int:
        return sum(partition.lag or 0 for partition in self.progress)


class Move(NamedTuple):
    """What a reset does to one partition; `before` None: nothing was committed. `asked` is set where the log does
    not reach as far: the group goes to the log's end (or its beginning) instead."""

    topic: str
    partition: int
    before: int | None
    after: int
    asked: int | None = None


class Groups:
    """The consumer groups of one log."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def all(self) -> list[GroupListing]:
        connection = self._connection
        future = connection.admin.list_consumer_groups(request_timeout=connection.timeout)
        found = connection.answer(future, "list the groups of", connection.address.servers)
        if found.errors and not found.valid:
            raise connection.explain(found.errors[0], "list the groups of", connection.address.servers)
        return sorted(
            GroupListing(group.group_id, _plain(group.state), _plain(getattr(group, "type", None)))
            for group in found.valid
        )

    def describe(self, name: str) -> GroupDescription:
        connection = self._connection
        found = self._describe(name)
        committed = self.committed(name)
        readers = {
            (place.topic, place.partition): (member.client_id, member.host)
            for member in found.members for place in member.assignment.topic_partitions
        }
        places = sorted(set(committed) | set(readers))
        known = connection.partitions("list the topics of") if places else {}
        ends = offsets.latest(connection, [place for place in places if known.get(place[0], 0) > place[1]])
        progress = [
            Progress(topic, index, committed.get((topic, index)), ends.get((topic, index), -1),
                     *readers.get((topic, index), (None, None)))
            for topic, index in places
        ]
        coordinator = found.coordinator.id if found.coordinator is not None else -1
        return GroupDescription(
            name, _plain(found.state), _plain(getattr(found, "type", None)), found.partition_assignor,
            coordinator, len(found.members), progress,
        )

    def _describe(self, name: str) -> Any:
        connection = self._connection
        futures = connection.admin.describe_consumer_groups([name], request_timeout=connection.timeout)
        try:
            found = connection.answer(futures[name], "describe group", f"{name} at {connection.address.servers}")
        except NotFound:
            raise self._unknown(name, "describe") from None
        if _plain(found.state) == "dead":
            raise self._unknown(name, "describe")
        return found

    def exists(self, name: str) -> bool:
        return any(group.name == name for group in self.all())

    def _unknown(self, name: str, operation: str) -> NotFound:
        known = [group.name for group in self.all()]
        return unknown("group", name, known, operation, self._connection.address.servers)

    def committed(self, name: str) -> dict[Partition, int]:
        """What the group has committed; a group that does not exist has committed nothing."""
        connection = self._connection
        futures = connection.admin.list_consumer_group_offsets(
            [librdkafka.load().ConsumerGroupTopicPartitions(name)], request_timeout=connection.timeout
        )
        found = connection.answer(futures[name], "read the offsets of group", name)
        return {
            (place.topic, place.partition): place.offset
            for place in found.topic_partitions or () if place.offset >= 0
        }

    def plan_move(
        self, name: str, topics: Iterable[str] = (), to: Any = None, shift: int | None = None,
        partitions: Iterable[Partition] = (),
    ) -> list[Move]:
        """Where each partition would go. Without topics: all that the group has committed to."""
        connection = self._connection
        committed = self.committed(name)
        places = self._places(name, list(topics), list(partitions), committed)
        first = offsets.earliest(connection, places)
        last = offsets.latest(connection, places)
        if shift is not None:
            target = {place: committed.get(place, first[place]) + shift for place in places}
        elif isinstance(to, int):
            target = dict.fromkeys(places, to)
        else:
            target = offsets.resolve(connection, places, to)
        moves = []
        for place in places:
            asked = target[place]
            after = min(max(asked, first[place]), last[place])
            moves.append(Move(*place, committed.get(place), after, None if asked == after else asked))
        return moves

    def _places(
        self, name: str, topics: list[str], chosen: list[Partition], committed: dict[Partition, int]
    ) -> list[Partition]:
        operation = f"move group {name} on"
        if not topics and not chosen:
            if not committed:
                raise self._unknown(name, "move") if not self.exists(name) else UsageError(
                    f"move group {name}", cause="it has committed nothing, so there are no topics to take",
                    next_step="Name the topics.",
                )
            known = self._connection.partitions(operation)
            return sorted(place for place in committed if known.get(place[0], 0) > place[1])
        counts = self._connection.require_topics({*topics, *(topic for topic, _ in chosen)}, operation)
        for topic, index in chosen:
            if not 0 <= index < counts[topic]:
                raise UsageError(
                    operation, place=f"topic {topic}", cause=f"there is no partition {index}",
                    next_step=f"Its partitions are 0 to {counts[topic] - 1}.",
                )
        return sorted({*chosen, *((topic, index) for topic in topics for index in range(counts[topic]))})

    def apply(self, name: str, moves: Iterable[Move]) -> None:
        """Commit the planned offsets for a group without members."""
        kafka = librdkafka.load()
        places = [kafka.TopicPartition(move.topic, move.partition, move.after) for move in moves]
        if not places:
            return
        connection = self._connection
        request = kafka.ConsumerGroupTopicPartitions(name, places)
        futures = connection.admin.alter_consumer_group_offsets([request], request_timeout=connection.timeout)
        try:
            found = connection.answer(futures[name], "move group", name)
        except Conflict as error:
            raise _in_use(name, error) from None
        for place in found.topic_partitions or ():
            if place.error is not None:
                problem = connection.explain(place.error, "move group", f"{name} on {place.topic}[{place.partition}]")
                raise _in_use(name, problem) if isinstance(problem, Conflict) else problem

    def delete(self, name: str) -> None:
        connection = self._connection
        futures = connection.admin.delete_consumer_groups([name], request_timeout=connection.timeout)
        try:
            connection.answer(futures[name], "delete group", f"{name} at {connection.address.servers}")
        except NotFound:
            raise self._unknown(name, "delete") from None
        except Conflict as error:
            raise _in_use(name, error) from None


def _in_use(name: str, error: HeadwaterError) -> Conflict:
    return Conflict(
        "change group", place=name, cause=f"it has members ({error.cause})",
        next_step="Stop its consumers, or wait until their sessions end, and try again.",
    )


def _plain(name: Any) -> str:
    """librdkafka's enum names as people write them: STABLE -> stable."""
    return "unknown" if name is None else str(getattr(name, "name", name)).lower().replace("_", " ")
