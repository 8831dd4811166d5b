"""JoinGroup: become a member of a classic group and wait for the generation to form.

v1 adds the rebalance timeout, v4 answers a first join with MEMBER_ID_REQUIRED, v5 adds static members, v6 is
flexible, v7 returns the protocol type, v8 takes a reason, v9 lets the leader skip the assignment.
"""

from __future__ import annotations

from headwater.wire.schema import Bool, Bytes, Int16, Int32, String, field, message, struct


@struct
class JoinGroupRequestProtocol:
    name: String = ""
    metadata: Bytes = b""


@message(key=11, versions=(0, 9), flexible=6)
class JoinGroupRequest:
    group_id: String = ""
    session_timeout_ms: Int32 = 0
    rebalance_timeout_ms: Int32 = field(since=1, default=-1, ignorable=True)
    member_id: String = ""
    group_instance_id: String | None = field(since=5, default=None)
    protocol_type: String = ""
    protocols: list[JoinGroupRequestProtocol] = field()
    reason: String | None = field(since=8, default=None, ignorable=True)


@struct
class JoinGroupResponseMember:
    member_id: String = ""
    group_instance_id: String | None = field(since=5, default=None, ignorable=True)
    metadata: Bytes = b""


@message(key=11, versions=(0, 9), flexible=6)
class JoinGroupResponse:
    throttle_time_ms: Int32 = field(since=2, ignorable=True)
    error_code: Int16 = 0
    generation_id: Int32 = -1
    protocol_type: String | None = field(since=7, default=None, ignorable=True)
    protocol_name: String | None = field(nullable_since=7)
    leader: String = ""
    skip_assignment: Bool = field(since=9)
    member_id: String = ""
    members: list[JoinGroupResponseMember] = field()
