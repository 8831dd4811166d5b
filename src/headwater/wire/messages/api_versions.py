"""ApiVersions: which APIs and versions this broker speaks. The first request on every connection.

v3 is flexible (the response header never is) and adds the client's software and the broker's features; v4
lets a feature's lowest version be 0. A version that the broker does not know is answered in v0.
"""

from __future__ import annotations

from headwater.wire.schema import Bool, Int16, Int32, Int64, String, field, message, struct


@message(key=18, versions=(0, 4), flexible=3)
class ApiVersionsRequest:
    client_software_name: String = field(since=3, ignorable=True)
    client_software_version: String = field(since=3, ignorable=True)


@struct
class ApiVersion:
    api_key: Int16 = 0
    min_version: Int16 = 0
    max_version: Int16 = 0


@struct
class SupportedFeatureKey:
    name: String = ""
    min_version: Int16 = 0
    max_version: Int16 = 0


@struct
class FinalizedFeatureKey:
    name: String = ""
    max_version_level: Int16 = 0
    min_version_level: Int16 = 0


@message(key=18, versions=(0, 4), flexible=3)
class ApiVersionsResponse:
    error_code: Int16 = 0
    api_keys: list[ApiVersion] = field()
    throttle_time_ms: Int32 = field(since=1, ignorable=True)
    supported_features: list[SupportedFeatureKey] = field(since=3, tag=0, ignorable=True)
    finalized_features_epoch: Int64 = field(since=3, default=-1, tag=1, ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = field(since=3, tag=2, ignorable=True)
    zk_migration_ready: Bool = field(since=3, tag=3, ignorable=True)
