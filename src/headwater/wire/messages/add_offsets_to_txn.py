"""AddOffsetsToTxn: a transaction is about to commit a group's offsets. v3 is flexible."""

from __future__ import annotations

from headwater.wire.schema import Int16, Int32, Int64, String, message


@message(key=25, versions=(0, 4), flexible=3)
class AddOffsetsToTxnRequest:
    transactional_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    group_id: String = ""


@message(key=25, versions=(0, 4), flexible=3)
class AddOffsetsToTxnResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
