"""Topics by name and by id: what they may be called, how they come and go, what is internal.

Every change of the set of topics by a client goes through here, so that whoever waits for a partition that
disappears is woken.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headwater.broker.internal_topics import INTERNAL_TOPICS
from headwater.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from headwater.broker.state import Broker
    from headwater.log import Partition, Topic

NAME_LENGTH_MAX = 249  # with a partition number and a suffix a directory name of 255 must hold it
CLUSTER_METADATA = "__cluster_metadata"
LEGAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
# Kafka's limit for one request: each partition is files and memory, and nothing takes them back.
PARTITIONS_PER_REQUEST_MAX = 10_000

# What an operator who may do everything is allowed, as bits of Kafka's ACL operations.
ALL_TOPIC_OPERATIONS = 3576
ALL_CLUSTER_OPERATIONS = 8096
NOT_ASKED = -2147483648


def name_problem(name: str) -> str | None:
    """Kafka's sentence about a name that no topic may have."""
    if not name:
        problem = "the empty string is not allowed"
    elif name in (".", ".."):
        problem = f"'{name}' is not allowed"
    elif len(name) > NAME_LENGTH_MAX:
        problem = f"the length of '{name}' is longer than the max allowed length {NAME_LENGTH_MAX}"
    elif not LEGAL.issuperset(name):
        problem = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    else:
        return None
    return f"Topic name is invalid: {problem}"


def check_name(name: str) -> None:
    problem = name_problem(name)
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)


def check_leader_epoch(partition: Partition, epoch: int) -> None:
    """Fences a client that knows an older epoch than ours, or a newer one; -1 asks for no check."""
    if epoch >= 0 and epoch != partition.leader_epoch:
        older = epoch < partition.leader_epoch
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH)


class Topics:
    """The broker's topics; the log owns them."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def get(self, name: str) -> Topic | None:
        return self._broker.log.topics.get(name)

    def by_id(self, topic_id: bytes) -> Topic | None:
        return self._broker.log.topic_by_id(topic_id)

    @staticmethod
    def is_internal(name: str) -> bool:
        return name in INTERNAL_TOPICS

    def check_new(self, name: str) -> None:
        """Raises KafkaError unless a topic of this name may be made."""
        if name == CLUSTER_METADATA:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"Creation of internal topic {CLUSTER_METADATA} is prohibited."
            )
        check_name(name)
        if name in self._broker.log.topics:
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")

    def check_collision(self, name: str) -> None:
        """'.' and '_' become the same character in the names of metrics, and of tables."""
        if "." not in name and "_" not in name:
            return
        folded = name.replace(".", "_")
        for other in self._broker.log.topics:
            if other.replace(".", "_") == folded:
                raise KafkaError(
                    ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}"
                )

    def create(self, name: str, partitions: int, config: Mapping[str, str]) -> Topic:
        return self._broker.log.create_topic(name, partitions, dict(config))

    def create_automatically(self, name: str) -> Topic:
        """A topic that somebody asked for without creating it; KafkaError if its name is not allowed."""
        self.check_new(name)
        self.check_collision(name)
        if name in INTERNAL_TOPICS:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return self.create(name, self._broker.settings.num_partitions, {})

    def delete(self, topic: Topic) -> None:
        """Together with its committed offsets, so that a topic made again under its name inherits none."""
        partitions = list(topic.partitions)
        with self._broker.log.together():
            self._broker.groups.topic_deleted(topic.name)
            self._broker.log.delete_topic(topic)
        for partition in partitions:
            self._broker.waiters.wake(partition)

    def check_replicas(self, broker_ids: list[int]) -> None:
        """Raises KafkaError unless these may hold one partition: on one node there is one right answer."""
        problem = None
        if not broker_ids:
            problem = "The manual partition assignment includes an empty replica list."
        for index, broker_id in enumerate(sorted(broker_ids)):
            if broker_id != self._broker.node_id:
                problem = (
                    f"The manual partition assignment includes broker {broker_id}, but no such broker is registered."
                )
                break
            if index:
                problem = f"The manual partition assignment includes the broker {broker_id} more than once."
                break
        if problem is not None:
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
