"""The end of a transaction: Prepare, a marker on every partition, Complete, in one frame of the journal.

Either all of it is durable or nothing is, so no reader ever sees half a transaction and no restart has
anything to finish. Offsets that the transaction committed take effect with the marker on their partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.broker.internal_topics import CONSUMER_OFFSETS
from headwater.broker.transactions.records import transaction_record
from headwater.broker.transactions.transaction import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EPOCH_MAX,
    NO_PRODUCER_ID,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    Transaction,
)
from headwater.wire.errors import KafkaError

if TYPE_CHECKING:
    from headwater.broker.transactions.coordinator import Transactions


def end(transactions: Transactions, transaction: Transaction, *, commit: bool, bump: bool) -> None:
    """End it. ``bump`` moves the epoch on, so that nothing of this transaction can come later (KIP-890)."""
    now_ms = transactions.clock.wall_ms()
    log_partition = transactions.topic.partition_of(transaction.transactional_id)
    with transactions.log.together():
        _prepare(transactions, transaction, commit=commit, bump=bump, now_ms=now_ms)
        log_partition.append_records([transaction_record(transaction)])
        complete(transactions, transaction)


def _prepare(
    transactions: Transactions, transaction: Transaction, *, commit: bool, bump: bool, now_ms: int
) -> None:  # fmt: skip
    if transaction.state is not ONGOING:
        transaction.start_ms = now_ms  # an abort of nothing: it begins as it ends
    transaction.previous_producer_id = transaction.producer_id
    if bump:
        if transaction.epoch_exhausted:
            transaction.next_producer_id = transactions.producer_ids.take()
        transaction.last_producer_epoch = transaction.producer_epoch
        transaction.producer_epoch = min(transaction.producer_epoch + 1, EPOCH_MAX)
        transaction.client_version = 2
    else:
        transaction.client_version = 0
    transaction.become(PREPARE_COMMIT if commit else PREPARE_ABORT, now_ms)


def complete(transactions: Transactions, transaction: Transaction) -> None:
    """From Prepare on: the markers, and the state that says that they are written."""
    commit = transaction.state is PREPARE_COMMIT
    log_partition = transactions.topic.partition_of(transaction.transactional_id)
    with transactions.log.together():
        for topic, index in transaction.partitions:
            _mark(transactions, transaction, topic, index, log_partition.leader_epoch, commit=commit)
        transaction.previous_producer_id = transaction.producer_id
        if transaction.next_producer_id != NO_PRODUCER_ID:
            transaction.producer_id = transaction.next_producer_id
            transaction.producer_epoch = 0
            transaction.next_producer_id = NO_PRODUCER_ID
        transaction.partitions = {}
        transaction.become(COMPLETE_COMMIT if commit else COMPLETE_ABORT, transactions.clock.wall_ms())
        log_partition.append_records([transaction_record(transaction)])


def _mark(
    transactions: Transactions, transaction: Transaction, topic: str, index: int, epoch: int, *, commit: bool
) -> None:  # fmt: skip
    partition = transactions.broker.partition(topic, index)
    if partition is None:
        return  # deleted meanwhile, with everything that the transaction wrote to it
    try:
        partition.append_marker(transaction.producer_id, transaction.producer_epoch, epoch, commit)
    except KafkaError as refused:
        # This partition has seen a later epoch of the producer: nothing of this transaction is open there.
        transactions.broker.report_bug(
            f"marker of {transaction.transactional_id} on {topic}-{index}", refused
        )
        return
    if topic == CONSUMER_OFFSETS:
        transactions.broker.groups.end_transaction(partition, transaction.producer_id, commit=commit)
