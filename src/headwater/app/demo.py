"""The demonstration: a stock client writes, a group reads, the broker is killed, and everything is counted.

The clients are confluent-kafka as anybody uses it, in threads of this process; the broker is a process of its own.
What was acknowledged is noted by id the moment the client is told; in the end the topic is read from its first
offset to its last and the ids are compared. Nothing here knows terminals.
"""
from __future__ import annotations

import threading
import time
from typing import Any, NamedTuple

from headwater.client import librdkafka
from headwater.core.processes import BrokerProcess, start_broker

TOPIC = "orders"
GROUP = "dashboard"
PARTITIONS = 4
READERS = 2
VALUE_BYTES = 200  # a small order as JSON
SLICES_PER_SECOND = 50  # the writer's rate is kept in slices of 20 ms
BROKER_SETTINGS = {"group.initial.rebalance.delay.ms": "0"}


class Result(NamedTuple):
    """The count at the end. `unconfirmed`: present, but the client never learned that it was."""

    acknowledged: int
    present: int
    missing: int
    duplicates: int
    out_of_order: int
    unconfirmed: int
    lag: int

    @property
    def good(self) -> bool:
        return not (self.missing or self.duplicates or self.out_of_order or self.lag)


class Ledger:
    """Which ids were acknowledged, one byte each, and how many were read."""

    def __init__(self) -> None:
        self.sent = 0
        self.acknowledged = 0
        self.failed = 0
        self.last_acknowledged_at = 0.0
        self._marks = bytearray()
        self._reached: dict[int, int] = {}  # partition: the offset after the last record that the group has read

    def next_id(self) -> int:
        self._marks.append(0)
        self.sent += 1
        return self.sent - 1

    def delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.failed += 1
            return
        self.mark(identity(message.value()))
        self.last_acknowledged_at = time.monotonic()

    def mark(self, number: int) -> None:
        if not self._marks[number]:
            self._marks[number] = 1
            self.acknowledged += 1

    def reached(self, partition: int, offset: int) -> None:
        """A group that reads some records again after the kill has not read more of them."""
        if offset >= self._reached.get(partition, 0):
            self._reached[partition] = offset + 1

    @property
    def read(self) -> int:
        return sum(self._reached.values())

    def is_acknowledged(self, number: int) -> bool:
        return bool(self._marks[number])


def value_of(number: int) -> bytes:
    text = b'{"id":%d,"item":"espresso","euros":3}' % number
    return text + b" " * (VALUE_BYTES - len(text))


def identity(value: bytes) -> int:
    return int(value[6:value.index(b",", 6)])


