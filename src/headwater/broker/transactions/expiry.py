"""What ends without a client asking: transactions that take too long, and ids that nobody uses any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from headwater.broker import wall_clock
from headwater.broker.transactions.records import tombstone
from headwater.broker.transactions.transaction import DEAD, MAY_EXPIRE, ONGOING

if TYPE_CHECKING:
    from headwater.broker.transactions.coordinator import Transactions


def schedule(transactions: Transactions) -> None:
    settings = transactions.settings
    _every(
        transactions, settings.transaction_abort_timed_out_transaction_cleanup_interval_ms, abort_timed_out
    )
    _every(transactions, settings.transaction_remove_expired_transaction_cleanup_interval_ms, remove_expired)


def _every(transactions: Transactions, interval_ms: int, round_: Callable[[Transactions], None]) -> None:
    def due() -> None:
        if transactions.log.fenced is None:
            _every(transactions, interval_ms, round_)  # first: a fault in one round must not be the last round
            round_(transactions)

    transactions.broker.after(interval_ms, due)


def abort_timed_out(transactions: Transactions) -> None:
    """A producer that holds readers back for longer than it said it would is taken for dead, and fenced."""
    now_ms = transactions.clock.monotonic_ms()
    for transaction in list(transactions.by_id.values()):
        if transaction.state is ONGOING and transaction.deadline_ms < now_ms:
            transactions.fence(transaction)


def remove_expired(transactions: Transactions) -> None:
    if not wall_clock.is_believed(transactions.log):
        return
    oldest_ms = transactions.clock.wall_ms() - transactions.settings.transactional_id_expiration_ms
    for transaction in list(transactions.by_id.values()):
        if transaction.state in MAY_EXPIRE and transaction.last_update_ms <= oldest_ms:
            transaction.become(DEAD, transactions.clock.wall_ms())
            del transactions.by_id[transaction.transactional_id]
            partition = transactions.topic.partition_of(transaction.transactional_id)
            partition.append_records([tombstone(transaction.transactional_id)])
