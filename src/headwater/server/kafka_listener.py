"""The listening side: accepts Kafka clients, knows all their connections, ends those that only cost.

Limits are Kafka's where Kafka has them. Beyond Kafka's, because a broker without authentication in front of
it must survive whoever connects:

* a half frame must be whole or have gained ``PROGRESS_BYTES`` within ``half_frame_seconds``;
* while others wait for memory, or the unsent answers of all clients together exceed ``UNSENT_BYTES``,
  who holds memory without moving is closed after ``pressure_seconds``;
* no deadline for a connection that has sent nothing yet (Kafka has none, and clients behind proxies open
  connections ahead of need): it costs 2 KB until the idle limit. Only when the connections run out are such
  silent ones closed to make room.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence

from headwater.broker.registry import Connection
from headwater.server.addresses import BACKLOG
from headwater.server.budget import Budget
from headwater.server.connection import KafkaConnection
from headwater.server.frames import SCRATCH_BYTES
from headwater.server.log_lines import LogLines

Deliver = Callable[..., None]  # (pieces or None, close)
Respond = Callable[[memoryview, Connection, Deliver], None]

PROGRESS_BYTES = 64 * 1024
UNSENT_BYTES = 256 << 20  # of all clients; each is bounded by one answer that it asked for
IDLE = "idle"
CONNECTIONS_MAX = 50_000  # and never more than the process may open, see server/app.py


class Limits:
    """What a client may hold, and how long."""

    __slots__ = (
        "connections_max", "ending_seconds", "frame_bytes_max", "half_frame_seconds", "idle_seconds",
        "pressure_seconds", "silent_seconds", "sweep_seconds",
    )  # fmt: skip

    def __init__(
        self,
        *,
        frame_bytes_max: int = 100 << 20,  # Kafka's socket.request.max.bytes
        connections_max: int = CONNECTIONS_MAX,
        idle_seconds: float = 600.0,  # Kafka's connections.max.idle.ms
        half_frame_seconds: float = 30.0,
        pressure_seconds: float = 5.0,
        ending_seconds: float = 10.0,  # to take the last answer of a connection that we close
        silent_seconds: float = 10.0,  # may be closed then, when connections run out
        sweep_seconds: float = 1.0,
    ) -> None:
        self.frame_bytes_max = frame_bytes_max
        self.connections_max = connections_max
        self.idle_seconds = idle_seconds
        self.half_frame_seconds = half_frame_seconds
        self.pressure_seconds = pressure_seconds
        self.ending_seconds = ending_seconds
        self.silent_seconds = silent_seconds
        self.sweep_seconds = sweep_seconds


class Marks:
    """What the last sweeps saw of a connection, and since when it has been so."""

    __slots__ = ("active", "bytes_in", "ending", "heard", "moved", "requests_in", "unsent")

    def __init__(self, now: float) -> None:
        self.bytes_in = 0  # when it last moved
        self.requests_in = 0
        self.heard = 0  # bytes at the last sweep
        self.unsent = 0
        self.active = now  # last byte in or out
        self.moved = now  # last request completed, or real progress of a half one
        self.ending = 0.0


class KafkaListener:
    """All connections of one loop. ``respond`` answers a frame; ``moved`` is told that something was begun."""

    def __init__(
        self,
        *,
        loop: asyncio.AbstractEventLoop,
        respond: Respond,
        budget: Budget,
        lines: LogLines,
        limits: Limits | None = None,
        advertise: tuple[str, int] | None = None,
        moved: Callable[[], None] = lambda: None,
    ) -> None:
        self.loop = loop
        self.respond = respond
        self.budget = budget
        self.lines = lines
        self.limits = limits or Limits()
        self.advertise = advertise  # None: the address by which the client came
        self.moved = moved
        self.scratch = memoryview(bytearray(SCRATCH_BYTES))
        self.connections: dict[KafkaConnection, None] = {}  # in order of arrival
        self._servers: list[asyncio.AbstractServer] = []
        self._sweep_handle: asyncio.TimerHandle | None = None
        self._contended_since: float | None = None
        self._closing = False

    async def start(self, sockets: Sequence[socket.socket]) -> None:
        """Accept on sockets that listen already."""
        for listening in sockets:
            server = await self.loop.create_server(
                lambda: KafkaConnection(self), sock=listening, backlog=BACKLOG  # the loop listens once more
            )
            self._servers.append(server)
        self._sweep_handle = self.loop.call_later(self.limits.sweep_seconds, self._sweep_again)

    def stop_accepting(self) -> None:
        for server in self._servers:
            server.close()
        self._servers.clear()

    def stop_reading(self) -> None:
        for connection in list(self.connections):
            connection.stop_reading()

    def close(self) -> None:
        """Every answer that there is still leaves, then the connections end."""
        if self._sweep_handle is not None:
            self._sweep_handle.cancel()
        self._closing = True
        for connection in list(self.connections):
            connection.transport.close()

    def abort(self) -> None:
        for connection in list(self.connections):
            connection.transport.abort()

    # the connections say

    def joined(self, connection: KafkaConnection) -> None:
        connection.marks = Marks(self.loop.time())
        if self._closing:  # accepted in the turn in which the broker stopped
            connection.ending = True
            connection.transport.abort()
        elif len(self.connections) >= self.limits.connections_max and not self._make_room():
            self.lines.often(
                "too-many-connections",
                f"refused {connection.peer.client_host}: {len(self.connections)} connections are open and no more "
                "are allowed (max.connections, ulimit -n)",
                peer=connection.peer.connection_id,
            )
            connection.ending = True
            connection.transport.abort()
        self.connections[connection] = None

    def left(self, connection: KafkaConnection) -> None:
        self.connections.pop(connection, None)

    def _make_room(self) -> bool:
        """Close the oldest connection that has never sent a request."""
        now = self.loop.time()
        for connection in self.connections:
            if not connection.requests_in and not connection.ending:
                if now - connection.marks.active < self.limits.silent_seconds:
                    continue
                connection.refuse("it has sent no request, and the connections have run out")
                connection.transport.abort()
                return True
        return False

    # the sweep

    def _sweep_again(self) -> None:
        self._sweep_handle = self.loop.call_later(self.limits.sweep_seconds, self._sweep_again)
        try:
            self.sweep(self.loop.time())
        except Exception as error:
            self.lines.bug("the sweep over connections", error)

    def sweep(self, now: float) -> None:
        if not self.budget.contended:
            self._contended_since = None
        elif self._contended_since is None:
            self._contended_since = now
        short = self._contended_since is not None and now - self._contended_since >= self.limits.pressure_seconds
        crowded = sum(connection.unsent for connection in self.connections) > UNSENT_BYTES
        for connection in list(self.connections):
            reason = self._overdue(connection, connection.marks, now, short, crowded)
            if reason == IDLE:
                connection.end()  # nobody's fault, and clients expect it: no line
            elif reason is not None:
                connection.refuse(reason)
                connection.transport.abort()

    def _overdue(
        self, connection: KafkaConnection, marks: Marks, now: float, short: bool, crowded: bool
    ) -> str | None:
        limits = self.limits
        unsent = connection.unsent
        waiting = connection.partial or connection.held_back
        gained = connection.bytes_in - marks.bytes_in
        if connection.requests_in != marks.requests_in or not waiting or gained >= PROGRESS_BYTES:
            marks.moved = now
        if connection.bytes_in != marks.heard or unsent != marks.unsent or connection.working:
            marks.active = now if not unsent or unsent != marks.unsent else marks.active
        if marks.moved == now:
            marks.bytes_in, marks.requests_in = connection.bytes_in, connection.requests_in
        marks.unsent, marks.heard = unsent, connection.bytes_in
        still, idle = now - marks.moved, now - marks.active
        if connection.ending:
            marks.ending = marks.ending or now
            return "it does not take its last answer" if now - marks.ending > limits.ending_seconds else None
        if connection.partial and still > limits.half_frame_seconds:
            return f"a request was begun and not finished for {still:.0f} s"
        if short and waiting and still > limits.pressure_seconds:
            return "it holds memory with requests that do not move while others wait for memory"
        if crowded and unsent and idle > limits.pressure_seconds:
            return f"{unsent} bytes of answers have not been taken for {idle:.0f} s and memory is short"
        if idle > limits.idle_seconds:
            return IDLE
        return None


