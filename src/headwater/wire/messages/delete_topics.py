"""DeleteTopics. v4 is flexible, v5 returns messages, v6 takes topics by name or id."""

from __future__ import annotations

from headwater.wire.schema import ZERO_UUID, Int16, Int32, String, Uuid, field, message, struct


@struct
class DeleteTopicState:
    name: String | None = None
    topic_id: Uuid = ZERO_UUID


@message(key=20, versions=(1, 6), flexible=4)
class DeleteTopicsRequest:
    topics: list[DeleteTopicState] = field(since=6)
    topic_names: list[String] = field(until=5, ignorable=True)
    timeout_ms: Int32 = 0


@struct
class DeletableTopicResult:
    name: String | None = field(nullable_since=6)
    topic_id: Uuid = field(since=6, ignorable=True)
    error_code: Int16 = 0
    error_message: String | None = field(since=5, default=None, ignorable=True)


@message(key=20, versions=(1, 6), flexible=4)
class DeleteTopicsResponse:
    throttle_time_ms: Int32 = 0
    responses: list[DeletableTopicResult] = field()
