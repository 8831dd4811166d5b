"""Drives the stages of the log: what the loop decided is written and synced by two threads.

    loop: append, take_window    -> journal thread: write_window (one write, one sync)       -> loop: window_durable
    loop: take_segment_work      -> segment thread: write_segments (unsynced; checkpoints)   -> loop: segments_written

A window is taken at the end of the first turn of the loop in which something was appended, and again as soon
as one is durable: what came meanwhile is the next. That needs no timer and no tuning (16 connections make 8
requests a window, 64 make 31). Segments are written after a short gathering, off the path of any
acknowledgement. The two threads do system calls only, so they leave the interpreter to the loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from headwater.server.log_lines import LogLines

if TYPE_CHECKING:
    from headwater.log import Log

GATHER_SECONDS = 0.05  # one write per partition for what 50 ms brought: no loss seen, up to a third gained
UNWRITTEN_MAX_BYTES = 64 << 20  # journaled, not yet in segments: above it no request is read
UNWRITTEN_SOON_BYTES = 8 << 20  # above it segments are written without gathering

Job = tuple[Callable[[], None], Callable[[BaseException | None], None]]


class Writer:
    """One thread that runs jobs in order and tells the loop how each ended."""

    def __init__(self, name: str, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def run(self, job: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        self._jobs.put((job, done))

    def stop(self) -> None:
        self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        get, report = self._jobs.get, self._loop.call_soon_threadsafe
        while (work := get()) is not None:
            job, done = work
            try:
                job()
            except BaseException as error:  # whatever it is: nothing was made durable by this
                report(done, error)
            else:
                report(done, None)
            del work, job, done  # a window pins its buffers


class Committer:
    """The loop's side. ``pulse`` is called at the end of each turn in which the log may have changed."""

    def __init__(
        self, log: Log, loop: asyncio.AbstractEventLoop, lines: LogLines, *, shut: Callable[[bool], None],
        moved: Callable[[], None], large_traffic: Callable[[], None],
    ) -> None:  # fmt: skip
        self._log = log
        self._loop = loop
        self._lines = lines
        self._shut = shut  # told when the log holds too much that is in no segment yet
        self._moved = moved
        self._large_traffic = large_traffic
        self._journal = Writer("headwater-journal", loop)
        self._segments = Writer("headwater-segments", loop)
        self._window: Any = None
        self._work: Any = None
        self._gather: asyncio.TimerHandle | None = None
        self.failed = False  # the segment thread could not write: what is in the journal stays there

    @property
    def idle(self) -> bool:
        """Everything appended so far is durable (or never will be)."""
        return self._window is None and (self._log.fenced is not None or not self._log.has_pending)

    def pulse(self) -> None:
        log = self._log
        if self._window is None:
            window = log.take_window()
            if window is not None:
                self._window = window
                self._journal.run(lambda: log.write_window(window), self._written)
        # A fenced log writes no more: its clients must be read, to be told.
        self._shut(log.unwritten_bytes > UNWRITTEN_MAX_BYTES and log.fenced is None)

    def _written(self, error: BaseException | None) -> None:
        window, self._window = self._window, None
        try:
            if error is None:
                self._log.window_durable(window)
            else:
                self._log.window_failed(window, error)
        except Exception as fault:  # of an answer: the other answers and the next window go on
            self._lines.bug("what follows a commit", fault)
        self.pulse()
        self._moved()  # answers may have set timers
        self._gather_segments()

    def _gather_segments(self) -> None:
        if self._work is not None or self.failed:
            return
        if self._log.unwritten_bytes > UNWRITTEN_SOON_BYTES:
            self._large_traffic()
            if self._gather is not None:
                self._gather.cancel()
            self._write_segments()
        elif self._gather is None:
            self._gather = self._loop.call_later(GATHER_SECONDS, self._write_segments)

    def _write_segments(self) -> None:
        self._gather = None
        if self._work is not None or self.failed:
            return
        work = self._log.take_segment_work()
        if work is not None:
            self._work = work
            self._segments.run(lambda: self._log.write_segments(work), self._segments_written)

    def _segments_written(self, error: BaseException | None) -> None:
        work, self._work = self._work, None
        if error is not None:
            self.failed = True
            self._log.segments_failed(work, error)
            return
        self._log.segments_written(work)
        self.pulse()
        self._gather_segments()

    def tick(self) -> None:
        """Every second: retention; what it leaves to do is gathered."""
        self._log.tick()
        self.pulse()
        self._gather_segments()

    def stop(self) -> None:
        """After this the log belongs to the caller: both threads have ended."""
        if self._gather is not None:
            self._gather.cancel()
        self.failed = True
        self._journal.stop()
        self._segments.stop()
