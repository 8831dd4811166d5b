"""DeleteGroups: forget empty groups and their offsets. v2 is flexible."""

from __future__ import annotations

from headwater.wire.schema import Int16, Int32, String, field, message, struct


@message(key=42, versions=(0, 2), flexible=2)
class DeleteGroupsRequest:
    groups_names: list[String] = field()


@struct
class DeletableGroupResult:
    group_id: String = ""
    error_code: Int16 = 0


@message(key=42, versions=(0, 2), flexible=2)
class DeleteGroupsResponse:
    throttle_time_ms: Int32 = 0
    results: list[DeletableGroupResult] = field()
