"""Every topic setting of Apache Kafka 4.3: name, type, default, validity, and what this log does with it.

parse() turns a topic's overrides into TopicSettings, or raises INVALID_CONFIG as Kafka does. What a setting
means for this broker, where that differs from Kafka, stands in its sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from headwater.wire.errors import ErrorCode, KafkaError

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1

BOOLEAN, STRING, INT, LONG, DOUBLE, LIST = "BOOLEAN", "STRING", "INT", "LONG", "DOUBLE", "LIST"
TYPE_NUMBERS = {BOOLEAN: 1, STRING: 2, INT: 3, LONG: 5, DOUBLE: 6, LIST: 7}  # as DescribeConfigs answers them

_COMPRESSION_TYPES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")


class TopicConfig(NamedTuple):
    """`synonym` is the broker setting that gives the default, "" if there is none."""

    name: str
    type: str
    default: str
    documentation: str
    synonym: str = ""
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()


def _table() -> dict[str, TopicConfig]:
    not_here = "Accepted for compatibility; this broker has one node and does not use it."
    tiered = "Accepted for compatibility; this broker has no tiered storage."
    later = "Accepted; logs are not compacted yet."
    rows = (
        TopicConfig("cleanup.policy", LIST, "delete", "What happens to old segments: delete, compact, both or"
                    " (empty) neither. compact refuses records without key; logs are not compacted yet.",
                    "log.cleanup.policy", choices=("compact", "delete")),
        TopicConfig("compression.gzip.level", INT, "-1", "Level when compression.type is gzip: 1 to 9, or -1 for"
                    " the codec's own. Batches are stored as they come.", "compression.gzip.level", -1, 9),
        TopicConfig("compression.lz4.level", INT, "9", "Level when compression.type is lz4. Batches are stored as"
                    " they come.", "compression.lz4.level", 1, 17),
        TopicConfig("compression.type", STRING, "producer", "The codec at rest. Batches are stored as producers"
                    " send them, whatever this says.", "compression.type", choices=_COMPRESSION_TYPES),
        TopicConfig("compression.zstd.level", INT, "3", "Level when compression.type is zstd. Batches are stored as"
                    " they come.", "compression.zstd.level", -131072, 22),
        TopicConfig("delete.retention.ms", LONG, "86400000", "How long compaction keeps a tombstone. " + later,
                    "log.cleaner.delete.retention.ms", 0),
        TopicConfig("file.delete.delay.ms", LONG, "60000", "How long a removed file stays on disk. Here a file goes"
                    " as soon as its removal is durable.", "log.segment.delete.delay.ms", 0),
        TopicConfig("flush.messages", LONG, str(INT64_MAX), "Records between forced syncs. Here every record is"
                    " durable before it is acknowledged.", "log.flush.interval.messages", 1),
        TopicConfig("flush.ms", LONG, str(INT64_MAX), "Time between forced syncs. Here every record is durable"
                    " before it is acknowledged.", "", 0),
        TopicConfig("follower.replication.throttled.replicas", LIST, "", not_here),
        TopicConfig("index.interval.bytes", INT, "4096", "Bytes of log between two entries of the offset index.",
                    "log.index.interval.bytes", 0),
        TopicConfig("leader.replication.throttled.replicas", LIST, "", not_here),
        TopicConfig("local.retention.bytes", LONG, "-2", tiered, "log.local.retention.bytes", -2),
        TopicConfig("local.retention.ms", LONG, "-2", tiered, "log.local.retention.ms", -2),
        TopicConfig("max.compaction.lag.ms", LONG, str(INT64_MAX), "The longest that a record may stay uncompacted. "
                    + later, "log.cleaner.max.compaction.lag.ms", 1),
        TopicConfig("max.message.bytes", INT, "1048588", "The largest batch that is accepted, as it travels.",
                    "message.max.bytes", 0),
        TopicConfig("message.timestamp.after.max.ms", LONG, "3600000", "How far in the future a record's timestamp"
                    " may be.", "log.message.timestamp.after.max.ms", 0),
        TopicConfig("message.timestamp.before.max.ms", LONG, str(INT64_MAX), "How far in the past a record's"
                    " timestamp may be.", "log.message.timestamp.before.max.ms", 0),
        TopicConfig("message.timestamp.type", STRING, "CreateTime", "Whose time a record carries: the producer's"
                    " (CreateTime) or the broker's (LogAppendTime).", "log.message.timestamp.type",
                    choices=("CreateTime", "LogAppendTime")),
        TopicConfig("min.cleanable.dirty.ratio", DOUBLE, "0.5", "How much of a log must be dirty before it is"
                    " compacted. " + later, "log.cleaner.min.cleanable.ratio", 0, 1),
        TopicConfig("min.compaction.lag.ms", LONG, "0", "The shortest time that a record stays uncompacted. " + later,
                    "log.cleaner.min.compaction.lag.ms", 0),
        TopicConfig("min.insync.replicas", INT, "1", not_here, "min.insync.replicas", 1),
        TopicConfig("preallocate", BOOLEAN, "false", "Reserve a segment's space when it is made. Here space is"
                    " reserved ahead of the writing, whatever this says.", "log.preallocate"),
        TopicConfig("remote.copy.lag.bytes", LONG, "0", tiered, "", -1),
        TopicConfig("remote.copy.lag.ms", LONG, "0", tiered, "", -1),
        TopicConfig("remote.log.copy.disable", BOOLEAN, "false", tiered),
        TopicConfig("remote.log.delete.on.disable", BOOLEAN, "false", tiered),
        TopicConfig("remote.storage.enable", BOOLEAN, "false", tiered),
        TopicConfig("retention.bytes", LONG, "-1", "Segments are removed while the rest still holds this much;"
                    " -1: no limit.", "log.retention.bytes"),
        TopicConfig("retention.ms", LONG, "604800000", "Segments whose newest record is older are removed; -1: never.",
                    "", -1),
        TopicConfig("segment.bytes", INT, "1073741824", "The size at which a new segment is begun.",
                    "log.segment.bytes", 1024 * 1024),
        TopicConfig("segment.index.bytes", INT, "10485760", "The size of the offset index at which a new segment is"
                    " begun.", "log.index.size.max.bytes", 4),
        TopicConfig("segment.jitter.ms", LONG, "0", "At most this much is subtracted from segment.ms, so that segments"
                    " do not all end at once. Here nothing is.", "", 0),
        TopicConfig("segment.ms", LONG, "604800000", "The age at which a new segment is begun, even if it is small.",
                    "", 1),
        TopicConfig("unclean.leader.election.enable", BOOLEAN, "false", not_here, "unclean.leader.election.enable"),
    )
    return {row.name: row for row in rows}


# Kafka knows this one too, for tests, and does not describe it.
_SMALL_SEGMENTS = TopicConfig("internal.segment.bytes", INT, "", "A segment's size, below the least of segment.bytes.")

# What Kafka 4.3.1 does not describe for a topic without tiered storage.
NOT_DESCRIBED = frozenset(("remote.copy.lag.bytes", "remote.copy.lag.ms"))

TOPIC_CONFIGS: dict[str, TopicConfig] = _table()


class TopicSettings:
    """The settings that the log and the broker act on, typed. `values` has all of them as Kafka's text."""

    __slots__ = (
        "compact",
        "delete",
        "index_bytes_max",
        "index_interval_bytes",
        "log_append_time",
        "max_message_bytes",
        "retention_bytes",
        "retention_ms",
        "segment_bytes",
        "segment_ms",
        "timestamp_after_max_ms",
        "timestamp_before_max_ms",
        "values",
    )

    def __init__(self, values: dict[str, str], typed: dict[str, Any]) -> None:
        policies = typed["cleanup.policy"]
        self.values = values
        self.compact: bool = "compact" in policies
        self.delete: bool = "delete" in policies
        self.index_bytes_max: int = typed["segment.index.bytes"]
        self.index_interval_bytes: int = typed["index.interval.bytes"]
        self.log_append_time: bool = typed["message.timestamp.type"] == "LogAppendTime"
        self.max_message_bytes: int = typed["max.message.bytes"]
        self.retention_bytes: int = typed["retention.bytes"]
        self.retention_ms: int = typed["retention.ms"]
        small = typed.get(_SMALL_SEGMENTS.name)
        self.segment_bytes: int = typed["segment.bytes"] if small is None else small
        # Kafka's rule: a compacted log must not wait longer for its next segment than it may for its cleaning.
        lag = typed["max.compaction.lag.ms"]
        self.segment_ms: int = min(lag, typed["segment.ms"]) if self.compact else typed["segment.ms"]
        self.timestamp_after_max_ms: int = typed["message.timestamp.after.max.ms"]
        self.timestamp_before_max_ms: int = typed["message.timestamp.before.max.ms"]


