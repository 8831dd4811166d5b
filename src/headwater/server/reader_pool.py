"""A few threads for jobs that would make the loop wait: cold reads, decompression.

Started on first use. The result, or the exception, comes back on the loop. A job may hold the interpreter
for as long as it computes, so long computations do not belong here.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

THREADS = 3  # reads wait for the disk, not for a core

Job = Callable[[], Any]
Done = Callable[[Any], None]


class ReaderPool:
    def __init__(
        self, loop: asyncio.AbstractEventLoop, bug: Callable[[str, BaseException], None],
        moved: Callable[[], None],
    ) -> None:  # fmt: skip
        self._loop = loop
        self._bug = bug
        self._moved = moved
        self._jobs: SimpleQueue[tuple[Job, Done] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self.at_work = 0

    def run(self, job: Job, done: Done) -> None:
        """``done(result or exception)`` on the loop, later."""
        self.at_work += 1
        if len(self._threads) < min(self.at_work, THREADS):
            name = f"headwater-reader-{len(self._threads)}"
            self._threads.append(threading.Thread(target=self._work, name=name, daemon=True))
            self._threads[-1].start()
        self._jobs.put((job, done))

    def stop(self) -> None:
        """What is queued is still read; then the threads end."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (work := self._jobs.get()) is not None:
            job, done = work
            try:
                result = job()
            except Exception as error:
                result = error
            self._loop.call_soon_threadsafe(self._finish, done, result)
            del work, job, done, result  # an idle thread pins no answer

    def _finish(self, done: Done, result: Any) -> None:
        self.at_work -= 1
        try:
            done(result)
        except Exception as error:
            self._bug("the end of a read", error)
        self._moved()
