"""`headwater consume`: a topic's records on stdout, from any place to any place, then waiting for more.

Output is flushed when the reading has caught up, so a pipe sees each record at once and a long reading is fast. A
closed pipe ends it quietly, also while it waits. A broker that goes away and comes back is a line on stderr each.
"""
from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from headwater.cli.options import Verb, Whole, connection, log_options
from headwater.cli.output import OutputClosed, flush, is_terminal, say, stdout_is_closed, visible_bytes, write
from headwater.cli.values import Place

if TYPE_CHECKING:
    from headwater.client.reader import Reader
    from headwater.client.record import Record

EXAMPLES = """
headwater consume orders                               from the beginning, then wait for more
headwater consume orders --from end                    only what comes from now on
headwater consume orders --from 10m --exit-at-end      the last ten minutes
headwater consume orders --from 2026-11-19T10:00 --until 2026-11-19T11:00 --json
headwater consume orders --from -5 --exit-at-end       the last five of each partition
headwater consume orders --group billing -n 100        a hundred records, as a group that remembers
headwater consume orders --json | jq .value
"""
FIELDS = ("topic", "partition", "offset", "timestamp", "key", "value")
FLUSH_BYTES = 64 * 1024  # a pipe's size: no use in holding more
LOOK_SECONDS = 0.5  # between two looks at a broker that is away


@click.command(cls=Verb, examples=EXAMPLES)
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...")
@click.option("--from", "start", type=Place(), metavar="PLACE",
              help="beginning, end, an offset, -N from the end, a time, or how long ago (10m). [default: beginning]")
@click.option("--until", type=Place(), metavar="PLACE", help="Stop there: the same forms; end means the end of now.")
@click.option("--exit-at-end", is_flag=True, help="Stop at the end of now. --until ends there at the latest, too.")
@click.option("-n", "--count", type=Whole(0), metavar="N", help="Stop after N records.")
@click.option("--group", metavar="NAME", help="Read as a member of a group, from where it stands, and commit.")
@click.option("--partition", "partitions", type=Whole(0), multiple=True, help="Only this; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Lines of JSON with everything, which `produce --json` takes.")
@click.option("--plain", is_flag=True, help="Only the values, a line each. This is the default.")
@click.option("--fields", metavar="NAME,...", help=f"These, separated by tabs: {', '.join(FIELDS)}.")
@click.option("--uncommitted", is_flag=True, help="With the records of open and aborted transactions.")
@click.option("--raw", is_flag=True, help="On a terminal too, print values byte for byte.")
@log_options
def consume(
    topics: tuple[str, ...], start: Any, until: Any, exit_at_end: bool, count: int | None, group: str | None,
    partitions: tuple[int, ...], as_json: bool, plain: bool, fields: str | None, uncommitted: bool, raw: bool,
) -> None:
    """Print the records of TOPIC, and wait for more."""
    if as_json + plain + (fields is not None) > 1:
        raise click.UsageError("--json, --plain and --fields exclude each other", click.get_current_context())
    line = _form(as_json, fields, raw or not is_terminal(sys.stdout))
    if count == 0:
        return
    from headwater.client.reader import Reader

    reader = Reader(
        connection(), list(topics), start="earliest" if start is None else start,
        until="latest" if exit_at_end and until is None else until, partitions=list(partitions) or None, group=group,
        committed=not uncommitted,
    )
    try:
        _print_all(reader, line, count)
    finally:
        reader.close()


def _form(as_json: bool, fields: str | None, raw: bool) -> Callable[[Record], bytes]:
    """How a record becomes a line, without its newline."""
    if as_json:
        from headwater.cli.ndjson import encoder

        encode = encoder()
        # JSON escapes C0 itself; what is left could still steer a terminal
        return encode if raw else lambda record: visible_bytes(encode(record))
    if fields is not None:
        return _columns([field.strip() for field in fields.split(",")], raw)
    if raw:
        return lambda record: record.value or b""
    return lambda record: visible_bytes(record.value or b"")


def _columns(names: list[str], raw: bool) -> Callable[[Record], bytes]:
    for name in names:
        if name not in FIELDS:
            raise click.UsageError(
                f"records have no field {name}: there are {', '.join(FIELDS)}", click.get_current_context()
            )

    def line(record: Record) -> bytes:
        cells = []
        for name in names:
            content = getattr(record, name)
            cell = content if isinstance(content, bytes) else b"" if content is None else str(content).encode()
            cells.append(cell if raw else visible_bytes(cell))
        return b"\t".join(cells)

    return line


def _print_all(reader: Reader, line: Callable[[Record], bytes], count: int | None) -> None:
    left = count
    pending = 0
    idle = Idle(reader)
    while not reader.finished:
        # a first look without waiting decides whether to flush
        records = reader.take(0.0) if pending else reader.take()
        if left is not None:
            records = records[:left]
            left -= len(records)
        if records:
            content = b"".join([line(record) + b"\n" for record in records])
            write(content)
            reader.mark(records)
            pending += len(content)
        if pending and (not records or pending >= FLUSH_BYTES or reader.group is not None):
            flush()
            pending = 0
        elif not records:
            idle.look()
        if left == 0:
            return


class Idle:
    """What is said while no record comes: that it waits (once, to a person), and that the broker went or is back."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._told = reader.bounded or not is_terminal(sys.stderr)
        self._away = False
        self._looked = 0.0

    def look(self) -> None:
        if stdout_is_closed():
            raise OutputClosed
        if not self._told and self._reader.caught_up:
            self._told = True
            say("waiting for new records, Ctrl-C to stop, --exit-at-end")
        if (self._away or self._reader.connection.reasons.all_down) and time.monotonic() > self._looked + LOOK_SECONDS:
            self._looked = time.monotonic()
            self._look_for_broker()

    def _look_for_broker(self) -> None:
        """librdkafka says when everybody is gone, but not when somebody is back; so the port is asked."""
        from headwater.client.address import probe
        from headwater.core.errors import Unavailable

        connection = self._reader.connection
        try:
            probe(connection.address, LOOK_SECONDS)
        except Unavailable:
            if not self._away:
                self._away = True
                say(f"the broker at {connection.address.servers} is away; trying for up to {connection.timeout:g} s")
            return
        connection.reasons.all_down = False
        if self._away:
            self._away = False
            say(f"the broker at {connection.address.servers} is back")
