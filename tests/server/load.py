"""Writers that remember what was acknowledged, and a reader that says what is there."""

from __future__ import annotations

import itertools
import threading
import time

from headwater.wire import batch
from headwater.wire.messages.create_topics import CreateTopicsResponse
from headwater.wire.messages.fetch import FetchResponse
from headwater.wire.messages.produce import ProduceResponse
from tests.peers import requests
from tests.peers.raw import ConnectionClosed, RawConnection
from tests.peers.requests import create, fetch_from, produce_to


def records(count: int, *, value: bytes) -> bytearray:
    """A batch of now: retention takes what is a week old."""
    return requests.records(count, value=value, at=time.time_ns() // 1_000_000)


def create_topic(address: str, name: str, partitions: int = 1) -> None:
    with RawConnection(address) as connection:
        answer = connection.ask(create(name, partitions), CreateTopicsResponse, 6)
        assert answer.topics[0].error_code in (0, 36), answer.topics[0].error_message


def values(address: str, topic: str, partition: int = 0) -> list[bytes]:
    """Everything that a consumer is given, in order."""
    found: list[bytes] = []
    offset = 0
    with RawConnection(address) as connection:
        while True:
            answer = connection.ask(fetch_from(topic, offset, partition=partition), FetchResponse, 12)
            data = answer.responses[0].partitions[0]
            assert data.error_code == 0, data.error_code
            if not data.records:
                return found
            for position, header in batch.headers(data.records):
                whole = memoryview(data.records)[position : position + header.size]
                found += [bytes(record.value or b"") for record in batch.records(whole) if record.offset >= offset]
                offset = header.next_offset


class Writer(threading.Thread):
    """Writes one record after the other on a connection of its own until the broker is gone or it is told to stop."""

    def __init__(self, address: str, topic: str, name: str, *, partition: int = 0) -> None:
        super().__init__(daemon=True)
        self.address, self.topic, self.prefix, self.partition = address, topic, name.encode(), partition
        self.acknowledged: list[bytes] = []
        self.refused: list[int] = []
        self.stopping = threading.Event()

    def run(self) -> None:
        try:
            with RawConnection(self.address) as connection:
                for number in itertools.count():
                    if self.stopping.is_set():
                        return
                    self._write(connection, b"%s/%d" % (self.prefix, number))
        except (ConnectionClosed, OSError):
            return  # the broker is gone

    def _write(self, connection: RawConnection, value: bytes) -> None:
        request = produce_to(self.topic, records(1, value=value), partition=self.partition)
        answer = connection.ask(request, ProduceResponse, 9)
        error = answer.responses[0].partition_responses[0].error_code
        if error:
            self.refused.append(error)
        else:
            self.acknowledged.append(value + b"-0")  # as `records` numbers them

    def end(self) -> None:
        self.stopping.set()
        self.join(10)
        assert not self.is_alive()


def lost(present: list[bytes], writers: list[Writer]) -> list[bytes]:
    there = set(present)
    return [value for writer in writers for value in writer.acknowledged if value not in there]