class Writer(threading.Thread):
    """A stock producer: acks=all, idempotent, at a steady rate."""

    def __init__(self, servers: str, ledger: Ledger, rate: int) -> None:
        super().__init__(name="demo-writer", daemon=True)
        kafka = librdkafka.load()
        settings = librdkafka.settings(
            servers, {}, librdkafka.Reasons(), acks="all", enable_idempotence=True, linger_ms=5,
            reconnect_backoff_max_ms=250,
        )
        self.producer = kafka.Producer(settings)
        self.ledger = ledger
        self.rate = rate
        self.stopping = threading.Event()

    def run(self) -> None:
        per_slice = max(1, self.rate // SLICES_PER_SECOND)
        due = time.monotonic()
        while not self.stopping.is_set():
            for _ in range(per_slice):
                if not self._send():
                    break
            self.producer.poll(0)
            due += 1 / SLICES_PER_SECOND
            now = time.monotonic()
            if now < due:
                self.producer.poll(due - now)
                self.stopping.wait(max(due - time.monotonic(), 0))
            else:
                due = now  # a slow machine: the rate is what it is, no catching up
        while not self._abandoned and len(self.producer):
            self.producer.flush(0.2)

    _abandoned = False

    def _send(self) -> bool:
        if len(self.producer) > self.rate * 4:
            return False  # the broker is away: enough is waiting
        number = self.ledger.next_id()
        self.producer.produce(TOPIC, value_of(number), key=b"%d" % (number % 1000), on_delivery=self.ledger.delivered)
        return True

    def abandon(self) -> None:
        """Stop without waiting for what is on the way."""
        self._abandoned = True
        self.stopping.set()


class Member(threading.Thread):
    """A stock consumer, one member of the group."""

    def __init__(self, servers: str, ledger: Ledger, number: int) -> None:
        super().__init__(name=f"demo-reader-{number}", daemon=True)
        kafka = librdkafka.load()
        settings = librdkafka.settings(
            servers, {}, librdkafka.Reasons(), group_id=GROUP, auto_offset_reset="earliest",
            enable_auto_commit=True, auto_commit_interval_ms=500,
            # the kill must not cost a member its session: it ends that long after its last good heartbeat
            session_timeout_ms=15_000, heartbeat_interval_ms=500, client_id=f"dashboard-{number}",
        )
        self.consumer = kafka.Consumer(settings)
        self.ledger = ledger
        self.stopping = threading.Event()
        self.assigned = 0

    def run(self) -> None:
        self.consumer.subscribe([TOPIC], on_assign=self._assign)
        while not self.stopping.is_set():
            message = self.consumer.poll(0.1)
            if message is None:
                continue
            for one in (message, *self.consumer.consume(500, 0)):
                if one.error() is None:
                    self.ledger.reached(one.partition(), one.offset())
        self.consumer.close()

    def _assign(self, _consumer: Any, partitions: list[Any]) -> None:
        self.assigned = len(partitions)


class Demo:
    """The pieces in their order; the caller decides when."""

    def __init__(self, data: str | None, rate: int) -> None:
        self.ledger = Ledger()
        self.rate = rate
        self.broker = start_broker(data, settings=BROKER_SETTINGS)
        self.address = self.broker.address
        self.data = self.broker.data
        self._first = self.broker
        self._writer: Writer | None = None
        self._members: list[Member] = []

    @property
    def pid(self) -> int:
        return self.broker.pid

    @property
    def on_the_way(self) -> int:
        return max(self.ledger.sent - self.ledger.acknowledged - self.ledger.failed, 0)

    @property
    def lag(self) -> int:
        return max(self.ledger.acknowledged - self.ledger.read, 0)

    def begin(self) -> None:
        from headwater.client.address import Address
        from headwater.client.connection import Connection
        from headwater.client.topics import Topics

        Topics(Connection(Address(self.address, "demo"))).create(TOPIC, PARTITIONS)
        self._writer = Writer(self.address, self.ledger, self.rate)
        self._members = [Member(self.address, self.ledger, number + 1) for number in range(READERS)]
        for thread in (self._writer, *self._members):
            thread.start()

    def kill(self) -> None:
        self.broker.kill()

    def start_again(self) -> BrokerProcess:
        self.broker = start_broker(self.data, listen=self.address, settings=BROKER_SETTINGS)
        return self.broker

    def stop_writing(self) -> None:
        assert self._writer is not None
        self._writer.stopping.set()

    def plant(self, fault: str) -> None:
        """Show that the count finds a fault: an acknowledged record that is not there, one that is there twice,
        or one that comes after later ones. To be called when the writer has stopped."""
        assert self._writer is not None
        producer, ledger = self._writer.producer, self.ledger
        if fault == "missing":
            ledger.mark(ledger.next_id())
        elif fault == "duplicate":
            producer.produce(TOPIC, value_of(0), key=b"0", on_delivery=ledger.delivered)
        else:
            early, late = ledger.next_id(), ledger.next_id()
            for number in (late, early):
                producer.produce(TOPIC, value_of(number), key=b"late", on_delivery=ledger.delivered)
        producer.flush(10)

    @property
    def writing(self) -> bool:
        return self._writer is not None and self._writer.is_alive()

    def count(self) -> Result:
        """Read everything from the first offset to the last and compare ids."""
        from headwater.client.address import Address
        from headwater.client.connection import Connection
        from headwater.client.reader import Reader

        lag = self.lag
        reader = Reader(Connection(Address(self.address, "demo")), [TOPIC], until="latest")
        seen = bytearray(self.ledger.sent)
        duplicates = out_of_order = 0
        newest: dict[int, int] = {}
        with reader:
            while not reader.finished:
                for record in reader.take():
                    number = identity(record.value or b"")
                    if seen[number]:
                        duplicates += 1
                        continue
                    seen[number] = 1
                    if number < newest.get(record.partition, -1):
                        out_of_order += 1
                    newest[record.partition] = number
        marks = [self.ledger.is_acknowledged(number) for number in range(self.ledger.sent)]
        present = sum(1 for there, marked in zip(seen, marks, strict=True) if there and marked)
        return Result(
            self.ledger.acknowledged, present, self.ledger.acknowledged - present, duplicates, out_of_order,
            sum(seen) - present, lag,
        )

    def close(self) -> None:
        """Stop the clients, then the broker."""
        if self._writer is not None:
            self._writer.abandon()
        for member in self._members:
            member.stopping.set()
        for thread in (self._writer, *self._members):
            if thread is not None:
                thread.join(3.0)
        self.broker.stop()

    def remove_data(self) -> None:
        import shutil

        shutil.rmtree(self.data, ignore_errors=True)
