"""Transactions: records of several topics, and the progress of a reader, all or nothing.

A block that ends well commits, one that raises aborts. The transactional id fences: who takes it over ends what its
former holder left open. A commit whose answer does not come is an error that says that the outcome is not known.
"""
from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from headwater.client import librdkafka
from headwater.client.connection import Connection
from headwater.client.writer import Appended, Writer
from headwater.core.errors import HeadwaterError, Unavailable, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from headwater.client.reader import Reader

ABORT_SECONDS = 10.0  # an abort that is not answered leaves the rest to the broker's transaction timeout


class TransactionalWriter:
    """The producer behind one transactional id; made once, used by one transaction after another."""

    def __init__(self, connection: Connection, transactional_id: str) -> None:
        self.connection = connection
        self.transactional_id = transactional_id
        self.writer = Writer(connection, transactional_id)
        self.broken = False
        producer = self.writer.producer
        self.step("start transactions as", lambda: producer.init_transactions(connection.timeout))

    def step(self, operation: str, call: Any, timeout: float | None = None) -> None:
        """One call of librdkafka's transactional API; those that may be tried again are, until the deadline."""
        seconds = self.connection.timeout if timeout is None else timeout
        deadline = time.monotonic() + seconds
        kafka = librdkafka.load()
        while True:
            left = max(deadline - time.monotonic(), 0.0)
            try:
                self._bounded(operation, call, left)
            except kafka.KafkaException as error:
                cause = error.args[0]
                if cause.retriable() and time.monotonic() < deadline:
                    continue
                self.broken = self.broken or cause.fatal()
                raise self.connection.explain(error, operation, self.transactional_id) from None
            return

    def _bounded(self, operation: str, call: Any, seconds: float) -> None:
        """`Connection.call` explains at once; here the error itself decides whether to go on."""
        kafka = librdkafka.load()
        raised: list[Any] = []

        def run() -> None:
            try:
                call()
            except kafka.KafkaException as error:
                raised.append(error)

        try:
            self.connection.call(run, operation, self.transactional_id, seconds)
        except Unavailable:
            # librdkafka is stuck in the call (send_offsets_to_transaction is known for it): never touch it again
            self.broken = True
            raise
        if raised:
            raise raised[0]


class Transaction:
    """One transaction, begun when its block is entered."""

    def __init__(self, find: Callable[[], TransactionalWriter]) -> None:
        self._find = find
        self._found: TransactionalWriter | None = None
        self._begun = False

    @property
    def _producer(self) -> TransactionalWriter:
        assert self._found is not None
        return self._found

    def append(
        self, topic: str, value: bytes | str | None, key: bytes | str | None = None, *, headers: Any = None,
        timestamp: int | datetime | None = None, partition: int | None = None,
    ) -> Appended:
        self._require_begun()
        return self._producer.writer.append(topic, value, key, headers, timestamp, partition)

    def send_offsets(self, reader: Reader) -> None:
        """Make the reader's progress part of this transaction: everything it has handed out so far."""
        self._require_begun()
        if reader.group is None or reader.commits:
            raise UsageError(
                "make a reader's progress part of a transaction",
                cause="the reader has no group" if reader.group is None else "the reader commits by itself",
                next_step='Read with read(…, group="name", commit=False).',
            )
        timeout = self._producer.connection.timeout
        producer = self._producer.writer.producer
        metadata = reader.consumer.consumer_group_metadata()
        self._producer.step(
            "send the offsets of a transaction as",
            lambda: producer.send_offsets_to_transaction(reader.progress(), metadata, timeout),
        )

    def _require_begun(self) -> None:
        if not self._begun:
            raise UsageError(
                "use a transaction", cause="it is not open", next_step="Use it inside its with block.",
            )

    def begin(self) -> None:
        self._found = self._find()
        producer = self._producer.writer.producer
        self._producer.step("begin a transaction as", producer.begin_transaction)
        self._begun = True

    def commit(self) -> None:
        producer = self._producer.writer.producer
        timeout = self._producer.connection.timeout
        self._begun = False
        try:
            self._producer.step("commit the transaction of", lambda: producer.commit_transaction(timeout))
        except Unavailable as error:
            self._producer.broken = True
            raise Unavailable(
                error.operation, place=error.place, cause=f"{error.cause}; whether it was committed is not known",
                next_step="Read the topics with read_committed to see, then go on under the same transactional id.",
            ) from None
        except HeadwaterError:
            self._abort_quietly()
            raise
        self._producer.writer.failed.clear()

    def abort(self) -> None:
        producer = self._producer.writer.producer
        self._begun = False
        self._producer.step(
            "abort the transaction of", lambda: producer.abort_transaction(ABORT_SECONDS), ABORT_SECONDS
        )
        self._producer.writer.failed.clear()

    def _abort_quietly(self) -> None:
        if self._producer.broken:
            return
        try:
            self.abort()
        except HeadwaterError:
            self._producer.broken = True  # the next user of the id fences and aborts it

    def __enter__(self) -> Transaction:
        self.begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.commit()
        elif self._begun:
            self._abort_quietly()

    async def __aenter__(self) -> Transaction:
        import asyncio

        await asyncio.to_thread(self.begin)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        import asyncio

        await asyncio.to_thread(self.__exit__, kind)
