"""Heartbeat: a member of a classic group is alive; the answer tells it of a rebalance.

v3 adds static members, v4 is flexible.
"""

from __future__ import annotations

from headwater.wire.schema import Int16, Int32, String, field, message


@message(key=12, versions=(0, 4), flexible=4)
class HeartbeatRequest:
    group_id: String = ""
    generation_id: Int32 = 0
    member_id: String = ""
    group_instance_id: String | None = field(since=3, default=None)


@message(key=12, versions=(0, 4), flexible=4)
class HeartbeatResponse:
    throttle_time_ms: Int32 = field(since=1, ignorable=True)
    error_code: Int16 = 0
