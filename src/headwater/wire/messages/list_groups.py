"""ListGroups. v3 is flexible, v4 filters by state and returns it, v5 filters by type and returns it."""

from __future__ import annotations

from headwater.wire.schema import Int16, Int32, String, field, message, struct


@message(key=16, versions=(0, 5), flexible=3)
class ListGroupsRequest:
    states_filter: list[String] = field(since=4)
    types_filter: list[String] = field(since=5)


@struct
class ListedGroup:
    group_id: String = ""
    protocol_type: String = ""
    group_state: String = field(since=4, ignorable=True)
    group_type: String = field(since=5, ignorable=True)


@message(key=16, versions=(0, 5), flexible=3)
class ListGroupsResponse:
    throttle_time_ms: Int32 = field(since=1, ignorable=True)
    error_code: Int16 = 0
    groups: list[ListedGroup] = field()
