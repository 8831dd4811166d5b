"""`headwater produce`: lines, arguments or NDJSON into a topic; it ends when every record is acknowledged.

Records that a failure or Ctrl-C leaves unacknowledged are counted, and the exit code tells "none" from "some" (7).
"""
from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import click

from headwater.cli.options import Verb, Whole, connection, log_options
from headwater.cli.output import is_terminal, say
from headwater.cli.values import Time

if TYPE_CHECKING:
    from datetime import datetime

    from headwater.client.writer import Writer

EXAMPLES = """
seq 10 | headwater produce numbers                       a record for each line
headwater produce orders hello world                     two records
headwater produce orders --key 7 '{"id": 7}'             a record with a key
printf '7=paid\\n8=open\\n' | headwater produce orders --key-separator =
headwater produce orders --key 7 --tombstone             a null value: delete the key
headwater consume a --json --exit-at-end | headwater produce b --json
"""
POLL_EVERY = 500  # records between two looks at delivery reports
INTERRUPTED_SECONDS = 2.0  # after Ctrl-C, for the answers that are on their way


class Input(NamedTuple):
    """One record to append."""

    value: bytes | None
    key: bytes | None
    headers: list[tuple[str, bytes | None]]
    partition: int | None
    timestamp: int | None


class How(NamedTuple):
    """What the options say about every record."""

    key: bytes | None
    key_separator: bytes | None
    tombstone: bool
    as_json: bool
    headers: list[tuple[str, bytes | None]]
    partition: int | None
    timestamp: int | None
    keep_place: bool


class Tally:
    """What became of the records; `delivered` is librdkafka's callback."""

    __slots__ = ("acknowledged", "first_error", "read")

    def __init__(self) -> None:
        self.read = 0
        self.acknowledged = 0
        self.first_error: Any = None

    def delivered(self, error: Any, _message: Any) -> None:
        if error is None:
            self.acknowledged += 1
        elif self.first_error is None:
            self.first_error = error


@click.command(cls=Verb, examples=EXAMPLES)
@click.argument("topic")
@click.argument("values", nargs=-1, metavar="[VALUE]...")
@click.option("--key", metavar="TEXT", help="The key of every record.")
@click.option("--key-separator", metavar="TEXT", help="Each line is KEY, this, VALUE. \\t is a tab.")
@click.option("--tombstone", is_flag=True, help="Null values: with --key one record, else each line is a key.")
@click.option("--json", "as_json", is_flag=True, help="Lines of JSON, as `consume --json` prints them.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header of every record.")
@click.option("--partition", type=Whole(0), help="Into this one, rather than by the key.")
@click.option("--timestamp", type=Time(), metavar="TIME", help="The records' time. [default: now]")
@click.option("--keep-place", is_flag=True, help="With --json: keep each line's partition and timestamp.")
@click.option("--quiet", is_flag=True, help="Do not say how many were acknowledged.")
@log_options
def produce(
    topic: str, values: tuple[str, ...], key: str | None, key_separator: str | None, tombstone: bool, as_json: bool,
    headers: tuple[str, ...], partition: int | None, timestamp: datetime | None, keep_place: bool, quiet: bool,
) -> int:
    """Write records to TOPIC: the VALUEs, or the lines of stdin (- or nothing).

    A topic that does not exist is made by the broker, where it is configured to.
    """
    from headwater.client.record import to_milliseconds
    from headwater.client.topics import require_name

    how = How(
        None if key is None else key.encode(), _separator(key_separator), tombstone, as_json, _headers(headers),
        partition, to_milliseconds(timestamp), keep_place,
    )
    _check(how, values)
    joined = connection()
    known = joined.partitions("produce to")
    if topic not in known:
        require_name(topic, "produce to topic")
        _say_new(topic, known)
    elif partition is not None and partition >= known[topic]:
        raise click.UsageError(
            f"{topic} has no partition {partition}: they are 0 to {known[topic] - 1}", click.get_current_context()
        )
    from headwater.client.writer import Writer

    return _write(Writer(joined), topic, _inputs(how, values), quiet)


def _check(how: How, values: tuple[str, ...]) -> None:
    ctx = click.get_current_context()
    if how.as_json and (how.key is not None or how.key_separator or how.tombstone):
        raise click.UsageError("with --json the key and the value stand in each line", ctx)
    if how.key is not None and how.key_separator:
        raise click.UsageError("give either --key or --key-separator", ctx)
    if how.keep_place and not how.as_json:
        raise click.UsageError("--keep-place needs --json", ctx)
    if how.tombstone and how.key is not None and values:
        raise click.UsageError("with --key and --tombstone there is no value", ctx)


def _say_new(topic: str, known: dict[str, int]) -> None:
    from difflib import get_close_matches

    near = get_close_matches(topic, list(known), n=1, cutoff=0.85)
    hint = f" (there is {near[0]}: did you mean that?)" if near else ""
    say(f"{topic} is not there yet{hint}: the broker is asked to make it")


