"""What follows a turn of the loop in which something was begun: commit it, and set the alarm clock.

``moved`` may be called any number of times in a turn; the work is done once, at the turn's end. One timer of
the loop stands for all of the broker's timers: the earliest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from headwater.broker.waiting import Timers
from headwater.core.clock import Clock


class Pulse:
    def __init__(
        self, loop: asyncio.AbstractEventLoop, timers: Timers, clock: Clock,
        bug: Callable[[str, BaseException], None],
    ) -> None:  # fmt: skip
        self._loop = loop
        self._timers = timers
        self._clock = clock
        self._bug = bug
        self._pending = False
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_ms = 0
        self.commit: Callable[[], None] = lambda: None

    def moved(self) -> None:
        if not self._pending:
            self._pending = True
            self._loop.call_soon(self._turn_ended)

    def stop(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _turn_ended(self) -> None:
        self._pending = False
        self.commit()
        self._set_alarm()

    def _set_alarm(self) -> None:
        due = self._timers.next_due()
        if due is None:
            return  # an alarm for a cancelled timer rings once in vain
        if self._alarm is not None:
            if self._alarm_ms <= due:
                return
            self._alarm.cancel()
        self._alarm_ms = due
        delay = max(0, due - self._clock.monotonic_ms())
        self._alarm = self._loop.call_later(delay / 1000, self._rang)

    def _rang(self) -> None:
        self._alarm = None
        try:
            self._timers.run_due(self._clock.monotonic_ms())
        except Exception as error:
            self._bug("a timer", error)
        self._turn_ended_or_later()

    def _turn_ended_or_later(self) -> None:
        if not self._pending:
            self._turn_ended()
