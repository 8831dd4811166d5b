"""The async half: the same writer and reader, with their waiting done outside the event loop.

Appends share one polling thread per writer; each reader has one thread of its own, so that a hundred quiet readers
do not starve asyncio's default executor. Cancelling takes effect at once and leaves nothing half done.
"""
from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from headwater.client import librdkafka
from headwater.client.reader import Reader
from headwater.client.record import Record

if TYPE_CHECKING:
    from headwater.client.log import Log
    from headwater.client.writer import Appended


async def append(log: Log, *record: Any) -> Appended:
    """The record's fate once it is durable."""
    writer = log._writer
    if writer is None or writer.connection.forked:
        writer = await asyncio.to_thread(log._the_writer)
    writer.poll_in_background()
    loop = asyncio.get_running_loop()
    acknowledged: asyncio.Future[None] = loop.create_future()

    def settle() -> None:
        if not acknowledged.done():
            acknowledged.set_result(None)

    def report(_: Appended) -> None:
        try:
            loop.call_soon_threadsafe(settle)
        except RuntimeError:
            pass  # the loop is closed: nobody waits any more

    appended = writer.append(*record)
    appended.when_done = report
    if appended.done:
        settle()  # it was acknowledged between the two lines above
    try:
        await asyncio.wait_for(acknowledged, writer.connection.timeout)
    except TimeoutError:
        raise librdkafka.timed_out(
            "append a record", f"to topic {appended.topic}", writer.connection.timeout, writer.connection.reasons
        ) from None
    return appended.wait()


class AsyncReader(AsyncIterator[Record]):
    """A reader for `async for`, opened on first use; also an async context manager."""

    def __init__(self, make: Callable[[], Reader]) -> None:
        self._make = make
        self._reader: Reader | None = None
        self._buffer: deque[Record] = deque()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="headwater-reader")

    async def _run(self, call: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    def _open(self) -> Reader:
        if self._reader is None:
            self._reader = self._make()
        return self._reader

    def _take(self) -> list[Record] | None:
        """In the reader's thread: some records, none yet, or None at the end."""
        reader = self._open()
        if reader.finished:
            return None
        found = reader.take()
        if not found and reader.timeout is not None:
            reader.give_up_when_idle(reader.timeout)
        self._buffer.extend(found)  # here, not in the caller: a cancelled caller must not lose them
        return found

    async def __anext__(self) -> Record:
        while not self._buffer:
            if await self._run(self._take) is None and not self._buffer:
                await self.aclose()
                raise StopAsyncIteration
        record = self._buffer.popleft()
        assert self._reader is not None
        self._reader.mark([record])
        return record

    async def commit(self) -> None:
        await self._run(lambda: self._open().commit())

    @property
    def reader(self) -> Reader:
        """The blocking reader underneath, for a transaction's send_offsets."""
        return self._open()

    async def aclose(self) -> None:
        if self._reader is not None:
            await self._run(self._reader.close)
        self._thread.shutdown(wait=False)

    async def __aenter__(self) -> AsyncReader:
        await self._run(self._open)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and self._reader is not None:
            self._reader.take_back()
        await self.aclose()
