"""Places in time and in a log, as people type them."""
from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from headwater.cli.ndjson import decoder
from headwater.cli.output import visible, visible_bytes
from headwater.cli.values import parse_place, parse_time

NOW = datetime(2026, 11, 19, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize("text, place", [
    ("beginning", "earliest"), ("Earliest", "earliest"), ("end", "latest"), ("42", 42), ("-5", -5), ("0", 0),
])
def test_names_and_offsets_are_places(text: str, place: str | int) -> None:
    assert parse_place(text) == place


@pytest.mark.parametrize("text, moment", [
    ("10m", NOW - timedelta(minutes=10)), ("-10m", NOW - timedelta(minutes=10)),
    ("1.5h ago", NOW - timedelta(hours=1.5)),
    ("2D", NOW - timedelta(days=2)), ("1w", NOW - timedelta(weeks=1)), ("250ms", NOW - timedelta(milliseconds=250)),
    ("now", NOW), ("@1700000000", datetime.fromtimestamp(1_700_000_000, UTC)),
    ("@1700000000123", datetime.fromtimestamp(1_700_000_000, UTC) + timedelta(milliseconds=123)),
    ("2026-11-19T10:00Z", datetime(2026, 11, 19, 10, tzinfo=UTC)),
    ("2026-11-19T10:00+02:00", datetime(2026, 11, 19, 8, tzinfo=UTC)),
    ("2026-11-19", datetime(2026, 11, 19).astimezone(UTC)),
    ("2026-11-19 10:00:01.5", datetime(2026, 11, 19, 10, 0, 1, 500_000).astimezone(UTC)),
])
def test_times_are_read_in_many_forms(text: str, moment: datetime) -> None:
    assert parse_time(text, NOW) == moment


@pytest.mark.parametrize("text", ["", "soon", "10x", "2026-13-01", "@", "@x", "1e3", "99999999999999999w"])
def test_what_is_no_place_is_refused_with_what_may_be_written(text: str) -> None:
    with pytest.raises(ValueError, match="beginning, end, an offset"):
        parse_place(text)


@pytest.mark.parametrize("line, problem", [
    (b"[]", "object"), (b'{"key":"k"}', "neither"), (b'{"value":"a","partition":"x"}', "int"),
    (b'{"value":"a","headers":[["h",5]]}', "neither text"), (b'{"value_base64":"%%"}', "base64"), (b"{", "truncated"),
    (b'{"value":"\xff"}', "utf-8"),
])
def test_a_line_that_is_no_record_is_refused_with_the_reason(line: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        decoder()(line)


@pytest.mark.parametrize("line, value", [
    (b'{"value":null}', None), (b'{"value":""}', b""), (b'{"value":{"a": 1.10}}', b'{"a": 1.10}'),
    (b'{"value":[1,2]}', b"[1,2]"), (b'{"value":12345678901234567890}', b"12345678901234567890"),
    (b'{"value_base64":"/w=="}', b"\xff"), ('{"value":"ü"}'.encode(), "ü".encode()), (b'{"value":true}', b"true"),
])
def test_a_lines_value_is_exact(line: bytes, value: bytes | None) -> None:
    assert decoder()(line).value == value


def test_whatever_steers_a_terminal_is_made_visible() -> None:
    assert visible("a\x1b[31mb\x07\r") == "a\\x1b[31mb\\x07\\x0d"
    assert visible("tab\tand\nline") == "tab\tand\nline"
    assert visible("\u202eevil\u2066 \x9b") == "\\u202eevil\\u2066 \\x9b"
    assert visible_bytes(b"\xff\x1b ok \xc3\xbc") == "\\xff\\x1b ok ü".encode()
