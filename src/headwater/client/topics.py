"""Topics over the protocol: list, describe, create, delete, configure, grow, and their ids.

Every call has the connection's deadline; an unknown name is NotFound with the nearest one.
"""
from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from headwater.client import librdkafka, offsets
from headwater.client.connection import Connection, unknown
from headwater.core.errors import NotFound, UsageError

NAME_LENGTH_MAX = 249  # Kafka's: a partition's directory must be a file name
SETTINGS = (  # Kafka's, to name what a typo meant; the broker decides
    "cleanup.policy", "compression.gzip.level", "compression.lz4.level", "compression.type",
    "compression.zstd.level", "delete.retention.ms", "file.delete.delay.ms", "flush.messages", "flush.ms",
    "follower.replication.throttled.replicas", "index.interval.bytes", "leader.replication.throttled.replicas",
    "local.retention.bytes", "local.retention.ms", "max.compaction.lag.ms", "max.message.bytes",
    "message.timestamp.after.max.ms", "message.timestamp.before.max.ms", "message.timestamp.type",
    "min.cleanable.dirty.ratio", "min.compaction.lag.ms", "min.insync.replicas", "preallocate",
    "remote.storage.enable", "retention.bytes", "retention.ms", "segment.bytes", "segment.index.bytes",
    "segment.jitter.ms", "segment.ms", "unclean.leader.election.enable",
)
INTERNAL_PREFIX = "__"  # Kafka's own topics and ours


class Setting(NamedTuple):
    """One setting of a topic; `overridden` when it was set for this topic and is not the broker's default."""

    value: str | None
    overridden: bool


class PartitionDescription(NamedTuple):
    """Where one partition stands."""

    partition: int
    leader: int
    replicas: list[int]
    in_sync: list[int]
    start: int
    end: int


class TopicDescription(NamedTuple):
    """A topic with the offsets that its partitions have now."""

    name: str
    topic_id: str
    partitions: list[PartitionDescription]
    settings: dict[str, Setting]

    @property
    def records(self) -> int:
        """How many offsets are there: records, and transactions' markers with them."""
        return sum(partition.end - partition.start for partition in self.partitions)


def require_name(name: str, operation: str) -> None:
    """Kafka's rule for the names of topics, said before anything is sent."""
    if name in (".", "..") or len(name) > NAME_LENGTH_MAX or not re.fullmatch(r"[A-Za-z0-9._-]+", name):
        raise UsageError(
            operation, place=repr(name), cause="a topic cannot have this name",
            next_step=f"Use letters a-z and A-Z, digits, dot, underscore and hyphen, {NAME_LENGTH_MAX} at most.",
        )


