"""The broker's settings: Apache Kafka's names and defaults for everything that is honoured here.

A name that is not in the table is refused, with the nearest one that is: a setting that is silently
ignored is a promise that is silently broken. Where our default differs from Kafka's the table says why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.core.errors import UsageError
from headwater.log.topic_config import (
    BOOLEAN,
    DOUBLE,
    INT,
    INT32_MAX,
    INT64_MAX,
    LIST,
    LONG,
    STRING,
    TOPIC_CONFIGS,
    TopicConfig,
    parse_value,
)  # fmt: skip
from headwater.wire.errors import KafkaError

# Settings of Kafka's that are options of ours; they are shown, and refused with the option to type.
OPTIONS = {
    "log.dirs": "--data DIR", "listeners": "--listen HOST:PORT", "advertised.listeners": "--advertise HOST:PORT"
}  # fmt: skip

# Where a value comes from, as DescribeConfigs numbers it.
SOURCE_TOPIC, SOURCE_COMMAND_LINE, SOURCE_DEFAULT = 1, 4, 5


class Row(NamedTuple):
    """One setting: what it may be (a topic's settings have the same form), its default, whether Kafka can change it
    while it runs (we cannot, but say which ones they are)."""

    config: TopicConfig
    default: str | None
    dynamic: bool


def _dynamic(name: str, type: str, default: str | None, text: str, **limits: Any) -> Row:
    return Row(TopicConfig(name, type, default or "", text, **limits), default, True)


def _fixed(name: str, type: str, default: str | None, text: str, **limits: Any) -> Row:
    return Row(TopicConfig(name, type, default or "", text, **limits), default, False)


def _table() -> Iterator[Row]:
    yield from _identity()
    yield from _topics()
    yield from _log()
    yield from _groups()
    yield from _transactions()
    yield from _connections()


def _identity() -> Iterator[Row]:
    yield _fixed("node.id", INT, "1", "The id of this broker, and of the controller: it is both.", least=0)
    yield _fixed("broker.id", INT, "1", "The older name of node.id.", least=0)

    yield _fixed("log.dirs", LIST, "", "The data directory: --data.")
    yield _fixed("advertised.listeners", LIST, "", "The address that clients are told to use: --advertise.")
    yield _fixed("listeners", LIST, "", "The address that is listened on: --listen.")


def _topics() -> Iterator[Row]:
    yield _fixed("num.partitions", INT, "1", "Partitions of a topic whose creator does not say.", least=1)
    yield _fixed(
        "default.replication.factor", INT, "1", "Copies of each partition; one node keeps one.", least=1, most=1
    )
    yield _fixed(
        "auto.create.topics.enable", BOOLEAN, "true", "Whether asking for the metadata of a topic creates it."
    )
    yield _fixed("delete.topic.enable", BOOLEAN, "true", "Whether topics may be deleted.")
    yield _dynamic("min.insync.replicas", INT, "1", "Not used: one node keeps one copy.", least=1)
    yield _dynamic("unclean.leader.election.enable", BOOLEAN, "false", "Has no meaning on one node.")
    yield _dynamic(
        "compression.type", STRING, "producer", "Codec of stored batches; batches stay as they were sent.",
        choices=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    )  # fmt: skip
    yield _dynamic("compression.gzip.level", INT, "-1", "Not used: batches stay as they were sent.")
    yield _dynamic("compression.lz4.level", INT, "9", "Not used: batches stay as they were sent.", least=1, most=17)
    yield _dynamic("compression.zstd.level", INT, "3", "Not used: batches stay as they were sent.")


def _log() -> Iterator[Row]:
    yield _fixed("log.retention.hours", INT, "168", "Age at which segments go, unless a finer unit is given.")
    yield _fixed("log.retention.minutes", INT, None, "Age at which segments go, in minutes.")
    yield _dynamic("log.retention.ms", LONG, None, "Age at which segments go, in milliseconds; -1: never.")
    yield _dynamic("log.retention.bytes", LONG, "-1", "Size of a partition above which its oldest segment goes.")
    yield _fixed("log.retention.check.interval.ms", LONG, "300000", "How often retention is looked at.", least=1)
    yield _dynamic("log.segment.bytes", INT, "1073741824", "Size at which a segment is closed.", least=1048576)
    yield _fixed("log.roll.hours", INT, "168", "Age at which a segment is closed.", least=1)
    yield _dynamic("log.roll.ms", LONG, None, "Age at which a segment is closed, in milliseconds.")
    yield _fixed("log.roll.jitter.hours", INT, "0", "Spread of log.roll.hours. Not used.", least=0)
    yield _dynamic("log.roll.jitter.ms", LONG, None, "Spread of log.roll.ms. Not used.")
    yield _dynamic(
        "log.segment.delete.delay.ms", LONG, "60000", "Not used: a file goes once its removal is durable.", least=0
    )
    yield _dynamic("log.index.interval.bytes", INT, "4096", "Bytes of log between index entries.", least=0)
    yield _dynamic("log.index.size.max.bytes", INT, "10485760", "Size at which an index is full.", least=4)
    yield _dynamic("log.preallocate", BOOLEAN, "false", "Not used: space is reserved ahead of the writing.")
    yield _dynamic("log.cleanup.policy", LIST, "delete", "delete or compact, or both.", choices=("compact", "delete"))
    cleaned = "Whether compacted topics are cleaned: not yet."
    yield _fixed("log.cleaner.enable", BOOLEAN, "false", cleaned, choices=("false",))
    yield _dynamic("log.cleaner.delete.retention.ms", LONG, "86400000", "Life of a tombstone.", least=0)
    yield _dynamic("log.cleaner.min.compaction.lag.ms", LONG, "0", "Age before compaction.", least=0)
    yield _dynamic("log.cleaner.max.compaction.lag.ms", LONG, str(INT64_MAX), "Latest compaction.", least=1)
    yield _dynamic("log.cleaner.min.cleanable.ratio", DOUBLE, "0.5", "Dirty part that is worth it.", least=0, most=1)
    yield _dynamic("message.max.bytes", INT, "1048588", "Largest record batch that is accepted.", least=0)
    yield _dynamic(
        "log.message.timestamp.type", STRING, "CreateTime", "Whose clock stamps records.",
        choices=("CreateTime", "LogAppendTime"),
    )  # fmt: skip
    yield _dynamic(
        "log.message.timestamp.before.max.ms", LONG, str(INT64_MAX), "How old a record may say it is.", least=0
    )
    yield _dynamic(
        "log.message.timestamp.after.max.ms", LONG, "3600000", "How far ahead a record may say it is.", least=0
    )
    # Every acknowledged record is on the disk here, whatever these say; they are shown with Kafka's values.
    synced = "Not used: every acknowledged record is synced."
    yield _dynamic("log.flush.interval.messages", LONG, str(INT64_MAX), synced, least=1)
    yield _dynamic("log.flush.interval.ms", LONG, None, synced)
    yield _dynamic("log.local.retention.bytes", LONG, "-2", "Has no meaning without tiered storage.", least=-2)
    yield _dynamic("log.local.retention.ms", LONG, "-2", "Has no meaning without tiered storage.", least=-2)


def _groups() -> Iterator[Row]:
    # Kafka waits 3 seconds for more members: on one machine, in a test, that is all a user would notice.
    yield _fixed(
        "group.initial.rebalance.delay.ms", INT, "0", "How long a new group waits for further members.", least=0
    )
    yield _fixed("group.min.session.timeout.ms", INT, "6000", "Shortest session a member may ask for.", least=1)
    yield _fixed("group.max.session.timeout.ms", INT, "1800000", "Longest session a member may ask for.", least=1)
    yield _fixed("group.max.size", INT, str(INT32_MAX), "Most members of one group.", least=1)
    yield _fixed("offset.metadata.max.bytes", INT, "4096", "Longest note beside a committed offset.", least=0)
    yield _fixed("offsets.commit.timeout.ms", INT, "5000", "Has no meaning on one node.", least=1)
    yield _fixed("offsets.retention.minutes", INT, "10080", "Life of the offsets of an empty group.", least=1)
    yield _fixed("offsets.retention.check.interval.ms", LONG, "600000", "How often that is looked at.", least=1)
    yield _fixed("offsets.topic.num.partitions", INT, "50", "Partitions of __consumer_offsets.", least=1)
    yield _fixed("offsets.topic.replication.factor", INT, "1", "One node keeps one copy.", least=1, most=1)
    yield _fixed("offsets.topic.segment.bytes", INT, "104857600", "Segments of __consumer_offsets.", least=1)


def _transactions() -> Iterator[Row]:
    yield _fixed("transaction.max.timeout.ms", INT, "900000", "Longest transaction one may ask for.", least=1)
    yield _fixed(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms", INT, "10000",
        "How often open transactions are held against their timeout.", least=1,
    )  # fmt: skip
    yield _fixed(
        "transaction.remove.expired.transaction.cleanup.interval.ms", INT, "3600000",
        "How often unused transactional ids are looked for.", least=1,
    )  # fmt: skip
    yield _fixed("transactional.id.expiration.ms", INT, "604800000", "Life of an unused transactional id.", least=1)
    yield _fixed("transaction.state.log.num.partitions", INT, "50", "Partitions of __transaction_state.", least=1)
    yield _fixed("transaction.state.log.replication.factor", INT, "1", "One node keeps one copy.", least=1, most=1)
    yield _fixed("transaction.state.log.min.isr", INT, "1", "One node keeps one copy.", least=1, most=1)
    yield _fixed("transaction.state.log.segment.bytes", INT, "104857600", "Its segments.", least=1)
    yield _dynamic(
        "transaction.partition.verification.enable", BOOLEAN, "true",
        "Whether a transactional batch must belong to an open transaction.",
    )  # fmt: skip
    yield _dynamic("producer.id.expiration.ms", INT, "86400000", "Life of an unused producer id.", least=1)


def _connections() -> Iterator[Row]:
    yield _fixed("socket.request.max.bytes", INT, "104857600", "Largest request that is read.", least=1)
    # Kafka's default is no bound at all; ours keeps the process small whoever connects.
    yield _fixed(
        "queued.max.request.bytes", LONG, "67108864", "Bytes of requests that all connections together hold.", least=1
    )
    yield _fixed("fetch.max.bytes", INT, "57671680", "Most bytes that one fetch answers.", least=1024)
    yield _fixed("connections.max.idle.ms", LONG, "600000", "Silence after which a connection is closed.")
    yield _fixed(
        "max.request.partition.size.limit", INT, "2000", "Partitions in one DescribeTopicPartitions.", least=1
    )


class Setting:
    """One setting as it stands: its text and where that comes from."""

    __slots__ = ("config", "default", "dynamic", "source", "text")

    def __init__(self, row: Row) -> None:
        self.config = row.config
        self.default = row.default
        self.dynamic = row.dynamic
        self.text = row.default
        self.source = SOURCE_DEFAULT

    def parsed(self) -> Any:
        if self.text is None:
            return None
        try:
            return parse_value(self.config, self.text)
        except KafkaError as error:
            raise UsageError(
                "start the broker",
                place=f"with {self.config.name}={self.text}",
                cause=error.message or "",
                next_step=self.config.documentation,
            ) from None


# The broker's settings that stand in several units, the finest first; Kafka's topic settings have milliseconds.
_UNITS = {
    "retention.ms": ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    "segment.ms": ("log.roll.ms", "log.roll.hours"),
    "segment.jitter.ms": ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    "flush.ms": ("log.flush.interval.ms",),
}
_MILLISECONDS = {"ms": 1, "minutes": 60_000, "hours": 3_600_000}


class BrokerSettings:
    """All settings, typed, as attributes: ``num.partitions`` is ``settings.num_partitions``."""

    def __init__(self, given: Mapping[str, str] | None = None) -> None:
        self.all: dict[str, Setting] = {row.config.name: Setting(row) for row in _table()}
        given = dict(given or {})
        if "broker.id" in given:
            given.setdefault("node.id", given["broker.id"])
        for name, text in given.items():
            setting = self.all.get(name)
            if setting is None:
                raise _unknown(name, list(self.all))
            if name in OPTIONS:
                raise UsageError(
                    "start the broker", place=f"with {name}", cause="this is an option and not a setting here",
                    next_step=f"Type {OPTIONS[name]}.",
                )  # fmt: skip
            setting.text, setting.source = text, SOURCE_COMMAND_LINE
        self.all["broker.id"].text = self.all["node.id"].text
        for name, setting in self.all.items():
            setattr(self, name.replace(".", "_"), setting.parsed())

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def topic_defaults(self) -> dict[str, str]:
        """Defaults of topic settings that differ from Kafka's, because the broker was started with others."""
        defaults = {}
        for name in TOPIC_CONFIGS:
            source = self.behind(name)
            if source is not None and source.source != SOURCE_DEFAULT:
                text = source.text or ""
                unit = _MILLISECONDS.get(source.config.name.rpartition(".")[2], 1) if name in _UNITS else 1
                defaults[name] = text if unit == 1 or int(text) < 0 else str(int(text) * unit)
        return defaults

    def behind(self, topic_setting: str) -> Setting | None:
        """The broker's setting that a topic's default comes from, if there is one that says anything."""
        for name in _UNITS.get(topic_setting, ()):
            if self.all[name].source != SOURCE_DEFAULT:
                return self.all[name]
        synonym = TOPIC_CONFIGS[topic_setting].synonym
        return self.all.get(synonym) if synonym else None


def _unknown(name: str, known: list[str]) -> UsageError:
    from difflib import get_close_matches  # a mistake may cost 10 ms; a start may not

    near = get_close_matches(name, known, n=1)
    return UsageError(
        "start the broker",
        place=f"with {name}",
        cause="there is no such setting, or it has no effect in this broker",
        next_step=f"did you mean {near[0]}?" if near else "docs/compatibility.md lists the settings",
    )
