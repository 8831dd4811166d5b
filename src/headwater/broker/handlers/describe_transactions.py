"""DescribeTransactions: state, owner and partitions of transactional ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.broker.registry import handles
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)

if TYPE_CHECKING:
    from headwater.broker.registry import Context
    from headwater.broker.state import Broker
    from headwater.broker.transactions.transaction import Transaction


def refused(request: DescribeTransactionsRequest, error: KafkaError) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[
            TransactionState(transactional_id=each, error_code=error.code)
            for each in request.transactional_ids
        ]
    )


@handles(DescribeTransactionsRequest, versions=(0, 0), error=refused)
def describe_transactions(
    broker: Broker, request: DescribeTransactionsRequest, _context: Context
) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[_describe(broker, each) for each in request.transactional_ids]
    )


def _describe(broker: Broker, transactional_id: str) -> TransactionState:
    if not transactional_id:
        return TransactionState(transactional_id="", error_code=ErrorCode.INVALID_REQUEST)
    try:
        transaction = broker.transactions.get(transactional_id)
    except KafkaError as error:
        return TransactionState(transactional_id=transactional_id, error_code=error.code)
    if transaction is None:
        return TransactionState(
            transactional_id=transactional_id, error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        )  # fmt: skip
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=transaction.state.shown,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.start_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=_topics(transaction),
    )


def _topics(transaction: Transaction) -> list[TopicData]:
    by_topic: dict[str, list[int]] = {}
    for topic, index in transaction.partitions:
        by_topic.setdefault(topic, []).append(index)
    return [TopicData(topic=topic, partitions=indexes) for topic, indexes in by_topic.items()]
