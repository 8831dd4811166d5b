"""FindCoordinator: the broker that keeps a group (key type 0) or a transactional id (1).

v1 adds the key type, v3 is flexible, v4 asks for many keys at once and answers in a list, v6 adds share
groups (2).
"""

from __future__ import annotations

from headwater.wire.schema import Int8, Int16, Int32, String, field, message, struct


@message(key=10, versions=(0, 6), flexible=3)
class FindCoordinatorRequest:
    key: String = field(until=3)
    key_type: Int8 = field(since=1)
    coordinator_keys: list[String] = field(since=4)


@struct
class Coordinator:
    key: String = ""
    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""


@message(key=10, versions=(0, 6), flexible=3)
class FindCoordinatorResponse:
    throttle_time_ms: Int32 = field(since=1, ignorable=True)
    error_code: Int16 = field(until=3)
    error_message: String | None = field(since=1, until=3, ignorable=True)
    node_id: Int32 = field(until=3)
    host: String = field(until=3)
    port: Int32 = field(until=3)
    coordinators: list[Coordinator] = field(since=4)
