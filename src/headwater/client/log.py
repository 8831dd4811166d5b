"""The log as an application sees it: append, read, transaction, topics, groups, positions; blocking or async.

`headwater.open("./data")` starts or joins a broker, `headwater.open("host:9092")` uses any Kafka. Opening is lazy:
the `with` (or the first use) starts, joins or connects, and only the first use loads librdkafka.
"""
from __future__ import annotations

import os
import weakref
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from headwater.client.address import DEFAULT_DATA, Address, is_servers, refuse_host, resolve
from headwater.client.connection import TIMEOUT_SECONDS, Connection
from headwater.core.errors import HeadwaterError, UsageError

if TYPE_CHECKING:
    from datetime import datetime

    from headwater.client.asynchronous import AsyncReader
    from headwater.client.groups import Groups
    from headwater.client.reader import Reader
    from headwater.client.record import Record
    from headwater.client.topics import Topics
    from headwater.client.transaction import Transaction, TransactionalWriter
    from headwater.client.writer import Appended, Writer
    from headwater.core.position import Position
    from headwater.core.processes import SharedBroker


class Log:
    """One log. Use it as a context manager, blocking or async; `close()` does the same."""

    def __init__(
        self, log: str | os.PathLike[str] | None = None, *, timeout: float = TIMEOUT_SECONDS,
        options: Mapping[str, str] | None = None,
    ) -> None:
        where = None if log is None else os.fspath(log)
        if where == "":
            raise UsageError(
                "open a log", cause="its name is empty",
                next_step='Give a directory ("./data") or an address ("host:9092").',
            )
        if where is not None:
            refuse_host(where)
        self._where = where
        self._timeout = timeout
        self._options = dict(options or {})
        self._connection: Connection | None = None
        self._broker: SharedBroker | None = None
        self._writer: Writer | None = None
        self._transactional: dict[str, TransactionalWriter] = {}
        self._readers: weakref.WeakSet[Reader] = weakref.WeakSet()
        self._cluster_id: str | None = None
        self._closed = False

    # -- where

    @property
    def connection(self) -> Connection:
        """The connection; the first use starts or joins the broker."""
        if self._closed:
            raise UsageError("use this log", cause="it is closed", next_step="Open it again.")
        if self._connection is None:
            address = self._locate()
            self._connection = Connection(address, self._options, self._timeout)
            if self._broker is not None:
                self._connection.reasons.advise(reopen(address))
                # for who never calls close(): when nothing uses it any more, at the latest when the program ends
                weakref.finalize(self._connection, self._broker.leave)
        return self._connection

    def _locate(self) -> Address:
        if self._where is None or is_servers(self._where):
            return resolve(self._where)
        from headwater.core.processes import join

        self._broker = join(self._where)
        return Address(self._broker.address, "open", self._where)

    @property
    def address(self) -> str:
        """HOST:PORT for any Kafka client (bootstrap.servers)."""
        return self.connection.address.servers

    @property
    def cluster_id(self) -> str:
        if self._cluster_id is None:
            self._cluster_id = self.connection.cluster_id()
        return self._cluster_id

    # -- writing

    def append(
        self, topic: str, value: bytes | str | None, key: bytes | str | None = None, *,
        headers: Mapping[str, bytes | str | None] | Iterable[tuple[str, bytes | str | None]] | None = None,
        timestamp: int | datetime | None = None, partition: int | None = None,
    ) -> Appended:
        """Queue a record. `.result()` waits until it is durable and gives its position; `flush()` waits for all.

        A program that ends without either waits up to ten seconds, and says on stderr what it could not deliver.
        """
        return self._the_writer().append(topic, value, key, headers, timestamp, partition)

    async def aappend(
        self, topic: str, value: bytes | str | None, key: bytes | str | None = None, *,
        headers: Mapping[str, bytes | str | None] | Iterable[tuple[str, bytes | str | None]] | None = None,
        timestamp: int | datetime | None = None, partition: int | None = None,
    ) -> Appended:
        """Append and wait until the record is durable, without blocking the event loop."""
        from headwater.client.asynchronous import append

        return await append(self, topic, value, key, headers, timestamp, partition)

    def _the_writer(self) -> Writer:
        writer = self._writer
        if writer is None or writer.connection.forked:
            from headwater.client.writer import Writer, watch_exit

            connection = self.connection
            if writer is not None:
                connection.after_fork(writer.producer)
            writer = self._writer = Writer(connection)
            watch_exit(writer)
        return writer

    def flush(self, timeout: float | None = None) -> None:
        """Wait until everything appended is durable; raises the first failure that nobody has seen."""
        if self._writer is not None and not self._writer.connection.forked:
            self._writer.flush(timeout)

    def transaction(self, transactional_id: str | None = None) -> Transaction:
        """A block whose records, and readers' offsets, become visible together or never.

        Give the id that stays the same over restarts when a reader's offsets take part; without one, an id of this
        log object's own is used.
        """
        from headwater.client.transaction import Transaction

        return Transaction(lambda: self._transactional_writer(transactional_id))

    def _transactional_writer(self, transactional_id: str | None) -> TransactionalWriter:
        from headwater.client.transaction import TransactionalWriter

        if transactional_id is None:
            transactional_id = next((name for name in self._transactional if name.startswith("headwater-")), None)
        if transactional_id is None:
            from headwater.core import ids

            transactional_id = f"headwater-{ids.to_text(ids.random_id())}"
        writer = self._transactional.get(transactional_id)
        if writer is None or writer.broken or self.connection.forked:
            writer = self._transactional[transactional_id] = TransactionalWriter(self.connection, transactional_id)
        return writer

    # -- reading

    def read(
        self, topics: str | Iterable[str], *,
        start: str | int | datetime | Position | Iterable[Position] = "earliest",
        until: str | int | datetime | Position | Iterable[Position] | None = None,
        partitions: Iterable[int] | None = None, group: str | None = None, commit: bool = True,
        committed: bool = True, timeout: float | None = None,
    ) -> Reader:
        """An iterator of records.

        start      "earliest", "latest", an offset (-5: five before the end), a datetime, or positions
        until      None: wait for new records for ever; "latest": stop at the end of now; or an offset, a time, …
        group      share the partitions with the group's other members and go on where it stands; `commit=False`
                   leaves committing to you (reader.commit(), or a transaction's send_offsets)
        committed  False shows records of open and aborted transactions too
        timeout    raise Unavailable when no record has come for so many seconds
        """
        from headwater.client.reader import Reader

        reader = Reader(
            self.connection, [topics] if isinstance(topics, str) else list(topics), start=start, until=until,
            partitions=None if partitions is None else list(partitions), group=group, commit=commit,
            committed=committed, timeout=timeout,
        )
        self._readers.add(reader)
        return reader

    def aread(self, topics: str | Iterable[str], **how: Any) -> AsyncReader:
        """`read` for `async for`; the arguments are the same."""
        from headwater.client.asynchronous import AsyncReader

        return AsyncReader(lambda: self.read(topics, **how))

    # -- positions

    def position(self, record: Record) -> Position:
        """The position of a record that was read: reading from there begins with it."""
        from headwater.client.topics import topic_ids
        from headwater.core.position import Position

        topic_id = topic_ids(self.connection, [record.topic])[record.topic]
        return Position(self.cluster_id, topic_id, record.partition, record.leader_epoch, record.offset)

    def positions(self, topic: str, at: str | int | datetime = "latest") -> list[Position]:
        """One position for each partition: the end now, "earliest", an offset, or a time."""
        from headwater.client import offsets
        from headwater.client.topics import topic_ids
        from headwater.core.position import Position

        counts = self.connection.require_topics([topic], "find positions in")
        places = [(topic, index) for index in range(counts[topic])]
        found = offsets.resolve(self.connection, places, at)
        topic_id = topic_ids(self.connection, [topic])[topic]
        return [Position(self.cluster_id, topic_id, index, -1, found[topic, index]) for _, index in places]

    # -- administration

    @property
    def topics(self) -> Topics:
        from headwater.client.topics import Topics

        return Topics(self.connection)

    @property
    def groups(self) -> Groups:
        from headwater.client.groups import Groups

        return Groups(self.connection)

    # -- the end

    def close(self) -> None:
        """Wait for what was appended, leave the groups, let go of the broker. Raises what nobody has seen fail."""
        if self._closed:
            return
        for reader in list(self._readers):
            reader.close()
        try:
            if self._writer is not None and not self._writer.connection.forked:
                self._writer.close()
        finally:
            self._closed = True
            self._writer = None
            self._transactional.clear()
            if self._broker is not None:
                self._broker.leave()

    def __enter__(self) -> Log:
        self.connection.check()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
            return
        for reader in self._readers:
            reader.take_back()
        try:
            self.close()
        except HeadwaterError:
            pass  # the block's own exception says more

    async def __aenter__(self) -> Log:
        import asyncio

        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        import asyncio

        await asyncio.to_thread(self.__exit__, kind)

    def __repr__(self) -> str:
        return f"<headwater.Log {self._where or DEFAULT_DATA!r}>"


def reopen(address: Address) -> str:
    """What a program can do whose broker went away: another open starts it again, on the same data."""
    return f"The broker of {address.data} may have ended: close this log and open it again, which starts one"


def open(
    log: str | os.PathLike[str] | None = None, *, timeout: float = TIMEOUT_SECONDS,
    options: Mapping[str, str] | None = None,
) -> Log:
    """A directory starts or joins a broker on it; HOST:PORT is any Kafka; None is what --log defaults to.

    timeout   the deadline of every call, in seconds
    options   librdkafka's own settings, for example {"security.protocol": "ssl"}
    """
    return Log(log, timeout=timeout, options=options)
