"""InitProducerId: a producer id and epoch; those that a transactional id had before are fenced.

v2 is flexible, v3 lets a producer bump its own epoch, v6 keeps a prepared transaction (two-phase commit).
"""

from __future__ import annotations

from headwater.wire.schema import Bool, Int16, Int32, Int64, String, field, message


@message(key=22, versions=(0, 6), flexible=2)
class InitProducerIdRequest:
    transactional_id: String | None = ""
    transaction_timeout_ms: Int32 = 0
    producer_id: Int64 = field(since=3, default=-1)
    producer_epoch: Int16 = field(since=3, default=-1)
    enable2_pc: Bool = field(since=6)
    keep_prepared_txn: Bool = field(since=6)


@message(key=22, versions=(0, 6), flexible=2)
class InitProducerIdResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Int64 = -1
    producer_epoch: Int16 = 0
    ongoing_txn_producer_id: Int64 = field(since=6, default=-1)
    ongoing_txn_producer_epoch: Int16 = field(since=6, default=-1)
