"""AddPartitionsToTxn: the partitions that a transaction is about to write to.

Up to v3 for one transaction, from clients. v4 and v5 are for brokers: several transactions, and a mode that
only asks whether the partitions are there; Kafka answers a client that uses them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.broker.internal_topics import INTERNAL_TOPICS
from headwater.broker.registry import handles
from headwater.broker.transactions.answers import fenced_as, when_durable
from headwater.broker.transactions.transaction import TopicPartition
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    from headwater.broker.registry import Context
    from headwater.broker.state import Broker
    from headwater.broker.waiting import Later

MANY_SINCE = 4
PRODUCER_FENCED_SINCE = 2


def refused(request: AddPartitionsToTxnRequest, error: KafkaError) -> AddPartitionsToTxnResponse:
    """Version 4 has an error of its own, the older versions only one for each partition."""
    errors = dict.fromkeys(_partitions(_only(request)), error.code)
    return AddPartitionsToTxnResponse(error_code=error.code, results_by_topic_v3_and_below=_by_topic(errors))


@handles(AddPartitionsToTxnRequest, versions=(0, 5), error=refused)
def add_partitions_to_txn(
    broker: Broker, request: AddPartitionsToTxnRequest, context: Context
) -> Later[AddPartitionsToTxnResponse]:
    if context.api_version < MANY_SINCE:
        results = _add(broker, _only(request), context.api_version)
        response = AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_by_topic(results))
    else:
        response = AddPartitionsToTxnResponse(
            results_by_transaction=[
                AddPartitionsToTxnResult(
                    transactional_id=each.transactional_id,
                    topic_results=_by_topic(_add(broker, each, context.api_version)),
                )
                for each in request.transactions
            ]
        )
    return when_durable(broker, response, lambda error: refused(request, error))


def _only(request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )


def _partitions(asked: AddPartitionsToTxnTransaction) -> list[TopicPartition]:
    return [(topic.name, index) for topic in asked.topics for index in topic.partitions]


def _add(
    broker: Broker, asked: AddPartitionsToTxnTransaction, version: int
) -> dict[TopicPartition, ErrorCode]:
    """All of the partitions or none."""
    partitions = _partitions(asked)
    errors = {partition: _error(broker, partition, version) for partition in partitions}
    if any(error != ErrorCode.NONE for error in errors.values()):
        return {
            partition: error if error != ErrorCode.NONE else ErrorCode.OPERATION_NOT_ATTEMPTED
            for partition, error in errors.items()
        }
    owner = (asked.transactional_id, asked.producer_id, asked.producer_epoch)
    try:
        if asked.verify_only:
            return broker.transactions.verify(*owner, partitions)
        broker.transactions.add_partitions(*owner, partitions)
        return errors
    except KafkaError as error:
        return dict.fromkeys(partitions, fenced_as(error.code, version, PRODUCER_FENCED_SINCE))


def _error(broker: Broker, partition: TopicPartition, version: int) -> ErrorCode:
    if version < MANY_SINCE and partition[0] in INTERNAL_TOPICS:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    known = broker.partition(*partition) is not None
    return ErrorCode.NONE if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _by_topic(errors: dict[TopicPartition, ErrorCode]) -> list[AddPartitionsToTxnTopicResult]:
    by_topic: dict[str, list[AddPartitionsToTxnPartitionResult]] = {}
    for (topic, index), error in errors.items():
        by_topic.setdefault(topic, []).append(
            AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=error)
        )
    return [
        AddPartitionsToTxnTopicResult(name=topic, results_by_partition=results)
        for topic, results in by_topic.items()
    ]
