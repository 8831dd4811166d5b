"""A broker without a process: handlers are called as a client would call them, with frames, on manual time.

    world      one broker over a disk in memory; `restart` and `crash` open its data again
    client     one connection to it: `ask` sends a request and returns the answer, `submit` does not wait

Whatever the broker reports as a bug fails the test.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headwater.broker.config import BrokerSettings
from headwater.broker.dispatch import respond
from headwater.broker.registry import Connection, find
from headwater.broker.state import Broker
from headwater.log import Log
from headwater.testing.clock import ManualClock
from headwater.testing.faulty_disk import FaultyDisk
from headwater.wire.frame import decode_response, encode_request
from headwater.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from headwater.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from headwater.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from headwater.wire.schema import schema_of

DATA = "/data"
HOST, PORT = "broker.test", 9092


class Pending:
    """An answer that may not have come yet. ``response`` is None for an answer that is no answer (acks=0)."""

    def __init__(self) -> None:
        self.done = False
        self.closed = False
        self.response: Any = None


class Client:
    """One connection."""

    def __init__(self, world: World, client_id: str = "test") -> None:
        self.world = world
        self.client_id = client_id
        self.connection = Connection(
            client_host="127.0.0.1", connection_id="1", listener_host=HOST, listener_port=PORT
        )

    def submit(self, request: Any, version: int) -> Pending:
        """Send and do not wait; nothing is committed and no time passes."""
        pending = Pending()
        frame = b"".join(encode_request(request, version, 7, self.client_id))
        handler = find(schema_of(type(request)).key)
        assert handler is not None

        def deliver(pieces: Any, close: bool) -> None:
            assert not pending.done, "answered twice"
            pending.done, pending.closed = True, close
            if pieces is not None:
                answer = memoryview(b"".join(bytes(piece) for piece in pieces))
                assert int.from_bytes(answer[:4], "big") == len(answer) - 4
                correlation_id, pending.response = decode_response(handler.response, version, answer[4:])
                assert correlation_id == 7

        respond(self.world.broker, memoryview(bytearray(frame))[4:], self.connection, deliver)
        return pending

    def ask(self, request: Any, version: int) -> Any:
        """Send and wait: what is written is committed, and time goes on to the next deadline until it is answered."""
        pending = self.submit(request, version)
        self.world.settle()
        while not pending.done:
            self.world.pass_to_next_deadline()
        return pending.response

    def create(self, name: str, partitions: int = 1, **config: str) -> bytes:
        """A new topic (settings with `_` for `.`); its id."""
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=-1,
            configs=[
                CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in config.items()
            ],
        )
        (result,) = self.ask(CreateTopicsRequest(topics=[topic]), 7).topics
        assert result.error_code == 0, result
        return bytes(result.topic_id)

    def produce(
        self, topic: str, batch: Any, partition: int = 0, version: int = 11, acks: int = -1, **fields: Any
    ) -> PartitionProduceResponse:
        request = produce_request(topic, batch, partition, acks=acks, **fields)
        (answer,) = self.ask(request, version).responses[0].partition_responses
        return answer

    def fetch(self, topic: str, offset: int, partition: int = 0, version: int = 12, **fields: Any) -> PartitionData:
        ask = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = FetchRequest(topics=[FetchTopic(topic=topic, partitions=[ask])], **fields)
        (answer,) = self.ask(request, version).responses[0].partitions
        return answer


def produce_request(topic: str, batch: Any, partition: int = 0, acks: int = -1, **fields: Any) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=batch)
    return ProduceRequest(
        acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=[data])], **fields
    )


class World:
    """A broker, its disk and its clock."""

    def __init__(self, settings: dict[str, str] | None = None) -> None:
        self.settings = BrokerSettings(settings or {})
        self.clock = ManualClock(wall_ms=1_700_000_000_000, monotonic_ms=5_000)
        self.disk = FaultyDisk()
        self.bugs: list[tuple[str, BaseException]] = []
        self.open()

    def open(self) -> None:
        self.log = Log.open(self.disk, DATA, self.clock)
        self.broker = Broker.open(self.log, self.clock, self.settings)
        self.broker.report_bug = lambda where, error: self.bugs.append((where, error))
        self.settle()

    def client(self, client_id: str = "test") -> Client:
        return Client(self, client_id)

    def settle(self) -> None:
        """Everything written becomes durable, every timer that is due runs."""
        self.broker.timers.run_due(self.clock.monotonic_ms())
        self.log.commit()

    def advance(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds)
        self.settle()

    def pass_to_next_deadline(self) -> None:
        due = self.broker.timers.next_due()
        assert due is not None, "nothing will ever answer this"
        self.advance(max(due - self.clock.monotonic_ms(), 0))

    def restart(self) -> None:
        """A clean stop, and a start."""
        self.log.close()
        self.open()

    def crash(self, seed: int = 0) -> None:
        """Power loss at this moment, and a start."""
        self.disk = self.disk.crash_image(seed)
        self.open()


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    for where, error in made.bugs:
        raise AssertionError(f"a bug in {where}") from error


@pytest.fixture
def client(world: World) -> Client:
    return world.client()
