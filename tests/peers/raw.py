"""A raw client: one socket, requests and answers as our codec knows them, nothing retried or hidden.

The same requests go to Apache Kafka and to our broker, so that answers can be compared field by field.
"""

from __future__ import annotations

import socket
import struct
from typing import Any, TypeVar

from headwater.wire import frame
from headwater.wire.messages.metadata import MetadataRequest, MetadataResponse

Answer = TypeVar("Answer")
ANSWER_SECONDS_MAX = 30


class ConnectionClosed(Exception):
    """The broker closed the connection instead of answering."""


class RawConnection:
    """One connection to a broker. `ask` sends one request and returns its answer."""

    def __init__(
        self, address: str, *, client_id: str | None = "prober", seconds_max: float = ANSWER_SECONDS_MAX
    ):
        host, _, port = address.rpartition(":")
        self.client_id = client_id
        self._next_id = 1
        self._socket = socket.create_connection((host, int(port)), timeout=seconds_max)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, request: Any, response: type[Answer], version: int) -> Answer:
        self.send(request, version)
        return self.receive(response, version)

    def send(self, request: Any, version: int) -> None:
        pieces = frame.encode_request(request, version, self._next_id, self.client_id)
        self._next_id += 1
        self._socket.sendall(b"".join(pieces))

    def send_bytes(self, data: bytes) -> None:
        self._socket.sendall(data)

    def receive(self, response: type[Answer], version: int) -> Answer:
        _, message = frame.decode_response(response, version, memoryview(bytearray(self.receive_frame())))
        return message

    def receive_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def is_closed_by_peer(self) -> bool:
        """Waits for either an answer or the end of the connection."""
        try:
            return self._socket.recv(1) == b""
        except ConnectionError:
            return True

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> RawConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                more = self._socket.recv(min(size - len(data), 1 << 20))
            except ConnectionResetError:
                more = b""
            if not more:
                raise ConnectionClosed(f"the broker closed the connection after {len(data)} of {size} bytes")
            data += more
        return bytes(data)


def answers(address: str) -> bool:
    """Whether a broker at this address names itself in Metadata."""
    try:
        with RawConnection(address, seconds_max=5) as connection:
            return len(connection.ask(MetadataRequest(topics=[]), MetadataResponse, 1).brokers) > 0
    except (OSError, ConnectionClosed):
        return False
