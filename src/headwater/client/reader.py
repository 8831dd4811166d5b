"""Reading: a bounded or endless iterator of records, alone (assigned) or as a member of a group (subscribed).

Alone it starts where it is told; in a group where the group stands. `until` makes it end: at the end that the log
had when the reading began, at an offset, at a time. Only committed records are seen unless asked otherwise. In a
group a record counts as processed when the next batch is asked for, or the reading ends without an exception: after
a crash some come twice, none is lost.
"""
from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from headwater.client import librdkafka, offsets
from headwater.client.address import command, probe
from headwater.client.connection import Connection, Partition
from headwater.client.record import Record, from_message, to_milliseconds
from headwater.core.errors import Unavailable, UsageError

BATCH_RECORDS = 500  # what is taken from librdkafka's queue at a time
POLL_SECONDS = 0.1  # one wait inside librdkafka: the most that Ctrl-C or a cancellation has to wait
SETTLE_SECONDS = 5.0  # longer than Kafka's group.initial.rebalance.delay.ms
LEAVE_SECONDS = 2.0  # leaving the group politely; afterwards the group's session timeout does it
BOUNDED_WAIT_MS = 20  # the broker's long poll when a reading ends at the end: it tells where that is


class Reader(Iterator[Record]):
    """An iterator of records; close it, leave its `with` block, or read to its end."""

    def __init__(
        self, connection: Connection, topics: list[str], *, start: Any = "earliest", until: Any = None,
        partitions: list[int] | None = None, group: str | None = None, commit: bool = True,
        committed: bool = True, timeout: float | None = None,
    ) -> None:
        self.connection = connection
        self.topics = topics
        self.group = group
        self.commits = group is not None and commit
        self.timeout = timeout
        self.next_offsets: dict[Partition, int] = {}  # after the last record handed out, per partition
        self._buffer: deque[Record] = deque()
        self._handed: Record | None = None  # the last record handed out
        self._ends: dict[Partition, int] = {}
        self._open: set[Partition] | None = None  # partitions that have not reached their end; None: not assigned
        self._behind: set[Partition] | None = None  # partitions whose end has not been seen; None: not assigned
        self.bounded = until is not None
        self._closed = False
        self._last_progress = time.monotonic()
        self._kafka = librdkafka.load()
        self.consumer: Any = None
        if group is None:
            self._assign(start, until, partitions, committed)
        else:
            self._subscribe(group, start, until, partitions, committed)

    # -- beginning

    def _assign(self, start: Any, until: Any, partitions: list[int] | None, committed: bool) -> None:
        _refuse_backwards(start, until)
        wanted = self._partitions(partitions)
        # the end first: a reading that begins at its own end is over, however much is written meanwhile
        if until is not None:
            self._ends = offsets.resolve(self.connection, wanted, until, committed)
        begin = offsets.resolve(self.connection, wanted, start, committed)
        if self.bounded:
            begin = {place: offset for place, offset in begin.items() if offset < self._ends[place]}
            self._open = set(begin)
        self.next_offsets = dict(begin)
        self._behind = set(begin)
        if self.bounded and not begin:
            return
        self._make_consumer("headwater", "error", committed)
        assignment = [self._kafka.TopicPartition(topic, index, offset) for (topic, index), offset in begin.items()]
        self.consumer.assign(assignment)

    def _subscribe(
        self, group: str, start: Any, until: Any, partitions: list[int] | None, committed: bool
    ) -> None:
        resets = {"earliest": "earliest", "beginning": "earliest", "latest": "latest", "end": "latest"}
        if partitions is not None or start not in resets or until not in (None, "latest", "end"):
            raise UsageError(
                operation="read in group", place=group,
                cause="a group keeps its own offsets and shares out the partitions itself",
                next_step=f"Move it with: {command()} groups reset {group} --to …, or read without a group",
            )
        self.connection.require_topics(self.topics, "read")
        self._make_consumer(group, resets[start], committed)
        self.consumer.subscribe(self.topics, on_assign=self._assigned, on_revoke=self._revoked)

    def _partitions(self, chosen: list[int] | None) -> list[Partition]:
        counts = self.connection.require_topics(self.topics, "read")
        for topic, count in counts.items():
            for index in chosen or ():
                if not 0 <= index < count:
                    raise UsageError(
                        operation="read", place=f"topic {topic}", cause=f"there is no partition {index}",
                        next_step=f"Its partitions are 0 to {count - 1}",
                    )
        return [
            (topic, index) for topic, count in counts.items()
            for index in (range(count) if chosen is None else sorted(set(chosen)))
        ]

    def _make_consumer(self, group: str, reset: str, committed: bool) -> None:
        settings = self.connection.settings(
            group_id=group,
            enable_auto_commit=self.commits,
            enable_auto_offset_store=False,
            auto_commit_interval_ms=1_000,
            auto_offset_reset=reset,
            isolation_level="read_committed" if committed else "read_uncommitted",
            enable_partition_eof=True,
            check_crcs=True,
            fetch_wait_max_ms=BOUNDED_WAIT_MS if self.bounded else 500,
        )
        self.consumer = librdkafka.make(self._kafka.Consumer, settings)

    def _assigned(self, _consumer: Any, partitions: list[Any]) -> None:
        places = {(part.topic, part.partition) for part in partitions}
        self._behind = (self._behind or set()) | places
        if self.bounded:
            self._open = (self._open or set()) | places

    def _revoked(self, _consumer: Any, partitions: list[Any]) -> None:
        for part in partitions:
            place = (part.topic, part.partition)
            self.next_offsets.pop(place, None)
            for places in (self._open, self._behind):
                if places is not None:
                    places.discard(place)

    # -- reading

    def __iter__(self) -> Reader:
        return self

    def __next__(self) -> Record:
        while not self._buffer:
            if self.finished:
                self.close()
                raise StopIteration
            self._buffer.extend(self.take())
            if not self._buffer and self.timeout is not None:
                self.give_up_when_idle(self.timeout)
        record = self._buffer.popleft()
        self.mark([record])
        return record

    @property
    def finished(self) -> bool:
        """Nothing more will come: closed, or every partition has reached its end."""
        return self._closed or (self.bounded and self._open is not None and not self._open)

    @property
    def caught_up(self) -> bool:
        """The end of every partition has been seen: what comes from now on is new."""
        return self._behind is not None and not self._behind

    def take(self, wait: float = POLL_SECONDS, records_max: int = BATCH_RECORDS) -> list[Record]:
        """The records that are there, after at most `wait` seconds; maybe none."""
        self._store()
        kafka_error = self._kafka.KafkaException
        try:
            first = librdkafka.interruptible(self.consumer.poll, wait)
            more = [] if first is None else librdkafka.interruptible(self.consumer.consume, records_max - 1, 0)
            messages = [] if first is None else [first, *more]
        except kafka_error as error:
            raise self.connection.explain(error, "read topic", ", ".join(self.topics)) from None
        found = [record for message in messages if (record := self._accept(message)) is not None]
        if messages:
            self._last_progress = time.monotonic()
        else:
            self._check_silence()
        return found

    def mark(self, records: list[Record]) -> None:
        """For those who take batches: these records have been handed on."""
        for record in records:
            self.next_offsets[record.topic, record.partition] = record.offset + 1
        self._handed = records[-1]

    def take_back(self) -> None:
        """Whoever got the last record failed over it: the group comes back to it."""
        handed, self._handed = self._handed, None
        if handed is not None and (handed.topic, handed.partition) in self.next_offsets:
            self.next_offsets[handed.topic, handed.partition] = handed.offset

    def _accept(self, message: Any) -> Record | None:
        error = message.error()
        if error is None:
            offset = message.offset()
            end = self._ends.get((message.topic(), message.partition()))
            if end is not None and offset >= end - 1:
                self._finish((message.topic(), message.partition()))
                if offset >= end:
                    return None
            return from_message(message)
        if error.code() == self._kafka.KafkaError._PARTITION_EOF:
            if self._behind is not None:
                self._behind.discard((message.topic(), message.partition()))
            self._finish((message.topic(), message.partition()))
            return None
        place = f"{message.topic()}, partition {message.partition()}" if message.topic() else ", ".join(self.topics)
        raise self.connection.explain(error, "read topic", place)

    def _finish(self, place: Partition) -> None:
        if self._open is not None:
            self._open.discard(place)
            if self.group is None:
                topic, index = place
                self.consumer.pause([self._kafka.TopicPartition(topic, index)])

    def _check_silence(self) -> None:
        """An endless reading waits for records as long as somebody listens; a bounded one must move."""
        silent = time.monotonic() - self._last_progress
        if silent < self.connection.timeout:
            return
        if self.bounded:
            raise librdkafka.timed_out(
                "read topic", ", ".join(self.topics), self.connection.timeout, self.connection.reasons
            )
        if self.connection.reasons.last() is not None:
            probe(self.connection.address)
            self.connection.reasons.lines.clear()
        self._last_progress = time.monotonic()

    def give_up_when_idle(self, seconds: float) -> None:
        if time.monotonic() - self._last_progress > seconds and not self.finished:
            raise Unavailable(
                operation="read topic", place=", ".join(self.topics), cause=f"no record came for {seconds:g} s",
                next_step='Wait longer (timeout), or stop at the end with until="latest"',
            )

    # -- a group's progress

    def _store(self) -> None:
        if self.commits and self.next_offsets and self.consumer is not None:
            try:
                self.consumer.store_offsets(offsets=self.progress())
            except self._kafka.KafkaException:
                pass  # a partition that was just taken away: whoever has it now commits for it

    def progress(self) -> list[Any]:
        """The offset after the last record handed out, per partition, in librdkafka's form."""
        position = self._kafka.TopicPartition
        return [position(topic, index, offset) for (topic, index), offset in self.next_offsets.items()]

    def commit(self, timeout: float | None = None) -> None:
        """Make the group's progress durable now."""
        if self.group is None:
            raise UsageError(
                operation="commit", place=", ".join(self.topics), cause="this reading has no group",
                next_step='Give one: read(…, group="name")',
            )
        if self.next_offsets:
            self.connection.call(
                lambda: self.consumer.commit(offsets=self.progress(), asynchronous=False),
                "commit the offsets of group", self.group, timeout,
            )

    def close(self) -> None:
        """Leave the group after committing; safe to call twice."""
        if self._closed:
            return
        self._closed = True
        if self.consumer is None or self.connection.forked:
            return
        self._store()
        self._settle()
        consumer = self.consumer
        try:
            librdkafka.bounded(
                consumer.close, LEAVE_SECONDS, "leave group", str(self.group), self.connection.reasons, grace=0
            )
        except Unavailable:
            pass  # the broker is away: its session timeout ends this member

    def _settle(self) -> None:
        """Wait for the first assignment: one that arrives during close() stops librdkafka 2.16 for good, and the
        whole interpreter with it, since confluent-kafka holds its lock there."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while self.group is not None and self._behind is None and time.monotonic() < deadline:
            librdkafka.interruptible(self.consumer.poll, 0.05)

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.take_back()
        self.close()


def _refuse_backwards(start: Any, until: Any) -> None:
    """An end before the beginning is a slip, not an empty reading; offsets from the end compare among themselves."""
    if type(start) is int and type(until) is int:
        backwards = (start < 0) == (until < 0) and until < start
    elif isinstance(start, datetime) and isinstance(until, datetime):
        backwards = (to_milliseconds(until) or 0) < (to_milliseconds(start) or 0)
    else:
        return
    if backwards:
        raise UsageError(
            operation="read", place="from there",
            cause=f"the end ({_written(until)}) lies before the beginning ({_written(start)})",
            next_step="Exchange them",
        )


def _written(place: int | datetime) -> str:
    return str(place) if isinstance(place, int) else place.isoformat(" ", "seconds")
