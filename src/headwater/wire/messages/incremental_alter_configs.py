"""IncrementalAlterConfigs: set (0), delete (1), append to (2) or subtract from (3) single settings.

v1 is flexible.
"""

from __future__ import annotations

from headwater.wire.schema import Bool, Int8, Int16, Int32, String, field, message, struct


@struct
class AlterableConfig:
    name: String = ""
    config_operation: Int8 = 0
    value: String | None = ""


@struct
class AlterConfigsResource:
    resource_type: Int8 = 0
    resource_name: String = ""
    configs: list[AlterableConfig] = field()


@message(key=44, versions=(0, 1), flexible=1)
class IncrementalAlterConfigsRequest:
    resources: list[AlterConfigsResource] = field()
    validate_only: Bool = False


@struct
class AlterConfigsResourceResponse:
    error_code: Int16 = 0
    error_message: String | None = ""
    resource_type: Int8 = 0
    resource_name: String = ""


@message(key=44, versions=(0, 1), flexible=1)
class IncrementalAlterConfigsResponse:
    throttle_time_ms: Int32 = 0
    responses: list[AlterConfigsResourceResponse] = field()
