"""Appending: idempotent, acknowledged by all replicas, each record with a result that can be waited for.

One writer is one producer of librdkafka. Delivery reports come while somebody waits (append, flush, result);
asynchronous callers get one thread that polls. A failure that nobody asked about is raised by the next flush. A
program that ends without one waits a little for what is on the way, and says on stderr what did not arrive.
"""
from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

from headwater.client import librdkafka
from headwater.client.connection import Connection
from headwater.client.record import counted, to_bytes, to_headers, to_milliseconds
from headwater.core.errors import HeadwaterError, NotFound, Unavailable, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from headwater.core.position import Position

POLL_SECONDS = 0.1  # how long one wait inside librdkafka lasts: the most that Ctrl-C has to wait
PROPAGATION_MS = 5_000  # how long a topic that the broker is just creating may stay unknown
EXIT_SECONDS = 10.0  # how long the end of a program may be held up by records that nobody waited for
_unfinished: weakref.WeakSet[Writer] = weakref.WeakSet()


class Appended:
    """The fate of one appended record: `result()` waits for the acknowledgement and returns its position."""

    __slots__ = ("_done", "_seen", "_writer", "error", "offset", "partition", "timestamp", "topic", "when_done")

    def __init__(self, writer: Writer, topic: str) -> None:
        self._writer = writer
        self.topic = topic
        self.partition = -1
        self.offset = -1
        self.timestamp = -1
        self.error: HeadwaterError | None = None
        self.when_done: Callable[[Appended], None] | None = None
        self._done = False
        self._seen = False

    @property
    def done(self) -> bool:
        return self._done

    def wait(self, timeout: float | None = None) -> Appended:
        """Until the record is acknowledged; raises what went wrong."""
        if not self._done:
            try:
                self._writer.wait_for(self, timeout)
            except HeadwaterError:
                self._seen = True  # told now: if it fails in the end, close() need not say it again
                raise
        self._seen = True
        if self.error is not None:
            raise self.error
        return self

    def result(self, timeout: float | None = None) -> Position:
        self.wait(timeout)
        return self._writer.position_of(self)

    def __repr__(self) -> str:
        state = f"offset {self.offset}" if self._done and self.error is None else self.error or "not acknowledged yet"
        return f"<Appended {self.topic}[{self.partition}] {state}>"

    def _delivered(self, error: Any, message: Any) -> None:
        self.partition = message.partition()
        if error is None:
            self.offset = message.offset()
            self.timestamp = message.timestamp()[1]
        else:
            self.error = self._writer.failure(error, self.topic, self.partition)
            self._writer.failed.append(self)
        self._done = True
        if self.when_done is not None:
            self.when_done(self)

    def unseen(self) -> bool:
        return not self._seen


