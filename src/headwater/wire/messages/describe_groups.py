"""DescribeGroups: state and members of groups.

v3 adds authorized operations, v4 static members, v5 is flexible, v6 answers GROUP_ID_NOT_FOUND for unknown
groups.
"""

from __future__ import annotations

from headwater.wire.schema import Bool, Bytes, Int16, Int32, String, field, message, struct


@message(key=15, versions=(0, 6), flexible=5)
class DescribeGroupsRequest:
    groups: list[String] = field()
    include_authorized_operations: Bool = field(since=3)


@struct
class DescribedGroupMember:
    member_id: String = ""
    group_instance_id: String | None = field(since=4, default=None, ignorable=True)
    client_id: String = ""
    client_host: String = ""
    member_metadata: Bytes = b""
    member_assignment: Bytes = b""


@struct
class DescribedGroup:
    error_code: Int16 = 0
    error_message: String | None = field(since=6, default=None)
    group_id: String = ""
    group_state: String = ""
    protocol_type: String = ""
    protocol_data: String = ""
    members: list[DescribedGroupMember] = field()
    authorized_operations: Int32 = field(since=3, default=-2147483648)


@message(key=15, versions=(0, 6), flexible=5)
class DescribeGroupsResponse:
    throttle_time_ms: Int32 = field(since=1, ignorable=True)
    groups: list[DescribedGroup] = field()
