"""AlterConfigs: replace all settings of a resource; what is not named goes back to its default.

v2 is flexible.
"""

from __future__ import annotations

from headwater.wire.schema import Bool, Int8, Int16, Int32, String, field, message, struct


@struct
class AlterableConfig:
    name: String = ""
    value: String | None = ""


@struct
class AlterConfigsResource:
    resource_type: Int8 = 0
    resource_name: String = ""
    configs: list[AlterableConfig] = field()


@message(key=33, versions=(0, 2), flexible=2)
class AlterConfigsRequest:
    resources: list[AlterConfigsResource] = field()
    validate_only: Bool = False


@struct
class AlterConfigsResourceResponse:
    error_code: Int16 = 0
    error_message: String | None = ""
    resource_type: Int8 = 0
    resource_name: String = ""


@message(key=33, versions=(0, 2), flexible=2)
class AlterConfigsResponse:
    throttle_time_ms: Int32 = 0
    responses: list[AlterConfigsResourceResponse] = field()
