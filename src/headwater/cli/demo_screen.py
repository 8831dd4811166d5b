"""What the demonstration looks like: a panel that is redrawn on a terminal, plain lines in a pipe.

The panel keeps to the width it finds, uses no colour with NO_COLOR, no blocks where the encoding has none, and
leaves the cursor where a person expects it, whatever happens.
"""
from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Protocol, TextIO

from headwater.cli.output import has_colour
from headwater.client.address import command

if TYPE_CHECKING:
    from headwater.app.demo import Result

BLOCKS = " ▁▂▃▄▅▆▇█"
PLAIN_BLOCKS = " .:-=+*#@"
HISTORY = 200  # points of a curve that are kept; the width decides how many are shown
RATE_SECONDS = 0.5  # the rate shown is that of the last half second
PLAIN_SECONDS = 1.0  # in a pipe, a line a second
NARROWEST, WIDEST = 24, 96
TOTALS_COLUMNS = 48  # below that the totals are left out, they would break the lines
_CODES = {"bold": "1", "dim": "2", "red": "1;31", "green": "32", "cyan": "36", "yellow": "33"}


class Screen(Protocol):
    """Both forms."""

    state: str
    pid: int
    expected: int  # records a second: the height of the curves
    stopped: bool  # nothing is written or read any more: the rates are zero

    def begin(self, address: str, seconds: float, data: str) -> None: ...
    def event(self, text: str, style: str = "") -> None: ...
    def frame(self, acknowledged: int, read: int, lag: int) -> None: ...
    def end(self) -> None: ...
    def result(self, result: Result, kept: str | None) -> None: ...


class Rate:
    """How fast a counter rises, over the last half second."""

    def __init__(self) -> None:
        self._points: deque[tuple[float, int]] = deque()

    def of(self, count: int, now: float) -> float:
        self._points.append((now, count))
        while now - self._points[0][0] > RATE_SECONDS and len(self._points) > 2:
            self._points.popleft()
        first_at, first = self._points[0]
        return (count - first) / (now - first_at) if now > first_at else 0.0


class PlainScreen:
    """Lines, one a second, for a pipe or a log."""

    def __init__(self, stream: TextIO) -> None:
        self.state = "running"
        self.pid = 0
        self.expected = 1
        self.stopped = False
        self._stream = stream
        self._begun = time.monotonic()
        self._said = 0.0
        self._writes, self._reads = Rate(), Rate()

    def begin(self, address: str, seconds: float, data: str) -> None:
        self._line(f"broker started in {seconds:.2f} s at {address}, data in {data}")

    def event(self, text: str, style: str = "") -> None:
        self._line(text)

    def frame(self, acknowledged: int, read: int, lag: int) -> None:
        now = time.monotonic()
        writes, reads = self._writes.of(acknowledged, now), self._reads.of(read, now)
        if self.stopped:
            writes = reads = 0.0
        if now - self._said >= PLAIN_SECONDS:
            self._said = now
            self._line(
                f"broker {self.state}: {writes:,.0f} acknowledged/s, {reads:,.0f} read/s, lag {lag:,},"
                f" acknowledged {acknowledged:,}"
            )

    def _line(self, text: str) -> None:
        self._stream.write(f"{time.monotonic() - self._begun:5.1f} s  {text}\n")
        self._stream.flush()

    def end(self) -> None:
        pass

    def result(self, result: Result, kept: str | None) -> None:
        self._stream.write("\n".join(result_lines(result, kept)) + "\n")
        self._stream.flush()


