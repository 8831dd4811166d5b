"""All transactional ids of the broker: who owns them, what they are writing, how it ends.

Nothing is answered before it is durable. A producer is fenced by its epoch: whatever moves the epoch on
(another InitProducerId, a timeout, from EndTxn 5 every end) leaves its earlier owner a zombie whose every
request is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from headwater.broker.internal_topics import TRANSACTION_STATE, Durable, InternalTopic
from headwater.broker.transactions import expiry, markers
from headwater.broker.transactions.ending import Verdict, judge, judge_with_bump
from headwater.broker.transactions.producer_ids import ProducerIds
from headwater.broker.transactions.records import transaction_from, transaction_record, transactional_id_of
from headwater.broker.transactions.transaction import (
    EMPTY,
    EPOCH_EXHAUSTED,
    EPOCH_MAX,
    NO_PRODUCER_EPOCH,
    NO_TIMESTAMP,
    ONGOING,
    TopicPartition,
    Transaction,
)
from headwater.wire import batch
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.schema import Malformed

if TYPE_CHECKING:
    from headwater.broker.state import Broker
    from headwater.log import Partition

IMPLICIT_ADD_SINCE = 12  # Produce: writing to a partition adds it (KIP-890)
ABORTABLE_SINCE = 11  # Produce: knows the error that says "abort and go on"
NEW_CLIENT = 2  # transaction.version of clients that add partitions by writing to them
OLD_CLIENT = 0
NOT_ADDED = "Partition was not added to the transaction"  # Kafka's sentence, shown by producers


class Transactions:
    """The transaction coordinator."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.clock = broker.clock
        self.log = broker.log
        self.settings = broker.settings
        self.durable = Durable(broker)
        self.producer_ids = ProducerIds(broker)
        self.topic = InternalTopic(
            broker,
            TRANSACTION_STATE,
            broker.settings.transaction_state_log_num_partitions,
            {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": str(broker.settings.transaction_state_log_min_isr),
                "segment.bytes": str(broker.settings.transaction_state_log_segment_bytes),
                "unclean.leader.election.enable": "false",
            },
        )
        self.by_id: dict[str, Transaction] = {}

    def get(self, transactional_id: str) -> Transaction | None:
        """KafkaError if what was known of the id could not be loaded."""
        self.topic.check(transactional_id)
        return self.by_id.get(transactional_id)

    # ---------------------------------------------------------------- producers

    def init_producer(
        self, transactional_id: str, timeout_ms: int, expected: tuple[int, int] | None
    ) -> tuple[int, int]:
        """Take ownership: (producer id, epoch), with every earlier owner fenced.

        ``expected`` is the owner's own id and epoch, if it only wants to recover (KIP-360).
        """
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        if not 0 < timeout_ms <= self.settings.transaction_max_timeout_ms:
            raise KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        self.refuse_if_fenced()
        transaction = self.get(transactional_id)
        if transaction is None:
            now_ms = self.clock.wall_ms()
            transaction = Transaction(transactional_id, self.producer_ids.take(), timeout_ms, now_ms)
            self.by_id[transactional_id] = transaction
        if expected is not None and not _may_recover(transaction, *expected):
            raise KafkaError(ErrorCode.PRODUCER_FENCED)
        if transaction.is_completing:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        if transaction.state is ONGOING:
            # This epoch is never given to anybody. The client comes again and gets the next one.
            self.fence(transaction)
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        self._take_over(transaction, timeout_ms, None if expected is None else expected[1])
        return transaction.producer_id, transaction.producer_epoch

    def _take_over(self, transaction: Transaction, timeout_ms: int, expected_epoch: int | None) -> None:
        before = transaction.producer_epoch
        previous_id = transaction.producer_id
        if transaction.epoch_exhausted and expected_epoch in (None, before):
            transaction.producer_id = self.producer_ids.take()
            transaction.producer_epoch = 0
            transaction.last_producer_epoch = NO_PRODUCER_EPOCH if expected_epoch is None else before
        elif expected_epoch is None:
            transaction.producer_epoch = before + 1
            transaction.last_producer_epoch = NO_PRODUCER_EPOCH
        elif before == NO_PRODUCER_EPOCH or expected_epoch == before:
            transaction.producer_epoch = before + 1
            transaction.last_producer_epoch = before
        elif expected_epoch != transaction.last_producer_epoch:
            raise KafkaError(ErrorCode.PRODUCER_FENCED)
        # else: a retry whose answer was lost; nobody else came between, or last_producer_epoch were -1
        transaction.previous_producer_id = previous_id
        transaction.timeout_ms = timeout_ms
        transaction.partitions = {}
        transaction.start_ms = NO_TIMESTAMP
        transaction.become(EMPTY, self.clock.wall_ms())
        self._write(transaction)

    def fence(self, transaction: Transaction) -> None:
        """Abort what is going on and move the epoch past whoever is doing it."""
        transaction.producer_epoch = min(transaction.producer_epoch + 1, EPOCH_MAX)
        transaction.last_producer_epoch = NO_PRODUCER_EPOCH
        markers.end(self, transaction, commit=False, bump=False)

    # --------------------------------------------------------------- partitions

    def add_partitions(
        self, transactional_id: str, producer_id: int, producer_epoch: int,
        partitions: Iterable[TopicPartition], client_version: int = OLD_CLIENT,
    ) -> None:  # fmt: skip
        """These partitions belong to the transaction, which begins with its first."""
        transaction = self._owned(transactional_id, producer_id, producer_epoch)
        new = [partition for partition in partitions if partition not in transaction.partitions]
        if transaction.state is ONGOING and not new:
            return
        self.refuse_if_fenced()
        now_ms = self.clock.wall_ms()
        if transaction.state is not ONGOING:
            transaction.start_ms = now_ms
            transaction.deadline_ms = self.clock.monotonic_ms() + transaction.timeout_ms
        transaction.partitions.update(dict.fromkeys(new))
        transaction.previous_producer_id = transaction.producer_id
        transaction.client_version = client_version
        transaction.become(ONGOING, now_ms)
        self._write(transaction)

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Iterable[TopicPartition],
    ) -> dict[TopicPartition, ErrorCode]:
        """Whether these partitions belong to the transaction that is going on."""
        transaction = self._owned(transactional_id, producer_id, producer_epoch)
        return {
            partition: ErrorCode.NONE
            if partition in transaction.partitions
            else ErrorCode.TRANSACTION_ABORTABLE
            for partition in partitions
        }

    def check_write(
        self, transactional_id: str, producer_id: int, producer_epoch: int, partition: TopicPartition, *,
        add: bool, abortable: bool,
    ) -> None:  # fmt: skip
        """A transactional write is about to be appended: refuse it unless its transaction knows of it.

        ``add``: the client relies on us to add the partition. ``abortable``: it knows that error.
        """
        try:
            if add:
                self.add_partitions(transactional_id, producer_id, producer_epoch, (partition,), NEW_CLIENT)
                return
            error = self.verify(transactional_id, producer_id, producer_epoch, (partition,))[partition]
        except KafkaError as refused:
            error = refused.code
        if error == ErrorCode.PRODUCER_FENCED:
            error = ErrorCode.INVALID_PRODUCER_EPOCH  # writers know fencing by its older name
        if error == ErrorCode.TRANSACTION_ABORTABLE and not abortable:
            error = ErrorCode.INVALID_TXN_STATE
        if error != ErrorCode.NONE:
            raise KafkaError(error, NOT_ADDED if error == ErrorCode.INVALID_TXN_STATE else None)

    def check_produce(
        self, transactional_id: str, producer_id: int, producer_epoch: int, partition: Partition,
        api_version: int,
    ) -> None:  # fmt: skip
        """``check_write`` for Produce."""
        if self.settings.transaction_partition_verification_enable or api_version >= IMPLICIT_ADD_SINCE:
            self.check_write(
                transactional_id, producer_id, producer_epoch, (partition.topic.name, partition.index),
                add=api_version >= IMPLICIT_ADD_SINCE, abortable=api_version >= ABORTABLE_SINCE,
            )  # fmt: skip

    # ---------------------------------------------------------------------- end

    def end(
        self, transactional_id: str, producer_id: int, producer_epoch: int, *, commit: bool, bump: bool
    ) -> tuple[int, int]:
        """Commit or abort; (producer id, epoch) under which the producer goes on."""
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        transaction = self.get(transactional_id)
        if transaction is None:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        decide = judge_with_bump if bump else judge
        if decide(transaction, producer_id, producer_epoch, commit=commit) is Verdict.END:
            self.refuse_if_fenced()
            markers.end(self, transaction, commit=commit, bump=bump)
        return transaction.producer_id, transaction.producer_epoch

    # ------------------------------------------------------------------ loading

    def load(self) -> None:
        """Everything as ``__transaction_state`` has it; what Kafka left half done is done."""
        self.topic.load(self._load_partition, self._forget_partition)
        for transaction in self.by_id.values():
            self.producer_ids.used_elsewhere(max(transaction.producer_id, transaction.next_producer_id))
            if transaction.is_completing:
                markers.complete(self, transaction)
        expiry.schedule(self)

    def _load_partition(self, partition: Partition) -> None:
        now_ms, wall_ms = self.clock.monotonic_ms(), self.clock.wall_ms()
        for view in partition.batches():
            if batch.parse_header(view).is_control:
                continue
            for record in batch.records(view):
                try:
                    transactional_id = None if record.key is None else transactional_id_of(record.key)
                    if transactional_id is None:
                        continue
                    if record.value is None:
                        self.by_id.pop(transactional_id, None)
                    else:
                        loaded = transaction_from(transactional_id, record.value, now_ms, wall_ms)
                        self.by_id[transactional_id] = loaded
                except (ValueError, AssertionError, Malformed) as error:
                    self.topic.name_bad_record(partition, record, error)

    def _forget_partition(self, index: int) -> None:
        for transactional_id in [name for name in self.by_id if self.topic.index_of(name) == index]:
            del self.by_id[transactional_id]

    # ------------------------------------------------------------------ helpers

    def _owned(self, transactional_id: str, producer_id: int, producer_epoch: int) -> Transaction:
        """The transaction, if this producer owns it and it is not just ending."""
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        transaction = self.get(transactional_id)
        if transaction is None or transaction.producer_id != producer_id:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if transaction.producer_epoch != producer_epoch:
            raise KafkaError(ErrorCode.PRODUCER_FENCED)
        if transaction.is_completing:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        return transaction

    def _write(self, transaction: Transaction) -> None:
        self.topic.partition_of(transaction.transactional_id).append_records(
            [transaction_record(transaction)]
        )

    def refuse_if_fenced(self) -> None:
        if self.log.fenced is not None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)


def _may_recover(transaction: Transaction, producer_id: int, epoch: int) -> bool:
    """Whether a producer that names its own id and epoch is still, or was last, the owner."""
    return (
        transaction.producer_epoch == NO_PRODUCER_EPOCH
        or producer_id == transaction.producer_id
        or (producer_id == transaction.previous_producer_id and epoch >= EPOCH_EXHAUSTED)
    )
