"""A clock that stands still until it is told. Wall and monotonic start far apart, so that mixing them shows."""

from __future__ import annotations


class ManualClock:
    def __init__(self, wall_ms: int = 1_760_000_000_000, monotonic_ms: int = 5_000) -> None:
        self._wall_ms = wall_ms
        self._monotonic_ms = monotonic_ms

    def wall_ms(self) -> int:
        return self._wall_ms

    def monotonic_ms(self) -> int:
        return self._monotonic_ms

    def advance(self, ms: int) -> None:
        """Time passes, on both clocks."""
        self._wall_ms += ms
        self._monotonic_ms += ms

    def jump(self, ms: int) -> None:
        """Somebody sets the wall clock."""
        self._wall_ms += ms
