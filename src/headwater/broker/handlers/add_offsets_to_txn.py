"""AddOffsetsToTxn: a transaction is about to commit offsets of a group: it adds the group's partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.broker.internal_topics import CONSUMER_OFFSETS
from headwater.broker.registry import handles
from headwater.broker.transactions.answers import fenced_as, when_durable
from headwater.wire.errors import KafkaError
from headwater.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

if TYPE_CHECKING:
    from headwater.broker.registry import Context
    from headwater.broker.state import Broker
    from headwater.broker.waiting import Later

PRODUCER_FENCED_SINCE = 2


@handles(AddOffsetsToTxnRequest, versions=(0, 4))
def add_offsets_to_txn(
    broker: Broker, request: AddOffsetsToTxnRequest, context: Context
) -> Later[AddOffsetsToTxnResponse]:
    broker.transactions.refuse_if_fenced()
    partition = broker.groups.topic.partition_of(request.group_id)
    response = AddOffsetsToTxnResponse()
    try:
        broker.transactions.add_partitions(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            [(CONSUMER_OFFSETS, partition.index)],
        )
    except KafkaError as error:
        response.error_code = fenced_as(error.code, context.api_version, PRODUCER_FENCED_SINCE)
    return when_durable(broker, response, lambda error: AddOffsetsToTxnResponse(error_code=error.code))
