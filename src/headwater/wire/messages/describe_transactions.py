"""DescribeTransactions: state and partitions of transactions, by transactional id."""

from __future__ import annotations

from headwater.wire.schema import Int16, Int32, Int64, String, field, message, struct


@message(key=65, versions=(0, 0), flexible=0)
class DescribeTransactionsRequest:
    transactional_ids: list[String] = field()


@struct
class TopicData:
    topic: String = ""
    partitions: list[Int32] = field()


@struct
class TransactionState:
    error_code: Int16 = 0
    transactional_id: String = ""
    transaction_state: String = ""
    transaction_timeout_ms: Int32 = 0
    transaction_start_time_ms: Int64 = 0
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    topics: list[TopicData] = field()


@message(key=65, versions=(0, 0), flexible=0)
class DescribeTransactionsResponse:
    throttle_time_ms: Int32 = 0
    transaction_states: list[TransactionState] = field()
