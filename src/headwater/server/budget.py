"""One byte budget for the requests of the whole process. It knows no sockets and no clock.

Bytes are taken before a buffer is allocated and given back when the answer has been handed to the transport.
Who gets none waits in line; two lines:

* ``begun``: frames of which a part is already here. They go first, because finishing one is what frees
  memory, and the first of them may overdraw while the budget itself is not overdrawn: otherwise frames that
  each hold a part could wait for each other for ever.
* ``fresh``: frames of which only the length is known. First come, first served.

So at most ``limit`` and one frame are held. ``shut`` stops every grant: the log sets it while it has more
unwritten bytes than it should (see server/committer.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

MIB = 1 << 20
LIMIT_BYTES = 64 * MIB  # several commit windows of 4 MiB, and far below what Kafka's own heap would be


class Place:
    """A place in the line; ``cancel`` gives it up."""

    __slots__ = ("count", "granted")

    def __init__(self, count: int, granted: Callable[[], None]) -> None:
        self.count = count
        self.granted: Callable[[], None] | None = granted

    def cancel(self) -> None:
        self.granted = None


class Budget:
    __slots__ = ("_begun", "_fresh", "_serving", "_shut", "limit", "taken")

    def __init__(self, limit: int = LIMIT_BYTES) -> None:
        self.limit = limit
        self.taken = 0
        self._shut = False
        self._serving = False
        self._begun: deque[Place] = deque()
        self._fresh: deque[Place] = deque()

    @property
    def tight(self) -> bool:
        """Somebody waits, or would have to."""
        return self._shut or self.taken >= self.limit or bool(self._begun) or bool(self._fresh)

    @property
    def contended(self) -> bool:
        """Somebody waits for what others hold."""
        return any(place.granted is not None for line in (self._begun, self._fresh) for place in line)

    @property
    def shut(self) -> bool:
        return self._shut

    @shut.setter
    def shut(self, shut: bool) -> None:
        if shut != self._shut:
            self._shut = shut
            if not shut:
                self._serve()

    def take(self, count: int) -> bool:
        """Take at once, or nothing. Nobody overtakes those who wait."""
        if self._shut or self._fresh or self._begun or self.taken + count > self.limit:
            return False
        self.taken += count
        return True

    def wait(self, count: int, granted: Callable[[], None], *, begun: bool) -> Place:
        """Call ``granted`` once ``count`` bytes are taken for the caller; perhaps before this returns."""
        place = Place(count, granted)
        (self._begun if begun else self._fresh).append(place)
        self._serve()
        return place

    def give(self, count: int) -> None:
        self.taken -= count
        assert self.taken >= 0, "bytes were given back twice"
        if self._begun or self._fresh:
            self._serve()

    def _serve(self) -> None:
        if self._serving:
            return  # a grant that gives back at once: the loop below sees it
        self._serving = True
        try:
            while (place := self._next()) is not None:
                self.taken += place.count
                granted, place.granted = place.granted, None
                assert granted is not None
                granted()
        finally:
            self._serving = False

    def _next(self) -> Place | None:
        """The one whose turn it is, if it can have what it wants."""
        for line in (self._begun, self._fresh):
            while line and line[0].granted is None:
                line.popleft()
        if self._shut:
            return None
        if self._begun:
            fits = self.taken + self._begun[0].count <= self.limit or self.taken <= self.limit
            return self._begun.popleft() if fits else None
        if self._fresh:
            fits = self.taken + self._fresh[0].count <= self.limit or self.taken == 0
            return self._fresh.popleft() if fits else None
        return None