class Writer:
    """A producer with a deadline; `transactional_id` makes it one for transactions."""

    def __init__(self, connection: Connection, transactional_id: str | None = None, **own: Any) -> None:
        kafka = librdkafka.load()
        connection.check()
        own.setdefault("message_timeout_ms", max(1, int(connection.timeout * 1000)))
        if transactional_id is not None:
            own["transactional_id"] = transactional_id
        self.connection = connection
        self.failed: list[Appended] = []
        self._kafka = kafka
        self._positions: dict[str, tuple[str, bytes]] = {}
        self._poller: threading.Thread | None = None
        self._closing = threading.Event()
        self._process = os.getpid()
        settings = connection.settings(
            enable_idempotence=True, acks="all", linger_ms=5, topic_metadata_propagation_max_ms=PROPAGATION_MS, **own
        )
        self.producer: Any = librdkafka.make(kafka.Producer, settings)

    def append(
        self, topic: str, value: bytes | str | None, key: bytes | str | None = None, headers: Any = None,
        timestamp: int | datetime | None = None, partition: int | None = None,
    ) -> Appended:
        appended = Appended(self, topic)
        more: dict[str, Any] = {}
        if headers:
            more["headers"] = to_headers(headers)
        if timestamp is not None:
            more["timestamp"] = to_milliseconds(timestamp)
        if partition is not None:
            more["partition"] = partition
        if type(value) is not bytes:
            value = to_bytes(value, "value")
        if type(key) is not bytes:
            key = to_bytes(key, "key")
        self.send(topic, value, key, appended._delivered, more)
        librdkafka.interruptible(self.producer.poll, 0)
        return appended

    def send(self, topic: str, value: Any, key: Any, on_delivery: Any, more: dict[str, Any]) -> None:
        """Queue one record; a full queue is waited for, up to the deadline."""
        deadline = 0.0
        while True:
            try:
                self.producer.produce(topic, value, key, on_delivery=on_delivery, **more)
            except BufferError:
                deadline = deadline or time.monotonic() + self.connection.timeout
                if time.monotonic() > deadline:
                    raise librdkafka.timed_out(
                        "append to topic", topic, self.connection.timeout, self.connection.reasons
                    ) from None
                librdkafka.interruptible(self.producer.poll, POLL_SECONDS)
            except self._kafka.KafkaException as error:
                raise self.failure(error, topic, more.get("partition", -1)) from None
            except (TypeError, ValueError, OverflowError) as error:
                raise UsageError(
                    operation="append a record", place=f"to topic {topic}", cause=str(error),
                    next_step="Check topic, partition, timestamp and headers",
                ) from None
            else:
                return

    def failure(self, error: Any, topic: str, partition: int = -1) -> HeadwaterError:
        place = f"to topic {topic} at {self.connection.address.servers}"
        found = self.connection.explain(error, "append a record", place)
        if isinstance(found, NotFound) and partition >= 0 and (count := self._partitions_of(topic)):
            cause, step = f"there is no partition {partition}", f"Its partitions are 0 to {count - 1}."
            return NotFound(found.operation, place=place, cause=cause, next_step=step)
        return found

    def _partitions_of(self, topic: str) -> int:
        try:
            return self.connection.partitions("list the topics of").get(topic, 0)
        except HeadwaterError:
            return 0  # the first failure says enough

    def wait_for(self, appended: Appended, timeout: float | None) -> None:
        seconds = self.connection.timeout if timeout is None else timeout
        deadline = time.monotonic() + seconds
        while not appended.done:
            left = deadline - time.monotonic()
            if left <= 0:
                place = f"to topic {appended.topic}"
                raise librdkafka.timed_out("append a record", place, seconds, self.connection.reasons)
            # with the polling thread on, its callbacks may win the race for this one
            librdkafka.interruptible(self.producer.poll, min(left, 0.005 if self._poller else POLL_SECONDS))

    def flush(self, timeout: float | None = None) -> None:
        """Until every record is acknowledged; raises the first failure that nobody has seen."""
        seconds = self.connection.timeout if timeout is None else timeout
        if not self._drain(seconds):
            raise Unavailable(
                operation="flush", place=self.connection.address.servers,
                cause=f"{counted(len(self.producer), 'record')} not acknowledged after {seconds:g} s{self._said()}",
                next_step=self.connection.reasons.advice,
            )
        if (error := self._first_unseen()) is not None:
            raise error

    def _drain(self, seconds: float) -> bool:
        """Whether everything was answered, well or badly, in so many seconds."""
        deadline = time.monotonic() + seconds
        while len(self.producer) and librdkafka.interruptible(self.producer.flush, POLL_SECONDS):
            if time.monotonic() > deadline:
                return False
        return True

    def _said(self) -> str:
        said = self.connection.reasons.last()
        return f" ({said})" if said else ""

    def _first_unseen(self) -> HeadwaterError | None:
        unseen = [appended.error for appended in self.failed if appended.unseen()]
        self.failed.clear()
        return unseen[0] if unseen else None

    def finish_at_exit(self, seconds: float) -> None:
        """The program ends and nobody waited: wait a little, then say what is not known to have arrived."""
        if self._process != os.getpid():
            return  # a forked child: these records are its parent's
        try:
            drained = self._drain(seconds)
        except KeyboardInterrupt:
            drained = False
        if not drained:
            left = counted(len(self.producer), "record")
            _complain(f"the program ends, and {left} may be lost: not acknowledged by "
                      f"{self.connection.address.servers}{self._said()}. Wait with .result(), flush() or a with block.")
        elif (error := self._first_unseen()) is not None:
            _complain(f"the program ends, and a record was refused: {error}")

    def position_of(self, appended: Appended) -> Position:
        from headwater.client.topics import topic_ids
        from headwater.core.position import Position

        topic = appended.topic
        if topic not in self._positions:
            ids = topic_ids(self.connection, {topic})
            self._positions[topic] = (self.connection.cluster_id(), ids[topic])
        cluster_id, topic_id = self._positions[topic]
        return Position(cluster_id, topic_id, appended.partition, -1, appended.offset)

    def poll_in_background(self) -> None:
        """Delivery reports without anybody waiting: for callers on an event loop."""
        if self._poller is None:
            self._poller = threading.Thread(target=self._poll, name="headwater-writer", daemon=True)
            self._poller.start()

    def _poll(self) -> None:
        while not self._closing.is_set():
            self.producer.poll(POLL_SECONDS)

    def close(self, timeout: float | None = None) -> None:
        try:
            self.flush(timeout)
        finally:
            _unfinished.discard(self)
            self._closing.set()


def watch_exit(writer: Writer) -> None:
    """From now on the end of the program waits for this writer's records."""
    import atexit

    # last in, first out: before the broker is let go of that these records go to
    atexit.unregister(_finish_all)
    atexit.register(_finish_all)
    _unfinished.add(writer)


def _finish_all() -> None:
    deadline = time.monotonic() + EXIT_SECONDS
    for writer in list(_unfinished):
        writer.finish_at_exit(max(deadline - time.monotonic(), 0.0))


def _complain(text: str) -> None:
    try:
        sys.stderr.write(f"headwater: {text}\n")
    except (OSError, ValueError, AttributeError):
        pass  # stderr is closed: there is nobody to tell
