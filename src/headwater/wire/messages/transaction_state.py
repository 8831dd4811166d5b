"""Records of `__transaction_state`, one transactional id each. Key and value each begin with their version as int16.

v1 of the value is flexible and carries what the second transaction protocol needs in tagged fields.
"""

from __future__ import annotations

from headwater.wire.schema import Int8, Int16, Int32, Int64, String, field, message, struct


@message(versions=(0, 0))
class TransactionLogKey:
    transactional_id: String = ""


@struct
class PartitionsSchema:
    topic: String = ""
    partition_ids: list[Int32] = field()


@message(versions=(0, 1), flexible=1)
class TransactionLogValue:
    producer_id: Int64 = 0
    previous_producer_id: Int64 = field(since=1, default=-1, tag=0)
    next_producer_id: Int64 = field(since=1, default=-1, tag=1)
    producer_epoch: Int16 = 0
    next_producer_epoch: Int16 = field(since=1, default=-1, tag=3)
    transaction_timeout_ms: Int32 = 0
    transaction_status: Int8 = 0
    transaction_partitions: list[PartitionsSchema] | None = field()
    transaction_last_update_timestamp_ms: Int64 = 0
    transaction_start_timestamp_ms: Int64 = 0
    client_transaction_version: Int16 = field(since=1, tag=2)
