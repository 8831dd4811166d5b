"""What the broker process says: one event per line, for a person on a terminal, as JSON otherwise.

Every line has an event name that does not change between versions. ``say`` always writes; ``often`` is for
what a peer can cause at will (garbage, churn): a burst per event, then one line per interval that counts
what was left out, so that no client can fill a disk. A stream that is gone loses lines and stops nobody.
"""

from __future__ import annotations

import time
import traceback
from typing import Any, TextIO

from headwater.core.clock import Clock

BURST_LINES = 5  # enough to see a pattern
INTERVAL_MS = 10_000  # then six lines a minute per event
BUGS_MAX = 200  # places that have a share of their own: their names may hold what a client sent


class LogLines:
    def __init__(self, stream: TextIO | None, clock: Clock, *, human: bool | None = None) -> None:
        self._stream = stream
        self._human = bool(stream is not None and stream.isatty()) if human is None else human
        self._clock = clock
        self._allowances: dict[str, Allowance] = {}

    def say(self, event: str, message: str, **fields: Any) -> None:
        """One line, always."""
        if self._stream is None:
            return
        text = self._for_a_person(message, fields) if self._human else self._for_a_machine(event, message, fields)
        try:
            self._stream.write(text + "\n")
            self._stream.flush()
        except (BrokenPipeError, ValueError):
            self._stream = None  # the reader of our stderr is gone; the broker goes on
        except OSError:
            pass  # a full disk may have room again

    def often(self, event: str, message: str, **fields: Any) -> None:
        """One line, unless this event has had its share; the next line then says how many were left out."""
        allowance = self._allowances.get(event)
        if allowance is None:
            allowance = self._allowances[event] = Allowance(self._clock.monotonic_ms())
        if not allowance.take(self._clock.monotonic_ms()):
            return
        if allowance.left_out:
            fields["left_out"] = allowance.left_out
            allowance.left_out = 0
        self.say(event, message, **fields)

    def bug(self, where: str, error: BaseException) -> None:
        """A fault of ours: the traceback, once per place and kind in a while."""
        text = "".join(traceback.format_exception(error))
        name = f"bug {where} {type(error).__name__}"
        if name not in self._allowances and len(self._allowances) >= BUGS_MAX:
            name = "bug"
        allowance = self._allowances.get(name)
        if allowance is None:
            allowance = self._allowances[name] = Allowance(self._clock.monotonic_ms(), burst=1)
        if allowance.take(self._clock.monotonic_ms()):
            self.say("bug", f"a fault of headwater's own in {where}: {error!r}", traceback=text)
        else:
            self.often("bug-again", f"again, in {where}: {error!r}")

    def _for_a_person(self, message: str, fields: dict[str, Any]) -> str:
        trace = fields.pop("traceback", None)
        left_out = fields.pop("left_out", 0)
        if left_out:
            message += f" ({left_out} more like this left out)"
        return message if trace is None else f"{message}\n{trace.rstrip()}"

    def _for_a_machine(self, event: str, message: str, fields: dict[str, Any]) -> str:
        import json

        seconds, milliseconds = divmod(self._clock.wall_ms(), 1000)
        stamp = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{milliseconds:03d}Z"
        return json.dumps({"time": stamp, "event": event, "message": message, **fields}, default=str)


class Allowance:
    """How many lines of one event may still be written: a burst that refills by one per interval."""

    __slots__ = ("_burst", "_last", "_tokens", "left_out")

    def __init__(self, now: int, burst: int = BURST_LINES) -> None:
        self._burst = float(burst)
        self._tokens = float(burst)
        self._last = now
        self.left_out = 0

    def take(self, now: int) -> bool:
        self._tokens = min(self._burst, self._tokens + (now - self._last) / INTERVAL_MS)
        self._last = now
        if self._tokens >= 1.0:
            self._tokens -= 1.0
            return True
        self.left_out += 1
        return False
