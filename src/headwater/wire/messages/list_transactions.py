"""ListTransactions. v1 filters by duration, v2 by a pattern on the transactional id."""

from __future__ import annotations

from headwater.wire.schema import Int16, Int32, Int64, String, field, message, struct


@message(key=66, versions=(0, 2), flexible=0)
class ListTransactionsRequest:
    state_filters: list[String] = field()
    producer_id_filters: list[Int64] = field()
    duration_filter: Int64 = field(since=1, default=-1)
    transactional_id_pattern: String | None = field(since=2, default=None)


@struct
class TransactionState:
    transactional_id: String = ""
    producer_id: Int64 = 0
    transaction_state: String = ""


@message(key=66, versions=(0, 2), flexible=0)
class ListTransactionsResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    unknown_state_filters: list[String] = field()
    transaction_states: list[TransactionState] = field()
