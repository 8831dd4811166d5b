"""DescribeConfigs: every setting of a topic, broker or group, with its source.

v1 adds sources and synonyms, v3 types and documentation, v4 is flexible.
"""

from __future__ import annotations

from headwater.wire.schema import Bool, Int8, Int16, Int32, String, field, message, struct


@struct
class DescribeConfigsResource:
    resource_type: Int8 = 0
    resource_name: String = ""
    configuration_keys: list[String] | None = field()


@message(key=32, versions=(1, 4), flexible=4)
class DescribeConfigsRequest:
    resources: list[DescribeConfigsResource] = field()
    include_synonyms: Bool = False
    include_documentation: Bool = field(since=3)


@struct
class DescribeConfigsSynonym:
    name: String = ""
    value: String | None = ""
    source: Int8 = 0


@struct
class DescribeConfigsResourceResult:
    name: String = ""
    value: String | None = ""
    read_only: Bool = False
    config_source: Int8 = -1
    is_sensitive: Bool = False
    synonyms: list[DescribeConfigsSynonym] = field()
    config_type: Int8 = field(since=3, ignorable=True)
    documentation: String | None = field(since=3, ignorable=True)


@struct
class DescribeConfigsResult:
    error_code: Int16 = 0
    error_message: String | None = ""
    resource_type: Int8 = 0
    resource_name: String = ""
    configs: list[DescribeConfigsResourceResult] = field()


@message(key=32, versions=(1, 4), flexible=4)
class DescribeConfigsResponse:
    throttle_time_ms: Int32 = 0
    results: list[DescribeConfigsResult] = field()