def parse(overrides: Mapping[str, str | None], defaults: Mapping[str, str] | None = None) -> TopicSettings:
    """The settings of a topic with these overrides; `defaults` are the broker's, by topic setting name."""
    given = {name: text for name, text in overrides.items() if text is not None}
    for name in overrides:
        if name not in TOPIC_CONFIGS and name != _SMALL_SEGMENTS.name:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name}")
    plain = not given and not defaults
    if plain and _plain_settings:
        return _plain_settings[0]
    values: dict[str, str] = {}
    typed: dict[str, Any] = {}
    for name, config in TOPIC_CONFIGS.items():
        text = given.get(name)
        if text is None:
            text = (defaults or {}).get(name, config.default)
        values[name] = text
        typed[name] = parse_value(config, text)
    if _SMALL_SEGMENTS.name in given:
        values[_SMALL_SEGMENTS.name] = given[_SMALL_SEGMENTS.name]
        typed[_SMALL_SEGMENTS.name] = parse_value(_SMALL_SEGMENTS, given[_SMALL_SEGMENTS.name])
    _check_together(typed)
    settings = TopicSettings(values, typed)
    if plain:
        _plain_settings.append(settings)  # a thousand topics share one
    return settings


_plain_settings: list[TopicSettings] = []


def _check_together(typed: dict[str, Any]) -> None:
    least, most = typed["min.compaction.lag.ms"], typed["max.compaction.lag.ms"]
    if least > most:
        text = f"conflict topic config setting min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})"
        raise KafkaError(ErrorCode.INVALID_CONFIG, text)
    if typed["remote.storage.enable"]:
        text = "Tiered Storage functionality is disabled in the broker."
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"{text} Topic cannot be configured with remote log storage.")


