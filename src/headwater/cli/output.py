"""What verbs print: data on stdout, talk on stderr; tables for people, tabs and JSON for programs.

Terminal escapes in data are made visible when a person looks (a record may come from anybody); colour appears only
on a terminal and never with NO_COLOR. A closed stdout raises OutputClosed: the reader has had enough. One that
cannot take the data (a full disk) is a failure in one sentence.
"""
from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from headwater.core.errors import HeadwaterError

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\udc80-\udcff]")


class OutputClosed(Exception):
    """Nobody reads stdout any more, as in `consume t | head`."""


def say(text: str) -> None:
    """Talk, on stderr; data of others in it cannot steer the terminal. Data that came first is seen first."""
    if sys.stdout is not None:
        try:
            sys.stdout.flush()
        except (OSError, ValueError):
            pass  # it keeps what it could not write: the flush at the end says so
    try:
        sys.stderr.write(f"{visible(text) if is_terminal(sys.stderr) else text}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass  # stderr is closed: there is nobody to tell


def is_terminal(stream: Any) -> bool:
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):
        return False


def has_colour(stream: Any) -> bool:
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def styled(text: str, style: str, stream: Any) -> str:
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if has_colour(stream) else text


def visible(text: str) -> str:
    """Control characters, direction marks and stray bytes as escapes; newline and tab stay."""
    return _CONTROL.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00  # a stray byte, kept by surrogateescape
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def visible_bytes(content: bytes) -> bytes:
    return visible(content.decode("utf-8", "surrogateescape")).encode()


def write(content: bytes) -> None:
    try:
        sys.stdout.buffer.write(content)
    except (OSError, ValueError, AttributeError) as error:
        _refused(error)


def flush() -> None:
    try:
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError) as error:
        _refused(error)


def _refused(error: Exception) -> NoReturn:
    if not isinstance(error, OSError) or isinstance(error, BrokenPipeError):
        raise OutputClosed from None  # AttributeError: it was closed before we began
    raise HeadwaterError("write to standard output", cause=error.strerror or error) from None


def stdout_is_closed() -> bool:
    """Whether the reader of our pipe has gone; otherwise an endless reading would wait for ever to find out."""
    import select

    if not hasattr(select, "poll"):
        return False
    poller = select.poll()
    try:
        poller.register(sys.stdout.fileno(), 0)
    except (OSError, ValueError, AttributeError):
        return False
    return any(event & (select.POLLERR | select.POLLNVAL) for _, event in poller.poll(0))


def abandon_stdout() -> None:
    """Let the interpreter end without a second complaint about the closed pipe, or the full disk."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
    except (OSError, ValueError, AttributeError):
        pass


def write_json(value: Any) -> None:
    import msgspec

    write(msgspec.json.encode(value) + b"\n")


def write_table(head: Sequence[str], rows: Iterable[Sequence[Any]], plain: bool = False) -> None:
    """Aligned columns with a head, numbers to the right; `plain`: tabs, no head."""
    cells = [[_cell(value) for value in row] for row in rows]
    if plain:
        write("".join("\t".join(row) + "\n" for row in cells).encode())
        return
    widths = [max([len(title), *(len(row[column]) for row in cells)]) for column, title in enumerate(head)]
    right = [bool(cells) and all(_is_number(row[column]) for row in cells) for column in range(len(head))]
    titles = _line([title.upper() for title in head], widths, right)
    lines = [styled(titles, "dim", sys.stdout), *(_line(row, widths, right) for row in cells)]
    write("".join(line + "\n" for line in lines).encode())


def _cell(value: Any) -> str:
    if value is None or value == "":
        return "-"
    text = str(value)
    return visible(text).replace("\n", "\\n").replace("\t", "\\t") if is_terminal(sys.stdout) else text


def _is_number(text: str) -> bool:
    return text == "-" or text.lstrip("+-").replace(",", "").isdigit()


def _line(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    cells = [
        cell.rjust(width) if to_right else cell.ljust(width)
        for cell, width, to_right in zip(row, widths, right, strict=True)
    ]
    return "  ".join(cells).rstrip()
