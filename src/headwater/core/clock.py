"""Two clocks that must not be mixed: wall time for what people and records see, monotonic time for waiting.

Whoever needs the time takes a Clock as an argument; nobody calls `time` beside this file.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def wall_ms(self) -> int:
        """Milliseconds since 1970. May jump either way."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds since an arbitrary moment. Never goes back."""
        ...


class SystemClock:
    """The machine's clocks."""

    __slots__ = ()

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000
