"""ListConfigResources: what has settings of its own. v0 knows client metrics only, v1 filters by type."""

from __future__ import annotations

from headwater.wire.schema import Int8, Int16, Int32, String, field, message, struct


@message(key=74, versions=(0, 1), flexible=0)
class ListConfigResourcesRequest:
    resource_types: list[Int8] = field(since=1)


@struct
class ConfigResource:
    resource_name: String = ""
    resource_type: Int8 = field(since=1, default=16, ignorable=True)


@message(key=74, versions=(0, 1), flexible=0)
class ListConfigResourcesResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    config_resources: list[ConfigResource] = field()
