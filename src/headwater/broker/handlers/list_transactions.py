"""ListTransactions: all transactional ids, or some: by state, by producer, by age (v1), by pattern (v2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.broker.registry import handles
from headwater.broker.transactions.pattern import Pattern
from headwater.broker.transactions.transaction import BY_NAME
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)

if TYPE_CHECKING:
    from headwater.broker.registry import Context
    from headwater.broker.state import Broker


@handles(ListTransactionsRequest, versions=(0, 2))
def list_transactions(
    broker: Broker, request: ListTransactionsRequest, _context: Context
) -> ListTransactionsResponse:
    states = {BY_NAME[name] for name in request.state_filters if name in BY_NAME}
    pattern = _pattern(request.transactional_id_pattern)
    now_ms = broker.clock.wall_ms()
    return ListTransactionsResponse(
        unknown_state_filters=[name for name in request.state_filters if name not in BY_NAME],
        transaction_states=[
            TransactionState(
                transactional_id=each.transactional_id,
                producer_id=each.producer_id,
                transaction_state=each.state.shown,
            )
            for each in broker.transactions.by_id.values()
            if (not request.state_filters or each.state in states)
            and (not request.producer_id_filters or each.producer_id in request.producer_id_filters)
            and (request.duration_filter < 0 or now_ms - each.start_ms > request.duration_filter)
            and (pattern is None or pattern.matches(each.transactional_id))
        ],
    )


def _pattern(text: str | None) -> Pattern | None:
    """An empty pattern asks for everything, as an absent one does."""
    if not text:
        return None
    try:
        return Pattern(text)
    except ValueError as error:
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, str(error)) from None