def _separator(text: str | None) -> bytes | None:
    return None if text is None else text.replace("\\t", "\t").encode()


def _headers(given: tuple[str, ...]) -> list[tuple[str, bytes | None]]:
    pairs: list[tuple[str, bytes | None]] = []
    for header in given:
        name, equals, content = header.partition("=")
        if not equals or not name:
            raise click.UsageError(f"write --header NAME=VALUE, not {header}", click.get_current_context())
        pairs.append((name, content.encode()))
    return pairs


def _inputs(how: How, values: tuple[str, ...]) -> Iterator[Input]:
    if how.tombstone and how.key is not None:
        yield Input(None, how.key, how.headers, how.partition, how.timestamp)
        return
    lines: Iterable[bytes]
    if values and values != ("-",):
        lines = (value.encode("utf-8", "surrogateescape") for value in values)
    else:
        if is_terminal(sys.stdin):
            say("type records, one a line; Ctrl-D ends, Ctrl-C stops")
        lines = _lines(sys.stdin.buffer)
    if how.as_json:
        yield from _from_json(how, lines)
        return
    for number, line in enumerate(lines, 1):
        yield _from_line(how, line, number)


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    for line in stream:
        yield line[:-1] if line.endswith(b"\n") else line


def _from_line(how: How, line: bytes, number: int) -> Input:
    if how.tombstone:
        return Input(None, line, how.headers, how.partition, how.timestamp)
    if how.key_separator is None:
        return Input(line, how.key, how.headers, how.partition, how.timestamp)
    key, found, value = line.partition(how.key_separator)
    if not found:
        raise ValueError(f"line {number} has no {how.key_separator.decode()!r} between key and value: {_short(line)}")
    return Input(value, key, how.headers, how.partition, how.timestamp)


def _from_json(how: How, lines: Iterable[bytes]) -> Iterator[Input]:
    from headwater.cli.ndjson import decoder

    parse = decoder()
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            line = parse(text)
        except ValueError as error:
            raise ValueError(f"line {number} is not a record: {error}: {_short(text)}") from None
        partition = line.partition if how.keep_place and how.partition is None else how.partition
        timestamp = line.timestamp if how.keep_place and how.timestamp is None else how.timestamp
        if timestamp is not None and timestamp < 0:
            timestamp = None
        yield Input(line.value, line.key, [*line.headers, *how.headers], partition, timestamp)


def _short(line: bytes) -> str:
    text = line.decode(errors="replace")
    return text if len(text) <= 60 else f"{text[:57]}..."


def _write(writer: Writer, topic: str, inputs: Iterator[Input], quiet: bool) -> int:
    from headwater.core.errors import HeadwaterError

    tally = Tally()
    problem: HeadwaterError | None = None
    malformed: ValueError | None = None
    try:
        try:
            _send_all(writer, topic, inputs, tally)
        except HeadwaterError as error:
            problem = error
        except ValueError as error:
            malformed = error
        try:
            writer.flush()
        except HeadwaterError as error:
            problem = problem or error
    except KeyboardInterrupt:
        _interrupted(writer, topic, tally, quiet)
        raise
    if tally.first_error is not None:
        problem = writer.failure(tally.first_error, topic)
    if malformed is not None:
        say(f"error: {malformed}")
    if problem is not None:
        say(f"error: {problem}")
    if not quiet or problem or malformed:
        _say_tally(writer, topic, tally)
    if problem is None and malformed is None:
        return 0
    if tally.acknowledged:
        return 7
    return problem.exit_code if problem is not None else 2


def _interrupted(writer: Writer, topic: str, tally: Tally, quiet: bool) -> None:
    """Whoever stops wants to know what has arrived; a second Ctrl-C does not wait for that."""
    from headwater.core.errors import HeadwaterError

    try:
        writer.flush(INTERRUPTED_SECONDS)
    except HeadwaterError:
        pass  # the tally says it
    if not quiet:
        _say_tally(writer, topic, tally)


def _say_tally(writer: Writer, topic: str, tally: Tally) -> None:
    from headwater.client.record import counted

    lost = tally.read - tally.acknowledged
    servers = writer.connection.address.servers
    say(f"{counted(tally.acknowledged, 'record')} acknowledged in {topic} at {servers}"
        + (f", {lost} not" if lost else ""))


def _send_all(writer: Writer, topic: str, inputs: Iterator[Input], tally: Tally) -> None:
    from headwater.client.librdkafka import interruptible

    send, poll, delivered = writer.send, writer.producer.poll, tally.delivered
    for record in inputs:
        more: dict[str, Any] = {}
        if record.headers:
            more["headers"] = record.headers
        if record.partition is not None:
            more["partition"] = record.partition
        if record.timestamp is not None:
            more["timestamp"] = record.timestamp
        tally.read += 1
        send(topic, record.value, record.key, delivered, more)
        if tally.read % POLL_EVERY == 0:
            interruptible(poll, 0)
            if tally.first_error is not None:
                return
