"""One broker on one loop: listener, budget, committer, reader pool and timers, wired to each other.

It begins with an opened broker and sockets that listen, and ends with everything answered that can be and its
threads gone; the log stays open, it belongs to who opened it.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from headwater.broker import registry
from headwater.broker.dispatch import respond
from headwater.server.budget import Budget
from headwater.server.committer import Committer
from headwater.server.kafka_listener import KafkaListener, Limits
from headwater.server.memory import Memory
from headwater.server.pulse import Pulse
from headwater.server.reader_pool import ReaderPool

if TYPE_CHECKING:
    from headwater.broker.state import Broker
    from headwater.core.clock import Clock
    from headwater.server.addresses import Address
    from headwater.server.log_lines import LogLines

STOP_SECONDS = 10.0  # for what is in flight; systemd and Docker kill after that or later
TICK_SECONDS = 1.0


class Engine:
    """One broker on one loop, from listening to stopped."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, broker: Broker, clock: Clock, lines: LogLines, limits: Limits,
        advertise: Address | None = None,
    ) -> None:  # fmt: skip
        self.loop = loop
        self.broker = broker
        self.lines = lines
        self.budget = Budget(broker.settings.queued_max_request_bytes)
        self.pulse = Pulse(loop, broker.timers, clock, lines.bug)
        self.memory = Memory()
        self.committer = Committer(
            broker.log, loop, lines, shut=self._shut, moved=self.pulse.moved,
            large_traffic=self.memory.large_traffic,
        )  # fmt: skip
        self.pulse.commit = self.committer.pulse
        self.readers = ReaderPool(loop, lines.bug, self.pulse.moved)
        self.listener = KafkaListener(
            loop=loop, respond=partial(respond, broker), budget=self.budget, lines=lines, limits=limits,
            advertise=advertise, moved=self.pulse.moved,
        )  # fmt: skip
        self._ticking: asyncio.TimerHandle | None = None
        self._damage_told = 0
        broker.io = self.readers.run
        broker.report_bug = lines.bug
        broker.on_fence.append(self._fenced)

    async def start(self, sockets: list[socket.socket]) -> None:
        await self.listener.start(sockets)
        self._tick()
        self.pulse.moved()  # loading may have changed the log and set timers
        self.loop.call_soon(registry.load)  # after "ready": the first request need not wait for the imports

    async def stop(self) -> None:
        """Finish what is in flight, end the connections and the threads. The log stays open."""
        deadline = self.loop.time() + STOP_SECONDS
        self.listener.stop_accepting()
        self.listener.stop_reading()
        await self._until(lambda: self.committer.idle and not self.readers.at_work, deadline)
        self.listener.close()
        await self._until(lambda: not self.listener.connections, deadline)
        self.listener.abort()
        await self._until(lambda: not self.listener.connections, self.loop.time() + 1.0)
        if self._ticking is not None:
            self._ticking.cancel()
        self.pulse.stop()
        self.readers.stop()
        self.committer.stop()

    async def _until(self, reached: Callable[[], bool], deadline: float) -> None:
        while not reached() and self.loop.time() < deadline:
            await asyncio.sleep(0.002)

    def _shut(self, shut: bool) -> None:
        self.budget.shut = shut

    def _tick(self) -> None:
        self._ticking = self.loop.call_later(TICK_SECONDS, self._tick)
        try:
            self.committer.tick()
        except Exception as error:
            self.lines.bug("the log's tick", error)
        self._tell_damage()
        self.memory.tick()

    def _tell_damage(self) -> None:
        """What the start or a reader found since the last look."""
        found = self.broker.log.damage[self._damage_told :]
        self._damage_told += len(found)
        for damage in found:
            self.lines.often("damage", f"DAMAGE found, nothing was deleted: {damage}", **damage._asdict())

    def _fenced(self, reason: str) -> None:
        self.lines.say(
            "fenced",
            f"THE LOG IS FENCED: {reason}. Nothing is acknowledged from now on, writes are answered with "
            "KAFKA_STORAGE_ERROR; what was acknowledged is on the disk and can be read. Check the disk, then "
            "restart the broker.",
            reason=reason,
        )
