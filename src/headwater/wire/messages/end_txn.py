"""EndTxn: commit or abort. v3 is flexible, v5 returns the producer id and epoch for the next transaction."""

from __future__ import annotations

from headwater.wire.schema import Bool, Int16, Int32, Int64, String, field, message


@message(key=26, versions=(0, 5), flexible=3)
class EndTxnRequest:
    transactional_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    committed: Bool = False


@message(key=26, versions=(0, 5), flexible=3)
class EndTxnResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Int64 = field(since=5, default=-1, ignorable=True)
    producer_epoch: Int16 = field(since=5, default=-1, ignorable=True)
