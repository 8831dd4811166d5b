"""The two topics in which the broker keeps its own state: ``__consumer_offsets`` and ``__transaction_state``.

A key (group id, transactional id) belongs to one partition for ever, by Java's string hash, so that Apache
Kafka finds our records where it looks for its own. The topics are made on first use. What is written here
is answered only when it is durable: ``Durable`` keeps the answers that wait for that, and gives them their
error if the log is fenced first.

A partition with damage is not loaded, not even in part: whoever belongs to it is refused, because an older state is
not what was acknowledged. The others go on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from headwater.log import Damage
from headwater.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from headwater.broker.state import Broker
    from headwater.log import Partition, Topic
    from headwater.wire.records import Record

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
INTERNAL_TOPICS = frozenset((CONSUMER_OFFSETS, TRANSACTION_STATE))


def java_hash(text: str) -> int:
    """``String.hashCode``: over UTF-16 units, as a signed 32-bit number."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for i in range(0, len(units), 2):
        value = (31 * value + (units[i] << 8 | units[i + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def partition_for(key: str, count: int) -> int:
    """Kafka's ``Utils.abs(hash) % count``; its abs of the smallest number is 0."""
    value = java_hash(key)
    return 0 if value == -(1 << 31) else abs(value) % count


class InternalTopic:
    """One internal topic, created when somebody first needs it."""

    __slots__ = ("_broker", "_config", "_partitions", "_unreadable", "name")

    def __init__(self, broker: Broker, name: str, partitions: int, config: dict[str, str]) -> None:
        self._broker = broker
        self.name = name
        self._partitions = partitions
        self._config = config
        self._unreadable: dict[int, str] = {}  # partitions that could not be loaded, and why

    @property
    def existing(self) -> Topic | None:
        return self._broker.log.topics.get(self.name)

    @property
    def count(self) -> int:
        """How many partitions there are; once the topic exists it decides, not the setting."""
        topic = self.existing
        return self._partitions if topic is None else len(topic.partitions)

    def ensure(self) -> Topic:
        topic = self.existing
        if topic is None:
            topic = self._broker.log.create_topic(self.name, self._partitions, dict(self._config))
        return topic

    def index_of(self, key: str) -> int:
        return partition_for(key, self.count)

    def check(self, key: str) -> None:
        """KafkaError if what is known of this key could not be loaded."""
        if self._unreadable:
            problem = self._unreadable.get(self.index_of(key))
            if problem is not None:
                raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, problem)

    def load(self, load_partition: Callable[[Partition], None], forget: Callable[[int], None]) -> None:
        """``load_partition`` for each; ``forget(index)`` what a damaged one gave before the damage was met."""
        topic = self.existing
        for partition in () if topic is None else topic.partitions:
            try:
                for damage in partition.damage:
                    raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(damage))
                load_partition(partition)
            except KafkaError as error:
                self._unreadable[partition.index] = f"{self.name}-{partition.index} could not be loaded: {error}"
                forget(partition.index)

    def name_bad_record(self, partition: Partition, record: Record, error: Exception) -> None:
        """It was written by a client that may write here (`__admin_client`), not by us: it says nothing."""
        reason = f"record {record.offset} is not one of this topic and was passed over: {error!r}"
        place = partition.segment_of(record.offset).path
        partition.note_damage(Damage(place, 0, reason, self.name, partition.index))

    def partition_of(self, key: str) -> Partition:
        partitions = self.ensure().partitions
        return partitions[partition_for(key, len(partitions))]


class Durable:
    """Callbacks that wait for everything written so far. Each runs once: done, or failed after a fence."""

    __slots__ = ("_broker", "_waiting")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._waiting: dict[object, Callable[[], None]] = {}
        broker.on_fence.append(self._fail_all)

    def then(self, done: Callable[[], None], failed: Callable[[], None]) -> None:
        if self._broker.log.fenced is not None:
            failed()
            return
        token = object()
        self._waiting[token] = failed

        def durable() -> None:
            if self._waiting.pop(token, None) is not None:
                done()

        self._broker.log.when_durable(durable)

    def _fail_all(self, _reason: str) -> None:
        waiting, self._waiting = self._waiting, {}
        for failed in waiting.values():
            failed()
