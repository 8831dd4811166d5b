"""SyncGroup: the leader gives the assignments, every member receives its own.

v3 adds static members, v4 is flexible, v5 checks and returns the protocol's type and name.
"""

from __future__ import annotations

from headwater.wire.schema import Bytes, Int16, Int32, String, field, message, struct


@struct
class SyncGroupRequestAssignment:
    member_id: String = ""
    assignment: Bytes = b""


@message(key=14, versions=(0, 5), flexible=4)
class SyncGroupRequest:
    group_id: String = ""
    generation_id: Int32 = 0
    member_id: String = ""
    group_instance_id: String | None = field(since=3, default=None)
    protocol_type: String | None = field(since=5, default=None, ignorable=True)
    protocol_name: String | None = field(since=5, default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = field()


@message(key=14, versions=(0, 5), flexible=4)
class SyncGroupResponse:
    throttle_time_ms: Int32 = field(since=1, ignorable=True)
    error_code: Int16 = 0
    protocol_type: String | None = field(since=5, default=None, ignorable=True)
    protocol_name: String | None = field(since=5, default=None, ignorable=True)
    assignment: Bytes = b""
