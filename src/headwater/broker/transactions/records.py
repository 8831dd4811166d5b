"""What a transactional id is at rest: the records of ``__transaction_state``, in Apache Kafka's formats.

key: int16 version 0, transactional id. value: int16 version 1 and the fields of ``TransactionLogValue``
(version 1 is what transaction.version 1 and above write; version 0 is read too). A tombstone: the id expired.
"""

from __future__ import annotations

from headwater.broker.transactions.transaction import (
    EMPTY,
    ONGOING,
    State,
    Transaction,
)
from headwater.wire import schema
from headwater.wire.messages.transaction_state import PartitionsSchema, TransactionLogKey, TransactionLogValue

KEY_VERSION = 0
VALUE_VERSION = 1

Record = tuple[bytes, bytes | None]


def key_of(transactional_id: str) -> bytes:
    return _versioned(TransactionLogKey(transactional_id=transactional_id), KEY_VERSION)


def transaction_record(transaction: Transaction) -> Record:
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=int(transaction.state),
        transaction_partitions=None if transaction.state is EMPTY else _partitions(transaction),
        transaction_last_update_timestamp_ms=transaction.last_update_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
        client_transaction_version=transaction.client_version,
    )
    return key_of(transaction.transactional_id), _versioned(value, VALUE_VERSION)


def tombstone(transactional_id: str) -> Record:
    return key_of(transactional_id), None


def transactional_id_of(key: bytes) -> str | None:
    """None: a key of a later version, which is not ours to understand."""
    if int.from_bytes(key[:2], "big") != KEY_VERSION:
        return None
    return schema.decode(TransactionLogKey, KEY_VERSION, memoryview(key), 2).transactional_id


def transaction_from(transactional_id: str, data: bytes, now_ms: int, wall_ms: int) -> Transaction:
    value = schema.decode(TransactionLogValue, int.from_bytes(data[:2], "big"), memoryview(data), 2)
    transaction = Transaction(
        transactional_id, value.producer_id, value.transaction_timeout_ms,
        value.transaction_last_update_timestamp_ms,
    )  # fmt: skip
    transaction.previous_producer_id = value.previous_producer_id
    transaction.next_producer_id = value.next_producer_id
    transaction.producer_epoch = value.producer_epoch
    transaction.state = State(value.transaction_status)
    transaction.start_ms = value.transaction_start_timestamp_ms
    transaction.client_version = value.client_transaction_version
    for topic in value.transaction_partitions or ():
        for index in topic.partition_ids:
            transaction.partitions[topic.topic, index] = None
    if transaction.state is ONGOING:
        # What is left of the timeout; never more than all of it, however the wall clock was set meanwhile.
        left_ms = transaction.start_ms + transaction.timeout_ms - wall_ms
        transaction.deadline_ms = now_ms + min(max(left_ms, 0), transaction.timeout_ms)
    return transaction


def _partitions(transaction: Transaction) -> list[PartitionsSchema]:
    by_topic: dict[str, list[int]] = {}
    for topic, index in transaction.partitions:
        by_topic.setdefault(topic, []).append(index)
    return [PartitionsSchema(topic=topic, partition_ids=indexes) for topic, indexes in by_topic.items()]


def _versioned(message: TransactionLogKey | TransactionLogValue, version: int) -> bytes:
    return version.to_bytes(2, "big") + b"".join(schema.encode(message, version))
