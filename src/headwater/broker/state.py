"""The broker: everything that handlers share, in one place. One thread ("the loop") owns it.

``Broker.open`` needs an opened log and loads groups and transactions from the internal topics. The server
gives ``io`` (a reader thread) and ``report_bug``, drives the log's stages and calls ``timers.run_due``.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headwater.broker.config import BrokerSettings
from headwater.broker.internal_topics import Durable
from headwater.broker.topics import Topics
from headwater.broker.waiting import PartitionWaiters, Timers

if TYPE_CHECKING:
    from headwater.broker.groups import Groups
    from headwater.broker.transactions import Transactions
    from headwater.core.clock import Clock
    from headwater.log import Log, Partition

Job = Callable[[], Any]
Done = Callable[[Any], None]


def run_at_once(job: Job, done: Done) -> None:
    """``io`` without a thread: tests, tools, and a server that is stopping."""
    try:
        result = job()
    except Exception as error:
        result = error
    done(result)


def print_bug(where: str, error: BaseException) -> None:
    traceback.print_exception(error)


class Broker:
    """The state of one broker process."""

    def __init__(self, log: Log, clock: Clock, settings: BrokerSettings | None = None) -> None:
        self.log = log
        self.clock = clock
        self.settings = settings if settings is not None else BrokerSettings()
        self.timers = Timers()
        self.waiters = PartitionWaiters()
        self.topics = Topics(self)
        self.io: Callable[[Job, Done], None] = run_at_once  # done gets the result or the exception
        self.report_bug: Callable[[str, BaseException], None] = print_bug
        log.on_advance = self.waiters.wake
        log.on_fence = self._on_fence
        self.on_fence: list[Callable[[str], None]] = []
        self.durable = Durable(self)
        self.groups: Groups
        self.transactions: Transactions

    @classmethod
    def open(cls, log: Log, clock: Clock, settings: BrokerSettings | None = None) -> Broker:
        from headwater.broker.groups import Groups
        from headwater.broker.transactions import Transactions

        broker = cls(log, clock, settings)
        broker.groups = Groups(broker)
        broker.transactions = Transactions(broker)
        broker.groups.load()
        broker.transactions.load()
        return broker

    @property
    def cluster_id(self) -> str:
        return self.log.cluster_id

    @property
    def node_id(self) -> int:
        return int(self.settings.node_id)

    def partition(self, topic: str, index: int) -> Partition | None:
        """The partition, or None if there is no such topic or index."""
        found = self.log.topics.get(topic)
        if found is None or not 0 <= index < len(found.partitions):
            return None
        return found.partitions[index]

    def after(self, delay_ms: int, callback: Callable[[], None]) -> Any:
        """A timer that is due ``delay_ms`` from now."""
        return self.timers.at(self.clock.monotonic_ms() + delay_ms, callback)

    def _on_fence(self, reason: str) -> None:
        for callback in self.on_fence:
            callback(reason)
