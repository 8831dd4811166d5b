"""TxnOffsetCommit: offsets that count if the transaction does.

v3 checks the member and its generation, v4 knows TRANSACTION_ABORTABLE, v5 adds the group's partition to
the transaction by itself (KIP-890).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.broker.groups import commits
from headwater.broker.groups.answers import PartitionErrors, known_topic
from headwater.broker.groups.offsets import NO_TOPIC_ID
from headwater.broker.internal_topics import CONSUMER_OFFSETS
from headwater.broker.registry import handles
from headwater.broker.waiting import Later
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from headwater.broker.registry import Context
    from headwater.broker.state import Broker

ABORTABLE_SINCE = 4
IMPLICIT_ADD_SINCE = 5


def refused(request: TxnOffsetCommitRequest, error: KafkaError) -> TxnOffsetCommitResponse:
    errors = PartitionErrors()
    for topic in request.topics:
        for partition in topic.partitions:
            errors.add((topic.name, NO_TOPIC_ID), partition.partition_index, error.code)
    return _response(errors)


@handles(TxnOffsetCommitRequest, versions=(0, 5), error=refused)
def txn_offset_commit(
    broker: Broker, request: TxnOffsetCommitRequest, context: Context
) -> TxnOffsetCommitResponse | Later[TxnOffsetCommitResponse]:
    errors, asked = _sort_out(broker, request)
    if not asked:
        return _response(errors)
    promise: Later[TxnOffsetCommitResponse] = Later()

    def finish(results: list[ErrorCode]) -> None:
        for each, error in zip(asked, results, strict=True):
            errors.add((each.topic, NO_TOPIC_ID), each.partition, error)
        promise.set(_response(errors))

    try:
        if not request.group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        _check_transaction(broker, request, context.api_version)
        commits.commit_in_transaction(
            broker.groups,
            commits.Identity(
                request.group_id, request.member_id, request.group_instance_id, request.generation_id
            ),
            asked,
            finish,
            producer_id=request.producer_id,
            producer_epoch=request.producer_epoch,
        )
    except KafkaError as error:
        finish([error.code] * len(asked))
    return promise


def _check_transaction(broker: Broker, request: TxnOffsetCommitRequest, version: int) -> None:
    broker.transactions.refuse_if_fenced()
    partition = broker.groups.topic.partition_of(request.group_id)
    broker.transactions.check_write(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        (CONSUMER_OFFSETS, partition.index),
        add=version >= IMPLICIT_ADD_SINCE,
        abortable=version >= ABORTABLE_SINCE,
    )


def _sort_out(broker: Broker, request: TxnOffsetCommitRequest) -> tuple[PartitionErrors, list[commits.Asked]]:
    errors = PartitionErrors()
    asked: list[commits.Asked] = []
    for topic in request.topics:
        found, name, missing = known_topic(broker, topic.name, NO_TOPIC_ID, by_id=False)
        for part in topic.partitions:
            if found is None or not 0 <= part.partition_index < len(found.partitions):
                errors.add(name, part.partition_index, missing)
            else:
                asked.append(
                    commits.Asked(
                        topic.name,
                        part.partition_index,
                        part.committed_offset,
                        part.committed_leader_epoch,
                        part.committed_metadata,
                        found.topic_id,
                    )
                )
    return errors, asked


def _response(errors: PartitionErrors) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=name,
                partitions=[
                    TxnOffsetCommitResponsePartition(partition_index=index, error_code=error)
                    for index, error in partitions
                ],
            )
            for (name, _), partitions in errors.topics()
        ]
    )
