"""Three ways of not answering yet: a promised response, a deadline, a partition that must move first.

All three are single-threaded and know no clock: deadlines and the present moment come in as arguments
(monotonic milliseconds). Callbacks run synchronously inside ``set``, ``run_due`` and ``wake``.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Later(Generic[T]):
    """The promise of one response. Its value may be a KafkaError: then the API's error form is sent."""

    __slots__ = ("_callbacks", "_value", "is_set")

    def __init__(self) -> None:
        self.is_set = False
        self._value: T | Exception | None = None
        self._callbacks: list[Callable[[Any], None]] = []

    def set(self, response: T | Exception) -> None:
        assert not self.is_set, "a response was promised once and given twice"
        self.is_set = True
        self._value = response
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(response)

    def on_set(self, callback: Callable[[Any], None]) -> None:
        if self.is_set:
            callback(self._value)
        else:
            self._callbacks.append(callback)


class Timer:
    """One deadline. ``cancel`` is cheap and may be called at any time, also after it ran."""

    __slots__ = ("callback", "deadline_ms")

    def __init__(self, deadline_ms: int, callback: Callable[[], None]) -> None:
        self.deadline_ms = deadline_ms
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None

    @property
    def active(self) -> bool:
        return self.callback is not None


class Timers:
    """A heap of deadlines; equal deadlines run in the order in which they were set."""

    COMPACT_AT = 4096  # above this the heap is rebuilt once more than half of it is cancelled

    __slots__ = ("_heap", "_next_compact", "_sequence")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Timer]] = []
        self._sequence = 0
        self._next_compact = self.COMPACT_AT

    def at(self, deadline_ms: int, callback: Callable[[], None]) -> Timer:
        timer = Timer(deadline_ms, callback)
        self._sequence += 1
        heapq.heappush(self._heap, (deadline_ms, self._sequence, timer))
        if len(self._heap) > self._next_compact:
            self._compact()
        return timer

    def next_due(self) -> int | None:
        heap = self._heap
        while heap and heap[0][2].callback is None:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def run_due(self, now_ms: int) -> int:
        """Run every timer whose deadline is not after ``now_ms``; the number of those that ran."""
        heap, ran = self._heap, 0
        while heap and heap[0][0] <= now_ms:
            timer = heapq.heappop(heap)[2]
            callback, timer.callback = timer.callback, None
            if callback is not None:
                callback()
                ran += 1
        return ran

    def _compact(self) -> None:
        """Long polls that end early leave their deadlines behind: half a second each at 20,000 a second."""
        alive = [entry for entry in self._heap if entry[2].callback is not None]
        heapq.heapify(alive)
        self._heap[:] = alive
        self._next_compact = max(self.COMPACT_AT, 2 * len(alive))


class Waiting:
    """One waiter on some partitions; it stays until it is cancelled, however often it is woken."""

    __slots__ = ("_waiters", "callback", "partitions")

    def __init__(
        self, waiters: PartitionWaiters, partitions: tuple[Hashable, ...], callback: Callable[[Any], None]
    ) -> None:
        self._waiters = waiters
        self.partitions = partitions
        self.callback: Callable[[Any], None] | None = callback

    def cancel(self) -> None:
        if self.callback is not None:
            self.callback = None
            self._waiters._forget(self)


class PartitionWaiters:
    """Who waits for which partition (any hashable that means one partition)."""

    __slots__ = ("_by_partition",)

    def __init__(self) -> None:
        self._by_partition: dict[Hashable, dict[Waiting, None]] = {}

    def wait(self, partitions: Iterable[Hashable], callback: Callable[[Any], None]) -> Waiting:
        """``callback(partition)`` at every wake of one of them, in order of arrival, until cancelled."""
        waiting = Waiting(self, tuple(dict.fromkeys(partitions)), callback)
        for partition in waiting.partitions:
            self._by_partition.setdefault(partition, {})[waiting] = None
        return waiting

    def wake(self, partition: Hashable) -> None:
        waiting_here = self._by_partition.get(partition)
        if waiting_here is None:
            return
        for waiting in tuple(waiting_here):
            if waiting.callback is not None:
                waiting.callback(partition)

    def __len__(self) -> int:
        return len({waiting for here in self._by_partition.values() for waiting in here})

    def _forget(self, waiting: Waiting) -> None:
        for partition in waiting.partitions:
            here = self._by_partition.get(partition)
            if here is not None:
                here.pop(waiting, None)
                if not here:
                    del self._by_partition[partition]