class Topics:
    """The topics of one log."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def all(self, internal: bool = False) -> dict[str, int]:
        """Names with their number of partitions, sorted."""
        found = self._connection.partitions("list the topics of")
        return {name: found[name] for name in sorted(found) if internal or not name.startswith(INTERNAL_PREFIX)}

    def create(
        self, name: str, partitions: int = -1, settings: Mapping[str, str] | None = None, replication: int = -1
    ) -> None:
        """-1 leaves the number to the broker; -1 for replication too."""
        require_name(name, "create topic")
        connection = self._connection
        topic = librdkafka.load_admin().NewTopic(name, partitions, replication, config=dict(settings or {}))
        self._each(
            connection.admin.create_topics([topic], request_timeout=connection.timeout), "create topic", _name
        )

    def delete(self, names: Iterable[str]) -> None:
        connection = self._connection
        wanted = list(connection.require_topics(names, "delete"))
        futures = connection.admin.delete_topics(wanted, request_timeout=connection.timeout)
        self._each(futures, "delete topic", _name)

    def add_partitions(self, name: str, total: int) -> None:
        """Grow to `total` partitions. Keys move: a record's partition is its key's hash modulo their number."""
        connection = self._connection
        connection.require_topics([name], "add partitions to")
        grown = librdkafka.load_admin().NewPartitions(name, total)
        futures = connection.admin.create_partitions([grown], request_timeout=connection.timeout)
        self._each(futures, "add partitions to topic", _name)

    def configure(self, name: str, values: Mapping[str, str], defaults: Iterable[str] = ()) -> None:
        """Set these settings, give the `defaults` back to the broker, leave the rest."""
        connection = self._connection
        connection.require_topics([name], "configure")
        admin = librdkafka.load_admin()
        how = admin.AlterConfigOpType
        entries = [admin.ConfigEntry(key, value, incremental_operation=how.SET) for key, value in values.items()]
        entries += [admin.ConfigEntry(key, None, incremental_operation=how.DELETE) for key in defaults]
        resource = admin.ConfigResource("topic", name, incremental_configs=entries)
        futures = connection.admin.incremental_alter_configs([resource], request_timeout=connection.timeout)
        self._each(futures, "configure topic", lambda found: found.name)

    def settings(self, name: str) -> dict[str, Setting]:
        return self._settings("topic", name)

    def broker_settings(self, node: int) -> dict[str, Setting]:
        """A broker's own settings; needs the right to describe the cluster."""
        return self._settings("broker", str(node))

    def _settings(self, kind: str, name: str) -> dict[str, Setting]:
        connection = self._connection
        resource = librdkafka.load_admin().ConfigResource(kind, name)
        futures = connection.admin.describe_configs([resource], request_timeout=connection.timeout)
        (future,) = futures.values()
        found = connection.answer(future, "read the settings of", f"{kind} {name}")
        return {
            key: Setting(entry.value, not entry.is_default and entry.source in (1, None))
            for key, entry in sorted(found.items())
        }

    def describe(self, name: str) -> TopicDescription:
        connection = self._connection
        found = _describe(connection, [name])[name]
        places = [(name, partition.id) for partition in found.partitions]
        starts = offsets.earliest(connection, places)
        ends = offsets.latest(connection, places, committed=False)
        partitions = [
            PartitionDescription(
                partition.id,
                -1 if partition.leader is None else partition.leader.id,
                [node.id for node in partition.replicas],
                [node.id for node in partition.isr],
                starts[name, partition.id],
                ends[name, partition.id],
            )
            for partition in found.partitions
        ]
        return TopicDescription(name, id_text(found.topic_id), partitions, self.settings(name))

    def _each(self, futures: Mapping[Any, Any], operation: str, name_of: Any) -> None:
        for key, future in futures.items():
            self._connection.answer(future, operation, f"{name_of(key)} at {self._connection.address.servers}")


def _name(key: Any) -> str:
    return str(key)


def _describe(connection: Connection, names: Iterable[str]) -> dict[str, Any]:
    wanted = list(names)
    if not wanted or not all(wanted):
        raise UsageError("describe a topic", cause="its name is empty", next_step="Name a topic.")
    futures = connection.admin.describe_topics(
        librdkafka.load().TopicCollection(wanted), request_timeout=connection.timeout
    )
    found = {}
    for name, future in futures.items():
        try:
            found[name] = connection.answer(future, "describe topic", f"{name} at {connection.address.servers}")
        except NotFound:
            known = connection.partitions("list the topics of")
            raise unknown("topic", name, known, "describe", connection.address.servers) from None
    return found


def topic_ids(connection: Connection, names: Iterable[str]) -> dict[str, bytes]:
    return {name: _id_bytes(found.topic_id) for name, found in _describe(connection, names).items()}


def id_text(topic_id: Any) -> str:
    from headwater.core import ids

    return ids.to_text(_id_bytes(topic_id))


def _id_bytes(topic_id: Any) -> bytes:
    # librdkafka's text form is plain base64; Kafka's is the URL-safe one, so the bits are taken instead
    high = topic_id.get_most_significant_bits() & (2**64 - 1)
    low = topic_id.get_least_significant_bits() & (2**64 - 1)
    return bytes(high.to_bytes(8, "big") + low.to_bytes(8, "big"))
