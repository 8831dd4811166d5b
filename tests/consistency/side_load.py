"""What goes on beside the checked topic while the broker is killed: retention, topics that come and go, commits.

    ages     an idempotent writer to a topic from which old segments are removed all the time: what is left has no
             hole, nothing twice, and everything acknowledged that is not older than its start
    passes   a topic is made, written to and deleted, again and again under one name: each is a new one, from offset 0
    commits  a group's offset only goes up: it is never older than the last commit that was acknowledged or seen

What is wrong is a line in `problems`.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

AGES, PASSES, COMMITS = "ages", "passes", "commits"
SECONDS_MAX = 60.0
RETENTION = {"retention.ms": "1500", "internal.segment.bytes": "20000"}


class SideLoad:
    def __init__(self, address: str, seed: int) -> None:
        self.address, self.seed = address, seed
        self.problems: list[str] = []
        self.acknowledged: dict[int, bytes] = {}  # of AGES, by offset
        self.highest_start = self.end = 0  # of AGES, when all is over
        self.rounds = self.commits = 0
        self.told = self.asked = -1  # committed offset of COMMITS
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._guarded, args=(run, random.Random(f"{seed}/{run.__name__}")))
            for run in (self._ages, self._passes, self._commits)
        ]

    def start(self) -> None:
        admin = AdminClient(self._config())
        wanted = [NewTopic(AGES, 1, config=RETENTION), NewTopic(COMMITS, 1)]
        for made in admin.create_topics(wanted).values():
            made.result(SECONDS_MAX)
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(SECONDS_MAX * 3)
            if thread.is_alive():
                self.problems.append(f"{thread.name} hangs")
        self._look_at_commits()
        self._wait_for_retention()
        self._read_what_is_left()

    def _guarded(self, run: Callable[[random.Random], None], chance: random.Random) -> None:
        try:
            run(chance)
        except Exception as error:  # a client that dies is a finding, not a reason to hang
            self.problems.append(f"{run.__name__} ended: {error!r}")

    def _config(self, **more: Any) -> dict[str, Any]:
        own = {"bootstrap.servers": self.address, "reconnect.backoff.max.ms": 200, "log_level": 0,
               "error_cb": lambda _: None}  # fmt: skip
        return own | {name.replace("_", "."): value for name, value in more.items()}

    # retention

    def _ages(self, chance: random.Random) -> None:
        producer = Producer(self._config(enable_idempotence=True, linger_ms=2, message_timeout_ms=120_000))
        number = 0
        while not self._stop.is_set():
            for _ in range(chance.randrange(1, 10)):
                value = b"%d|" % number + chance.randbytes(200)
                producer.produce(AGES, value, partition=0, on_delivery=self._delivered)
                number += 1
            producer.poll(0.01 + chance.random() * 0.02)
        producer.flush(SECONDS_MAX * 2)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.problems.append(f"{AGES}: not delivered: {error}")
            return
        before = self.acknowledged.setdefault(message.offset(), message.value())
        if before != message.value():
            self.problems.append(f"{AGES}: offset {message.offset()} was given twice")

    def _wait_for_retention(self) -> None:
        """A writer that could not reach the broker for long wrote everything at the end: its time will come."""
        consumer = Consumer(self._config(group_id="unused"))
        deadline = time.monotonic() + SECONDS_MAX
        while _watermarks(consumer)[0] == 0:
            if time.monotonic() > deadline:
                self.problems.append(f"{AGES}: nothing is ever removed")
                break
            threading.Event().wait(0.1)
        consumer.close()

    def _read_what_is_left(self) -> None:
        consumer = Consumer(self._config(group_id="unused", auto_offset_reset="error"))
        start, end = _watermarks(consumer)
        self.highest_start, self.end = start, end
        left: dict[int, bytes] = {}
        consumer.assign([TopicPartition(AGES, 0, start)])
        deadline = time.monotonic() + SECONDS_MAX
        while len(left) < end - start and time.monotonic() < deadline:
            for message in consumer.consume(500, 0.2):
                if message.error() is None:
                    left[message.offset()] = message.value()
                elif message.error().code() == KafkaError._AUTO_OFFSET_RESET:  # retention was faster than we are
                    return self._again(consumer)
        consumer.close()
        self.problems += compare(left, self.acknowledged, start, end)

    def _again(self, consumer: Consumer) -> None:
        consumer.close()
        self._read_what_is_left()

    # topics that come and go

    def _passes(self, chance: random.Random) -> None:
        admin = AdminClient(self._config())
        while not self._stop.is_set():
            if not _until_done(lambda: admin.create_topics([NewTopic(PASSES, 1)])[PASSES],
                               KafkaError.TOPIC_ALREADY_EXISTS, self._stop):  # fmt: skip
                return
            producer = Producer(self._config(enable_idempotence=True, message_timeout_ms=120_000))
            offsets: list[int] = []

            def delivered(error: KafkaError | None, message: Message, to: list[int] = offsets) -> None:
                to.append(-1 if error else message.offset())

            for number in range(chance.randrange(1, 30)):
                producer.produce(PASSES, b"%d" % number, partition=0, on_delivery=delivered)
            producer.flush(SECONDS_MAX * 2)
            if offsets != list(range(len(offsets))):
                self.problems.append(f"{PASSES}: a new topic does not begin at 0 and go on by 1: {offsets}")
            if not _until_done(lambda: admin.delete_topics([PASSES])[PASSES],
                               KafkaError.UNKNOWN_TOPIC_OR_PART, self._stop):  # fmt: skip
                return
            self.rounds += 1

    # a group's offset

    def _commits(self, chance: random.Random) -> None:
        while not self._stop.is_set():
            consumer = Consumer(self._config(group_id=COMMITS, enable_auto_commit=False))
            for _ in range(chance.randrange(5, 60)):
                if self._stop.is_set():
                    break
                self._commit(consumer)
                if chance.random() < 0.3:
                    self._look(consumer)
            consumer.close()

    def _commit(self, consumer: Consumer) -> None:
        self.asked += 1
        value = self.asked
        try:
            consumer.commit(offsets=[TopicPartition(COMMITS, 0, value)], asynchronous=False)
        except KafkaException:
            self._stop.wait(0.02)  # nobody knows; the next one is higher in any case
            return
        self.told = max(self.told, value)
        self.commits += 1

    def _look(self, consumer: Consumer) -> None:
        told = self.told
        try:
            (place,) = consumer.committed([TopicPartition(COMMITS, 0)], timeout=5)
        except KafkaException:
            return
        if place.error is not None:
            return
        if not max(told, 0) <= place.offset <= self.asked and not (told < 0 and place.offset < 0):
            self.problems.append(f"{COMMITS}: the group is at {place.offset}, told {told}, asked {self.asked}")
        self.told = max(self.told, place.offset)

    def _look_at_commits(self) -> None:
        consumer = Consumer(self._config(group_id=COMMITS, enable_auto_commit=False))
        (place,) = consumer.committed([TopicPartition(COMMITS, 0)], timeout=SECONDS_MAX)
        if not self.told <= place.offset <= self.asked:
            self.problems.append(f"{COMMITS}: in the end at {place.offset}, told {self.told}, asked {self.asked}")
        consumer.close()


def compare(left: dict[int, bytes], acknowledged: dict[int, bytes], start: int, end: int) -> list[str]:
    """What is wrong with a partition of one idempotent writer that sent values 0|…, 1|…, 2|…, in order."""
    wrong = []
    if sorted(left) != list(range(start, end)):
        missing = sorted(set(range(start, end)) - set(left))
        wrong.append(f"{AGES}: offsets {missing[:5]} of {start}..{end} are missing")
    for offset, value in acknowledged.items():
        if offset >= start and left.get(offset) != value:
            wrong.append(f"{AGES}: offset {offset} was acknowledged and is {'other' if offset in left else 'gone'}")
    for offset, value in left.items():
        if int(value.partition(b"|")[0]) != offset:
            wrong.append(f"{AGES}: number {value.partition(b'|')[0]!r} stands at {offset}")
    return wrong[:5]


def _watermarks(consumer: Consumer) -> tuple[int, int]:
    """Log start and end. A client that has just met the broker may not know the partition yet."""
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        try:
            start, end = consumer.get_watermark_offsets(TopicPartition(AGES, 0), 10)
            return int(start), int(end)
        except KafkaException:
            if time.monotonic() > deadline:
                raise
            threading.Event().wait(0.1)


def _until_done(ask: Callable[[], Any], also: int, stop: threading.Event) -> bool:
    """The broker may die at any moment: ask again until it is so. False if it is time to stop."""
    while not stop.is_set():
        try:
            ask().result(10)
            return True
        except KafkaException as error:
            if error.args[0].code() == also:
                return True  # it was done, and the answer was lost
            stop.wait(0.05)
    return False
