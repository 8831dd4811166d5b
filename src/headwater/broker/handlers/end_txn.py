"""EndTxn: commit or abort. The answer means that it is durable, on every partition.

From v5 each end moves the producer's epoch on, and the answer says where to (KIP-890).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.broker.registry import handles
from headwater.broker.transactions.answers import NO_ID, fenced_as, when_durable
from headwater.wire.errors import KafkaError
from headwater.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

if TYPE_CHECKING:
    from headwater.broker.registry import Context
    from headwater.broker.state import Broker
    from headwater.broker.waiting import Later

PRODUCER_FENCED_SINCE = 2
EPOCH_BUMP_SINCE = 5


def refused(_request: EndTxnRequest, error: KafkaError) -> EndTxnResponse:
    return EndTxnResponse(error_code=error.code, producer_id=NO_ID, producer_epoch=NO_ID)


@handles(EndTxnRequest, versions=(0, 5), error=refused)
def end_txn(broker: Broker, request: EndTxnRequest, context: Context) -> Later[EndTxnResponse]:
    try:
        producer_id, epoch = broker.transactions.end(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            commit=request.committed,
            bump=context.api_version >= EPOCH_BUMP_SINCE,
        )
        response = EndTxnResponse(producer_id=producer_id, producer_epoch=epoch)
    except KafkaError as error:
        code = fenced_as(error.code, context.api_version, PRODUCER_FENCED_SINCE)
        response = refused(request, KafkaError(code))
    return when_durable(broker, response, lambda error: refused(request, error))
