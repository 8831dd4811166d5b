"""What people type for places in time and in a log.

    beginning, end       (also earliest, latest)
    42, -5               an offset; five before the end
    10m, -10m, "2h ago"  that long ago (s, m, h, d, w)
    2026-11-19T10:00     a time: local unless it ends with Z or an offset; a date alone is its first moment
    @1795129883          seconds (or, from 13 digits on, milliseconds) since 1970
"""
from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    _ParamType = click.ParamType[Any]
else:
    _ParamType = click.ParamType  # generic for the type checker only, and only since click 8.5

_AGO = re.compile(r"-?(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)(?:\s+ago)?", re.IGNORECASE)
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_NAMES = {"beginning": "earliest", "earliest": "earliest", "start": "earliest", "end": "latest", "latest": "latest"}
MILLISECOND_DIGITS = 13  # as seconds, thirteen digits are the year 33658


def parse_place(text: str) -> str | int | datetime:
    """ValueError says what may be typed."""
    word = text.strip()
    name = _NAMES.get(word.lower())
    if name is not None:
        return name
    if re.fullmatch(r"[+-]?\d+", word):
        return int(word)
    return parse_time(word)


def parse_time(text: str, now: datetime | None = None) -> datetime:
    word = text.strip()
    ago = _AGO.fullmatch(word)
    try:
        if ago:
            seconds = float(ago.group(1)) * _UNITS[ago.group(2).lower()]
            return (now or datetime.now(UTC)) - timedelta(seconds=seconds)
        if word.lower() == "now":
            return now or datetime.now(UTC)
        if re.fullmatch(r"@\d+", word):
            number = int(word[1:])
            milliseconds = number if len(word) > MILLISECOND_DIGITS else number * 1000
            return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
        moment = datetime.fromisoformat(word)
        return moment.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        raise ValueError(
            f"{text!r} is no place in a log: write beginning, end, an offset (42, -5), how long ago (10m, 2h),"
            " or a time (2026-11-19T10:00)"
        ) from None


class Place(_ParamType):
    """An option's value that is a place in a log."""

    name = "place"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return parse_place(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Time(_ParamType):
    """An option's value that is a time."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return parse_time(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
