"""LeaveGroup: members leave a classic group.

v3 takes many, static ones too, v4 is flexible, v5 takes a reason.
"""

from __future__ import annotations

from headwater.wire.schema import Int16, Int32, String, field, message, struct


@struct
class MemberIdentity:
    member_id: String = ""
    group_instance_id: String | None = None
    reason: String | None = field(since=5, default=None, ignorable=True)


@message(key=13, versions=(0, 5), flexible=4)
class LeaveGroupRequest:
    group_id: String = ""
    member_id: String = field(until=2)
    members: list[MemberIdentity] = field(since=3)


@struct
class MemberResponse:
    member_id: String = ""
    group_instance_id: String | None = ""
    error_code: Int16 = 0


@message(key=13, versions=(0, 5), flexible=4)
class LeaveGroupResponse:
    throttle_time_ms: Int32 = field(since=1, ignorable=True)
    error_code: Int16 = 0
    members: list[MemberResponse] = field(since=3)
