"""Real clients against a broker that is killed again and again; what they saw becomes a history for the checker.

Idempotent writers, transactional writers (commits and aborts), readers that hold partitions and readers in a
group run as threads over librdkafka. The seed decides what they do; the scheduler decides when.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.consistency.checker import Event, Partition, Read, Sent

PARTITIONS = 3
CALL_SECONDS_MAX = 60.0


class Workload:
    """All clients of one run. `values` are unique over all of them."""

    def __init__(self, address: str, seed: int, topic: str = "t") -> None:
        self.address, self.seed, self.topic = address, seed, topic
        self.history: list[Event] = []
        self.problems: list[str] = []
        self._values = itertools.count()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def make_topic(self) -> None:
        admin = AdminClient(self._config())
        admin.create_topics([NewTopic(self.topic, PARTITIONS)])[self.topic].result(CALL_SECONDS_MAX)

    def start(self, writers: int = 2, transactional: int = 2, readers: int = 2, group: int = 2) -> None:
        kinds: list[tuple[str, int, Callable[[str, random.Random], None]]] = [
            ("writer", writers, self._write),
            ("txn", transactional, self._transact),
            ("reader", readers, self._read_assigned),
            ("member", group, self._read_in_group),
        ]
        for kind, count, run in kinds:
            for number in range(count):
                name = f"{kind}-{number}"
                chance = random.Random(f"{self.seed}/{name}")
                self._threads.append(
                    threading.Thread(target=self._guarded, args=(run, name, chance), name=name)
                )
        for thread in self._threads:
            thread.start()

    def finish(self) -> list[Event]:
        """Stops the clients, reads everything once more, returns the history in order of time."""
        self._stop.set()
        for thread in self._threads:
            thread.join(CALL_SECONDS_MAX * 3)
            if thread.is_alive():
                self.problems.append(f"{thread.name} hangs")
        self.history.append(self._final())
        return sorted(self.history, key=lambda event: event.end)

    def _guarded(self, run: Callable[[str, random.Random], None], name: str, chance: random.Random) -> None:
        try:
            run(name, chance)
        except Exception as error:  # a client that dies is a finding, not a reason to hang
            self.problems.append(f"{name} ended: {error!r}")

    def _config(self, **more: Any) -> dict[str, Any]:
        own = {"bootstrap.servers": self.address, "reconnect.backoff.max.ms": 200, "log_level": 0,
               "error_cb": lambda _: None}  # fmt: skip
        return own | {name.replace("_", "."): value for name, value in more.items()}

    def _note(self, event: Event) -> None:
        with self._lock:
            self.history.append(event)

    # writers

    def _write(self, name: str, chance: random.Random) -> None:
        producer = Producer(self._config(enable_idempotence=True, linger_ms=2, message_timeout_ms=120_000))
        while not self._stop.is_set():
            for _ in range(chance.randrange(1, 20)):
                self._send(producer, name, chance)
            producer.poll(chance.random() * 0.02)
        producer.flush(CALL_SECONDS_MAX * 2)

    def _send(self, producer: Producer, name: str, chance: random.Random) -> None:
        value, partition, begin = next(self._values), chance.randrange(PARTITIONS), time.monotonic()

        def delivered(error: KafkaError | None, message: Message) -> None:
            place = (self.topic, partition)
            sent = Sent(place, value, None if error else message.offset())
            outcome = "info" if error else "ok"
            self._note(Event("send", outcome, f"{name}/{value}", begin, time.monotonic(), (sent,)))

        producer.produce(self.topic, str(value).encode(), partition=partition, on_delivery=delivered)

    def _transact(self, name: str, chance: random.Random) -> None:
        while not self._stop.is_set():
            producer = Producer(
                self._config(transactional_id=name, linger_ms=2, transaction_timeout_ms=30_000)
            )
            producer.init_transactions(CALL_SECONDS_MAX)
            while not self._stop.is_set():
                if not self._one_transaction(producer, name, chance):
                    break  # fenced or lost: begin again as a new producer

    def _one_transaction(self, producer: Producer, name: str, chance: random.Random) -> bool:
        sent: dict[int, Sent] = {}
        begin = time.monotonic()
        producer.begin_transaction()
        for _ in range(chance.randrange(1, 12)):
            value, partition = next(self._values), chance.randrange(PARTITIONS)
            sent[value] = Sent((self.topic, partition), value, None)

            def delivered(error: KafkaError | None, message: Message, value: int = value) -> None:
                if error is None:
                    sent[value] = sent[value]._replace(offset=message.offset())

            producer.produce(self.topic, str(value).encode(), partition=partition, on_delivery=delivered)
        wants_commit = chance.random() < 0.7
        commit_begin = time.monotonic()
        outcome = _ended(producer, wants_commit)
        end = time.monotonic()
        for value, one in sent.items():
            self._note(
                Event("send", outcome, f"{name}/{value}", begin, end, (one,), commit_begin=commit_begin)
            )
        return outcome != "info"

    # readers

    def _read_assigned(self, name: str, chance: random.Random) -> None:
        while not self._stop.is_set():
            consumer = self._consumer(f"{name}-unused")
            consumer.assign([TopicPartition(self.topic, number, 0) for number in range(PARTITIONS)])
            fresh, until = True, time.monotonic() + 1 + chance.random() * 4
            while not self._stop.is_set() and time.monotonic() < until:
                fresh = self._poll(consumer, name, fresh) and fresh
            consumer.close()

    def _read_in_group(self, name: str, chance: random.Random) -> None:
        while not self._stop.is_set():
            consumer = self._consumer("members", session_timeout_ms=6000, auto_commit_interval_ms=200)
            state = {"fresh": True}
            consumer.subscribe([self.topic], on_assign=lambda *_, state=state: state.update(fresh=True))
            until = time.monotonic() + 2 + chance.random() * 5
            while not self._stop.is_set() and time.monotonic() < until:
                begin = time.monotonic()
                reads = _messages(consumer, 200, 0.1)
                self._note_poll("poll", name, begin, reads, fresh=state["fresh"])
                state["fresh"] = False if reads else state["fresh"]
            _settle(consumer)
            consumer.close()

    def _poll(self, consumer: Consumer, name: str, fresh: bool) -> bool:
        begin = time.monotonic()
        reads = _messages(consumer, 500, 0.1)
        self._note_poll("poll", name, begin, reads, fresh=fresh)
        return not reads

    def _note_poll(self, kind: str, name: str, begin: float, reads: tuple[Read, ...], *, fresh: bool) -> None:
        if reads:
            self._note(Event(kind, "ok", name, begin, time.monotonic(), read=reads, fresh=fresh))

    def _consumer(self, group: str, **more: Any) -> Consumer:
        return Consumer(self._config(group_id=group, auto_offset_reset="earliest", isolation_level="read_committed",
                                     enable_auto_commit=True, **more))  # fmt: skip

    def _final(self) -> Event:
        """Everything that is committed, from every partition, to its end."""
        consumer = self._consumer("final")
        ends: dict[Partition, int] = {}
        for number in range(PARTITIONS):
            place = TopicPartition(self.topic, number, 0)
            ends[self.topic, number] = consumer.get_watermark_offsets(place, CALL_SECONDS_MAX)[1]
        begin = time.monotonic()
        consumer.assign([TopicPartition(self.topic, number, 0) for number in range(PARTITIONS)])
        reads: list[Read] = []
        deadline = begin + CALL_SECONDS_MAX
        while time.monotonic() < deadline:
            reads += _messages(consumer, 1000, 0.2)
            at = {
                (place.topic, place.partition): place.offset
                for place in consumer.position(list(_places(ends)))
            }
            if all(at[place] >= end for place, end in ends.items() if end):
                break
        else:
            self.problems.append(f"the final read did not reach the end: {ends}")
        consumer.close()
        return Event("final", "ok", "final", begin, time.monotonic(), read=tuple(reads), fresh=True)


def _settle(consumer: Consumer) -> None:
    """An assignment that arrives during close() stops librdkafka 2.16, and Python with it: let it come before."""
    deadline = time.monotonic() + 10
    while not consumer.assignment() and time.monotonic() < deadline:
        consumer.poll(0.1)


def _places(ends: dict[Partition, int]) -> Iterator[TopicPartition]:
    return (TopicPartition(topic, number) for topic, number in ends)


def _messages(consumer: Consumer, count: int, seconds: float) -> tuple[Read, ...]:
    found = []
    for message in consumer.consume(count, seconds):
        if message.error() is None:
            found.append(Read((message.topic(), message.partition()), message.offset(), int(message.value())))
    return tuple(found)


def _ended(producer: Producer, wants_commit: bool) -> str:
    """Commits or aborts, as often as the client says that it may be tried again."""
    for _ in range(20):
        try:
            if wants_commit:
                producer.commit_transaction(CALL_SECONDS_MAX)
                return "ok"
            producer.abort_transaction(CALL_SECONDS_MAX)
            return "fail"
        except KafkaException as error:
            cause = error.args[0]
            if cause.fatal():
                return "info"
            if cause.txn_requires_abort():
                wants_commit = False
            elif not cause.retriable():
                return "info"
    return "info"
