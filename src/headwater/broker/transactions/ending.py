"""How a transaction may end: who may ask, and what a repeated question is answered.

Two protocols meet here. Before EndTxn 5 a producer keeps its epoch from one transaction to the next, so a
late EndTxn cannot be told from a new one. From EndTxn 5 on (KIP-890) every end moves the epoch on: then the
epoch alone says whether this is the present transaction, a retry of the last end, or a zombie.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from headwater.broker.transactions.transaction import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    EPOCH_EXHAUSTED,
    ONGOING,
    PREPARE_COMMIT,
)
from headwater.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from headwater.broker.transactions.transaction import Transaction


class Verdict(Enum):
    """What is to be done with an EndTxn that is not refused."""

    END = "write the markers"
    ALREADY = "it has ended so: answer as before"


def judge(transaction: Transaction, producer_id: int, producer_epoch: int, *, commit: bool) -> Verdict:
    """EndTxn 0 to 4. Strict equality: a client never moves the epoch itself."""
    if transaction.producer_id != producer_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if transaction.producer_epoch != producer_epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if transaction.state is ONGOING:
        return Verdict.END
    _refuse_while_completing(transaction, commit=commit)
    if transaction.state is (COMPLETE_COMMIT if commit else COMPLETE_ABORT):
        return Verdict.ALREADY
    raise KafkaError(ErrorCode.INVALID_TXN_STATE)


def judge_with_bump(
    transaction: Transaction, producer_id: int, producer_epoch: int, *, commit: bool
) -> Verdict:
    """EndTxn 5."""
    retry_over_overflow = (
        transaction.previous_producer_id == producer_id
        and producer_epoch == EPOCH_EXHAUSTED
        and transaction.producer_epoch == 0
    )
    retry = transaction.producer_epoch == producer_epoch + 1 or retry_over_overflow
    if transaction.producer_id != producer_id and not retry_over_overflow:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    _check_epoch(transaction, producer_epoch, retry=retry)
    if transaction.state is ONGOING:
        return Verdict.END
    _refuse_while_completing(transaction, commit=commit)
    if transaction.state is EMPTY:
        return _abort_of_nothing(commit=commit)
    if retry:
        if transaction.state is (COMPLETE_COMMIT if commit else COMPLETE_ABORT):
            return Verdict.ALREADY
        raise KafkaError(ErrorCode.INVALID_TXN_STATE)
    return _abort_of_nothing(commit=commit)


def _check_epoch(transaction: Transaction, producer_epoch: int, *, retry: bool) -> None:
    current = producer_epoch == transaction.producer_epoch
    if transaction.state in (ONGOING, EMPTY):
        valid = current
    elif transaction.is_completing:
        valid = retry
    else:
        valid = retry or current
    if not valid:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)


def _refuse_while_completing(transaction: Transaction, *, commit: bool) -> None:
    """Only between the load of Kafka's files and the end of what they left open."""
    if transaction.is_completing:
        same = (transaction.state is PREPARE_COMMIT) == commit
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS if same else ErrorCode.INVALID_TXN_STATE)


def _abort_of_nothing(*, commit: bool) -> Verdict:
    """A producer that added nothing may abort, to get a new epoch; it has nothing to commit."""
    if commit:
        raise KafkaError(ErrorCode.INVALID_TXN_STATE)
    return Verdict.END
