"""A listener on a loop of its own in a thread, with real sockets; the answers come from the test."""

from __future__ import annotations

import asyncio
import io
import json
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

from headwater.core.clock import SystemClock
from headwater.server.addresses import Address, listen
from headwater.server.budget import Budget
from headwater.server.kafka_listener import KafkaListener, Limits
from headwater.server.log_lines import LogLines
from headwater.server.loops import new_loop

SECONDS = 10.0  # every wait in these tests ends by then


def until(reached: Callable[[], Any], what: str = "") -> Any:
    """Poll a condition; the condition's value, or a failure that names it."""
    deadline = time.monotonic() + SECONDS
    pause = threading.Event()
    while not (value := reached()):
        assert time.monotonic() < deadline, f"never came true: {what or reached}"
        pause.wait(0.002)
    return value


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def echo(frame: memoryview, peer: Any, deliver: Any) -> None:
    deliver([framed(bytes(frame))])


class Client:
    """A raw connection that speaks frames."""

    def __init__(self, address: Address) -> None:
        self.socket = socket.create_connection((address.host, address.port), timeout=SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def ask(self, payload: bytes) -> bytes:
        self.send(framed(payload))
        return self.answer()

    def answer(self) -> bytes:
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def is_closed(self) -> bool:
        """The other side has ended the connection (whatever it had sent is dropped)."""
        try:
            while self.socket.recv(65536):
                pass
        except TimeoutError:
            return False
        except OSError:
            return True
        return True

    def has_answer(self) -> bool:
        self.socket.setblocking(False)
        try:
            return bool(self.socket.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return False
        finally:
            self.socket.settimeout(SECONDS)

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _exactly(self, count: int) -> bytes:
        found = bytearray()
        while len(found) < count:
            piece = self.socket.recv(min(count - len(found), 1 << 20))
            if not piece:
                raise ConnectionError(f"closed after {len(found)} of {count} bytes")
            found += piece
        return bytes(found)


class Running:
    """``with Running(respond) as broker: broker.client()``"""

    def __init__(
        self, respond: Any = echo, *, loop: str = "auto", limits: Limits | None = None, budget: int = 64 << 20
    ) -> None:
        self.output = io.StringIO()
        self.loop = new_loop(loop)
        self.budget = Budget(budget)
        self.listener = KafkaListener(
            loop=self.loop, respond=respond, budget=self.budget, limits=limits,
            lines=LogLines(self.output, SystemClock(), human=False),
        )  # fmt: skip
        self.errors: list[dict[str, Any]] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._clients: list[Client] = []

    def __enter__(self) -> Running:
        sockets = listen(Address("127.0.0.1", 0), insecure=False)
        self.address = Address(*sockets[0].getsockname())
        self.loop.set_exception_handler(lambda _, context: self.errors.append(context))
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self.listener.start(sockets), self.loop).result(SECONDS)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        for client in self._clients:
            client.close()
        self.call(self.listener.stop_accepting)
        self.call(self.listener.abort)
        until(lambda: not self.listener.connections, "all connections are gone")
        self.call(self.listener.close)
        held = self.budget.taken
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(SECONDS)
        self.loop.close()
        if kind is None:
            assert held == 0, f"{held} bytes of the budget never came back"
            assert not self.errors, self.errors

    def client(self) -> Client:
        self._clients.append(Client(self.address))
        return self._clients[-1]

    def call(self, function: Callable[[], Any]) -> Any:
        """Run it on the loop."""

        async def run() -> Any:
            return function()

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(SECONDS)

    def said(self, event: str) -> list[dict[str, Any]]:
        return [line for line in map(json.loads, self.output.getvalue().splitlines()) if line["event"] == event]

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