def parse_value(config: TopicConfig, text: str) -> Any:
    """The typed value, or KafkaError INVALID_CONFIG."""
    try:
        value = _READERS[config.type](text.strip())
    except ValueError as error:
        raise _invalid(config, text, str(error)) from None
    if config.type == LIST:
        _check_list(config, text, value)
    elif config.choices and text.strip() not in config.choices:
        raise _invalid(config, text, f"String must be one of: {', '.join(config.choices)}")
    if config.least is not None and value < config.least:
        raise _invalid(config, text, f"Value must be at least {config.least}")
    if config.most is not None and value > config.most:
        raise _invalid(config, text, f"Value must be no more than {config.most}")
    if config.name == "compression.gzip.level" and value == 0:
        raise _invalid(config, text, "Value must be between 1 and 9 or equal to -1")
    return value


def _check_list(config: TopicConfig, text: str, value: list[str]) -> None:
    if config.choices:
        for item in value:
            if item not in config.choices:
                raise _invalid(config, text, f"String must be one of: {', '.join(config.choices)}")
        if len(set(value)) != len(value):
            raise _invalid(config, text, "Configuration values must not be duplicated.")
    elif value and value != ["*"] and not all(_is_throttle(item) for item in value):
        raise _invalid(config, text, "must be the literal '*' or a list of replicas as partition:broker")


def _is_throttle(item: str) -> bool:
    partition, colon, broker = item.partition(":")
    return bool(colon) and partition.isdigit() and broker.isdigit()


def _invalid(config: TopicConfig, text: str, reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, f"Invalid value {text} for configuration {config.name}: {reason}")


def _integer(most: int, kind: str) -> Callable[[str], int]:
    def read(text: str) -> int:
        digits = text[1:] if text[:1] in ("-", "+") else text
        if not (digits.isascii() and digits.isdigit()) or not -most - 1 <= int(text) <= most:
            raise ValueError(f"Not a number of type {kind}")
        return int(text)

    return read


def _boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise ValueError("Expected value to be either true or false")
    return lowered == "true"


def _double(text: str) -> float:
    value = float(text)
    if value != value:
        raise ValueError("Not a number of type DOUBLE")
    return value


_READERS: dict[str, Callable[[str], Any]] = {
    BOOLEAN: _boolean,
    STRING: str,
    INT: _integer(INT32_MAX, "INT"),
    LONG: _integer(INT64_MAX, "LONG"),
    DOUBLE: _double,
    LIST: lambda text: [item.strip() for item in text.split(",")] if text else [],
}
