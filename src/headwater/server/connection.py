"""One connection of a Kafka client: requests in, answers out, in Kafka's order.

Requests of a connection run one after another, as in Kafka; only consecutive Produce requests overlap, each
starting when the one before it has been appended, because otherwise every one of them would wait for a sync
of its own. Answers leave in the order of the requests. While a request waits, what the client sends further
stays here as long as it came in the same read, and in the kernel beyond that: reading is paused while
anything is queued. The same holds while the client does not read its answers. So a stalled or a talkative
client holds its own bounded memory and nothing of the others'.

What is no Kafka frame, or no request that can be decoded, ends the connection with one (rate-limited) line.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headwater.broker.registry import Connection
from headwater.server.frames import BadLength, FrameReader
from headwater.wire.schema import Malformed

if TYPE_CHECKING:
    from headwater.server.budget import Place
    from headwater.server.kafka_listener import KafkaListener

PIECES_MAX = 100  # above it one join costs less than a vector of pieces (measured: 1,000 pieces 155 against 330 us)
OVERLAP_MAX = 256  # Produce requests of one connection at work; librdkafka would send a million
OVERLAP_BYTES = 16 << 20  # and their bytes: four commit windows
TURN_REQUESTS = 64  # requests of one connection in one turn of the loop, then the others are served

PRODUCE = b"\0\0"
Piece = bytes | bytearray | memoryview


class Request:
    """One request at work. ``deliver`` is called exactly once, at once or later."""

    __slots__ = ("_connection", "answered", "close", "overlaps", "pieces", "size")

    def __init__(self, connection: KafkaConnection, size: int, overlaps: bool) -> None:
        self._connection = connection
        self.size = size  # what it holds of the budget
        self.overlaps = overlaps
        self.answered = False
        self.pieces: Sequence[Piece] | None = None
        self.close = False

    def deliver(self, pieces: Sequence[Piece] | None, close: bool = False) -> None:
        """The answer; None where the protocol has none (Produce with acks=0)."""
        assert not self.answered, "a request was answered twice"
        self.answered = True
        self.pieces = pieces
        self.close = close
        self._connection.answered()


class KafkaConnection(asyncio.BufferedProtocol):
    __slots__ = (
        "_again",
        "_listener",
        "_out",
        "_place",
        "_pumping",
        "_queue",
        "_reader",
        "_reading",
        "_working",
        "_working_bytes",
        "_write_paused",
        "bytes_in",
        "ending",
        "lost",
        "marks",
        "peer",
        "requests_in",
        "stopping",
        "transport",
    )  # fmt: skip

    def __init__(self, listener: KafkaListener) -> None:
        self._listener = listener
        self._reader = FrameReader(listener.scratch, listener.budget, listener.limits.frame_bytes_max)
        self._queue: deque[memoryview] = deque()  # whole frames that may not start yet
        self._working: deque[Request] = deque()
        self._working_bytes = 0
        self._out: list[Piece] = []
        self._place: Place | None = None  # a place in the budget's line
        self._again: asyncio.Handle | None = None
        self._pumping = False
        self._reading = True
        self._write_paused = False
        self.ending = False  # nothing is read, begun or sent any more
        self.stopping = False  # nothing is read or begun any more
        self.lost = False
        self.bytes_in = 0
        self.requests_in = 0
        self.marks: Any = None  # the listener's: what it saw at its last sweep
        self.peer = Connection()
        self.transport: Any = None

    # the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        host, port = address_of(transport.get_extra_info("peername"))
        local_host, local_port = address_of(transport.get_extra_info("sockname"))
        advertised = self._listener.advertise or (local_host, local_port)
        self.peer = Connection(
            client_host=host,
            connection_id=f"{local_host}:{local_port}-{host}:{port}",
            listener_host=advertised[0],
            listener_port=advertised[1],
        )
        self._listener.joined(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self.bytes_in += nbytes
        if self.ending or self.stopping:
            return
        try:
            frames = self._reader.received(nbytes)
        except BadLength as error:
            self.refuse(str(error))
            return
        self._took(frames)

    def pause_writing(self) -> None:
        self._write_paused = True

    def resume_writing(self) -> None:
        self._write_paused = False
        self._pump()

    def connection_lost(self, error: Exception | None) -> None:
        self.lost = self.ending = True
        if self._place is not None:
            self._place.cancel()
        if self._again is not None:
            self._again.cancel()
        held = sum(len(frame) for frame in self._queue) + self._working_bytes
        self._queue.clear()
        self._working.clear()
        self._working_bytes = 0
        self._out.clear()
        self._listener.left(self)
        self.peer.close()  # whatever waits for this client waits no longer
        self._reader.close()
        self._listener.budget.give(held)

    # the listener asks and says

    @property
    def partial(self) -> bool:
        """A frame has begun, its rest is awaited from the client (and not from us)."""
        return self._reader.partial and self._reading

    @property
    def held_back(self) -> bool:
        """Requests wait behind one that may take as long as it likes: a long poll, a rebalance."""
        return bool(self._queue and self._working and not self._working[0].overlaps)

    @property
    def working(self) -> bool:
        return bool(self._working)

    @property
    def unsent(self) -> int:
        """Bytes that the client has not taken."""
        return int(self.transport.get_write_buffer_size()) if self._write_paused and not self.lost else 0

    def refuse(self, reason: str) -> None:
        """The client's fault: one line, and the connection ends."""
        self._listener.lines.often(
            "connection-refused", f"closed the connection of {self.peer.client_host}: {reason}",
            peer=self.peer.connection_id, reason=reason,
        )  # fmt: skip
        self.end()

    def end(self) -> None:
        """No further request; what has been answered is still sent."""
        if self.ending:
            return
        self.ending = True
        self._send()
        self.transport.close()

    def stop_reading(self) -> None:
        """The broker stops: what is at work is finished, nothing new is begun."""
        self._listener.budget.give(sum(len(frame) for frame in self._queue))
        self._queue.clear()
        self.stopping = True
        self._flow()

    def answered(self) -> None:
        """A request at work has its answer."""
        if not self._pumping and not self.lost and self._working and self._working[0].answered:
            self._pump()

    # requests

    def _took(self, frames: list[memoryview]) -> None:
        if frames:
            self.requests_in += len(frames)
            self._queue.extend(frames)
        if self._reader.wanted:
            self._place = self._listener.budget.wait(
                self._reader.wanted, self._granted, begun=self._reader.begun
            )
        if frames and self._again is None:
            self._pump()
        else:
            self._flow()

    def _granted(self) -> None:
        self._place = None
        try:
            self._took(self._reader.resume())
        except BadLength as error:
            self.refuse(str(error))

    def _pump(self) -> None:
        """Send what is answered, start what may start, until neither is left."""
        if self._pumping or self.lost:
            return
        self._pumping = True
        started = 0
        try:
            while True:
                self._collect()
                if not self._queue or not self._may_start(self._queue[0]):
                    break
                if started == TURN_REQUESTS:
                    self._again = self._listener.loop.call_soon(self._go_on)
                    break
                started += 1
                self._start(self._queue.popleft())
        finally:
            self._pumping = False
        self._send()
        self._flow()

    def _go_on(self) -> None:
        self._again = None
        self._pump()

    def _may_start(self, frame: memoryview) -> bool:
        if self._write_paused or self.ending or self.stopping:
            return False
        working = self._working
        if not working:
            return True
        return (
            working[-1].overlaps
            and frame[:2] == PRODUCE
            and len(working) < OVERLAP_MAX
            and self._working_bytes < OVERLAP_BYTES
        )

    def _start(self, frame: memoryview) -> None:
        request = Request(self, len(frame), frame[:2] == PRODUCE)
        self._working.append(request)
        self._working_bytes += request.size
        try:
            self._listener.respond(frame, self.peer, request.deliver)
        except Malformed as error:
            self.refuse(f"{request_name(frame)}: {error}")
        except Exception as error:
            self._listener.lines.bug(request_name(frame), error)
            self.end()
        self._listener.moved()

    def _collect(self) -> None:
        working, freed = self._working, 0
        while working and working[0].answered:
            request = working.popleft()
            freed += request.size
            if request.pieces is not None and not self.ending:
                self._out.extend(request.pieces)
                if not request.overlaps:
                    self._send()  # it may be large: whether the next starts depends on what the client takes
            if request.close:
                self._working_bytes -= freed
                self._listener.budget.give(freed)
                self.end()
                return
        if freed:
            self._working_bytes -= freed
            self._listener.budget.give(freed)

    def _send(self) -> None:
        out, transport = self._out, self.transport
        if not out:
            return
        self._out = []
        if transport.is_closing():
            return  # uvloop raises on a closed transport; the client is gone anyway
        if len(out) == 1:
            transport.write(out[0])
        elif len(out) <= PIECES_MAX:
            transport.writelines(out)
        else:
            transport.write(b"".join(out))

    def _flow(self) -> None:
        """Read exactly while nothing here waits."""
        want = not (self._queue or self._reader.wanted or self.ending or self.stopping)
        if want != self._reading and not self.transport.is_closing():
            self._reading = want
            if want:
                self.transport.resume_reading()
            else:
                self.transport.pause_reading()


def address_of(name: Any) -> tuple[str, int]:
    """Host and port of a socket name; a client that is gone already has none."""
    return (str(name[0]), int(name[1])) if isinstance(name, tuple) and len(name) >= 2 else ("?", 0)


def request_name(frame: memoryview) -> str:
    """For a log line: what the frame says that it is."""
    if len(frame) < 4:
        return f"a frame of {len(frame)} bytes"
    key, version = int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big")
    return f"request of API key {key} version {version}, {len(frame)} bytes"
