"""InitProducerId: a number for an idempotent producer; for a transactional id, ownership and a fresh epoch.

v3 lets a producer recover under its own id and epoch (KIP-360); before v4 a fenced producer is told
INVALID_PRODUCER_EPOCH. v5 tells clients that they may hear TRANSACTION_ABORTABLE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.broker.registry import handles
from headwater.broker.transactions.answers import NO_ID, fenced_as, when_durable
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from headwater.broker.registry import Context
    from headwater.broker.state import Broker
    from headwater.broker.waiting import Later

PRODUCER_FENCED_SINCE = 4


def refused(_request: InitProducerIdRequest, error: KafkaError) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error.code, producer_id=NO_ID, producer_epoch=NO_ID)


@handles(InitProducerIdRequest, versions=(0, 5), error=refused)
def init_producer_id(
    broker: Broker, request: InitProducerIdRequest, context: Context
) -> Later[InitProducerIdResponse]:
    if (request.producer_id == NO_ID) != (request.producer_epoch == NO_ID):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    try:
        producer_id, epoch = _init(broker, request)
        response = InitProducerIdResponse(producer_id=producer_id, producer_epoch=epoch)
    except KafkaError as error:
        code = fenced_as(error.code, context.api_version, PRODUCER_FENCED_SINCE)
        response = refused(request, KafkaError(code))
    return when_durable(broker, response, lambda error: refused(request, error))


def _init(broker: Broker, request: InitProducerIdRequest) -> tuple[int, int]:
    transactions = broker.transactions
    if request.transactional_id is None:
        transactions.refuse_if_fenced()
        return transactions.producer_ids.take(), 0
    expected = None if request.producer_id == NO_ID else (request.producer_id, request.producer_epoch)
    return transactions.init_producer(request.transactional_id, request.transaction_timeout_ms, expected)