class TerminalScreen:
    """A panel of a few lines, redrawn in place; events stay below it as they come."""

    def __init__(self, stream: TextIO) -> None:
        self.state = "running"
        self.pid = 0
        self.expected = 1
        self.stopped = False
        self._stream = stream
        self._colour = has_colour(stream)
        self._blocks = BLOCKS if _can_show(stream, BLOCKS) else PLAIN_BLOCKS
        self._begun = time.monotonic()
        self._writes, self._reads = Rate(), Rate()
        self._curves: list[deque[float]] = [deque(maxlen=HISTORY) for _ in range(3)]
        self._events: list[tuple[str, str]] = []
        self._numbers = (0, 0, 0, 0.0, 0.0)
        self._drawn = 0
        self._address = ""

    def begin(self, address: str, seconds: float, data: str) -> None:
        self._address = address
        self._stream.write("\x1b[?25l\n")
        self.event(f"broker started in {seconds:.2f} s, data in {data}", "green")

    def event(self, text: str, style: str = "") -> None:
        self._events.append((f"{time.monotonic() - self._begun:5.1f} s  {text}", style))
        self._draw()

    def frame(self, acknowledged: int, read: int, lag: int) -> None:
        now = time.monotonic()
        writes, reads = self._writes.of(acknowledged, now), self._reads.of(read, now)
        if self.stopped:
            writes = reads = 0.0
        for curve, value in zip(self._curves, (writes, reads, lag), strict=True):
            curve.append(value)
        self._numbers = (acknowledged, read, lag, writes, reads)
        self._draw()

    def end(self) -> None:
        self._stream.write("\x1b[?25h")
        self._stream.flush()

    def result(self, result: Result, kept: str | None) -> None:
        first, *rest = result_lines(result, kept)
        style = "green" if result.good else "red"
        self._stream.write("\n  " + self._styled(first, style, bold=True) + "\n")
        self._stream.write("".join(f"  {line}\n" if line else "\n" for line in rest) + "\n")
        self._stream.flush()

    def _draw(self) -> None:
        lines = self.lines(min(max(_width(), NARROWEST), WIDEST))
        up = f"\x1b[{self._drawn}A\r" if self._drawn else ""
        # erased line by line rather than all at once: the picture does not flicker
        self._stream.write(up + "".join(f"\x1b[2K{line}\n" for line in lines))
        self._stream.flush()
        self._drawn = len(lines)

    def lines(self, width: int) -> list[str]:
        """The picture as it is now, for so many columns."""
        acknowledged, read, lag, writes, reads = self._numbers
        title = "  " + self._styled("headwater demo", "bold")
        place = f"broker {self._address} "
        state = self._styled("● running" if self._blocks is BLOCKS else "running", "green")
        if self.state != "running":
            state = self._styled("✖ killed" if self._blocks is BLOCKS else "KILLED", "red")
        room = width - len("  headwater demo") - len(place) - len("● running") - 2
        if room < 1:
            room, place = max(room + len(place), 1), ""
        lines = [f"{title}{' ' * room}{self._styled(place, 'dim')}{state}", ""]
        curve = max(width - 50, 0)
        for name, number, unit, points, total, what in (
            ("writes", writes, "/s", self._curves[0], acknowledged, "acknowledged"),
            ("reads", reads, "/s", self._curves[1], read, "read"),
            ("lag", lag, "  ", self._curves[2], None, ""),
        ):
            # what piled up during the outage comes in one burst: it must not flatten the rest
            top = self.expected * 1.25 if name != "lag" else max(points, default=0.0)
            drawn = self._styled(self._curve(points, curve, top), "cyan" if name != "lag" else "yellow")
            sum_text = f"{total:>11,} {what}" if total is not None and width >= TOTALS_COLUMNS else ""
            lines.append(f"  {name:<7}{number:>9,.0f}{unit} {drawn} {sum_text}")
        lines.append("")
        lines += [self._styled(line, style) for text, style in self._events for line in _wrapped(text, width - 1)]
        return lines

    def _curve(self, points: deque[float], width: int, top: float) -> str:
        shown = list(points)[-width:] if width else []
        steps = len(self._blocks) - 1
        heights = [min(max(1, round(point / top * steps)), steps) if top and point > 0 else 0 for point in shown]
        return "".join(self._blocks[height] for height in heights).ljust(width)

    def _styled(self, text: str, style: str, bold: bool = False) -> str:
        if not self._colour or not style:
            return text
        return f"\x1b[{'1;' if bold else ''}{_CODES[style]}m{text}\x1b[0m"


def _wrapped(text: str, width: int) -> list[str]:
    """A line of the story on as many lines as it needs, broken between words, indented behind its time."""
    import textwrap

    return textwrap.wrap(text, width, initial_indent="  ", subsequent_indent=" " * 11, drop_whitespace=False)


def _width() -> int:
    import shutil

    return shutil.get_terminal_size((80, 24)).columns - 1


def _can_show(stream: TextIO, text: str) -> bool:
    try:
        text.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def result_lines(result: Result, kept: str | None) -> list[str]:
    """The verdict, and what to try next."""
    lines = [f"acknowledged {result.acknowledged}, present {result.present}"]
    lines.append(
        f"missing {result.missing}, duplicates {result.duplicates}, out of order {result.out_of_order}"
        + (f", present without the client having been told {result.unconfirmed}" if result.unconfirmed else "")
    )
    if result.lag:
        lines.append(f"the group did not catch up: lag {result.lag}")
    own = command()
    if not result.good:
        return [*lines, "", "This must not happen. Please report it with the output of: " + f"{own} version"]
    lines += ["", "Try next:", f"  {own} broker --data {kept or './data'}", ]
    if kept is None:
        lines += [f"  seq 10 | {own} produce numbers", f"  {own} consume numbers"]
    else:
        lines += [f"  {own} topics describe orders --log {kept}", f"  {own} groups describe dashboard --log {kept}"]
    return lines
