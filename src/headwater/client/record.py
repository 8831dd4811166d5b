"""A record as it is read, and the small conversions between what people write and what Kafka stores."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.core.errors import UsageError

if TYPE_CHECKING:
    from datetime import datetime

Headers = Sequence[tuple[str, "bytes | None"]]
HeadersLike = "Mapping[str, bytes | str | None] | Sequence[tuple[str, bytes | str | None]]"


class Record(NamedTuple):
    """One record; `timestamp` is in milliseconds since 1970 (-1: none), `leader_epoch` is -1 where unknown."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    leader_epoch: int = -1

    @property
    def text(self) -> str:
        """The value as text; a tombstone is the empty string, a stray byte a replacement character."""
        return (self.value or b"").decode(errors="replace")

    @property
    def time(self) -> datetime | None:
        """The timestamp as an aware datetime in UTC."""
        if self.timestamp < 0:
            return None
        from datetime import UTC, datetime, timedelta

        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=self.timestamp)


def from_message(message: Any) -> Record:
    """librdkafka's message as a record."""
    epoch = message.leader_epoch()
    kind, timestamp = message.timestamp()
    return Record(
        message.topic(), message.partition(), message.offset(), timestamp if kind else -1,
        message.key(), message.value(), message.headers() or [], -1 if epoch is None else epoch,
    )


def counted(number: int, noun: str) -> str:
    """"1 record", "2 records"."""
    return f"{number:d} {noun}" if number == 1 else f"{number:d} {noun}s"


def to_bytes(content: bytes | bytearray | memoryview | str | None, what: str) -> bytes | None:
    """Text becomes UTF-8; anything that is neither text nor bytes is refused with the way to say it."""
    if content is None or isinstance(content, bytes):
        return content
    if isinstance(content, str):
        return content.encode()
    if isinstance(content, (bytearray, memoryview)):
        return bytes(content)
    raise UsageError(
        operation="append a record",
        place=f"with this {what}",
        cause=f"its type is {type(content).__name__}; a record holds bytes or text",
        next_step="Encode it first, for example json.dumps(value)",
    )


def to_headers(headers: Any) -> list[tuple[str, bytes | None]] | None:
    if not headers:
        return None
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return [(name, to_bytes(content, f"header {name}")) for name, content in pairs]


def to_milliseconds(when: int | datetime | None) -> int | None:
    """A timestamp in milliseconds; a datetime without a zone means local time, as everywhere in Python."""
    if when is None or isinstance(when, int):
        return when
    from datetime import UTC, datetime, timedelta

    moment = when.astimezone(UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
