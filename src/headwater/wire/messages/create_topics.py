"""CreateTopics: new topics, checked only if `validate_only` says so.

v4 allows -1 for the broker's defaults, v5 is flexible and returns the configs, v7 returns the topic id.
"""

from __future__ import annotations

from headwater.wire.schema import Bool, Int8, Int16, Int32, String, Uuid, field, message, struct


@struct
class CreatableReplicaAssignment:
    partition_index: Int32 = 0
    broker_ids: list[Int32] = field()


@struct
class CreatableTopicConfig:
    name: String = ""
    value: String | None = ""


@struct
class CreatableTopic:
    name: String = ""
    num_partitions: Int32 = 0
    replication_factor: Int16 = 0
    assignments: list[CreatableReplicaAssignment] = field()
    configs: list[CreatableTopicConfig] = field()


@message(key=19, versions=(2, 7), flexible=5)
class CreateTopicsRequest:
    topics: list[CreatableTopic] = field()
    timeout_ms: Int32 = 60000
    validate_only: Bool = False


@struct
class CreatableTopicConfigs:
    name: String = ""
    value: String | None = ""
    read_only: Bool = False
    config_source: Int8 = -1
    is_sensitive: Bool = False


@struct
class CreatableTopicResult:
    name: String = ""
    topic_id: Uuid = field(since=7, ignorable=True)
    error_code: Int16 = 0
    error_message: String | None = ""
    topic_config_error_code: Int16 = field(since=5, tag=0, ignorable=True)
    num_partitions: Int32 = field(since=5, default=-1, ignorable=True)
    replication_factor: Int16 = field(since=5, default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = field(since=5, ignorable=True)


@message(key=19, versions=(2, 7), flexible=5)
class CreateTopicsResponse:
    throttle_time_ms: Int32 = 0
    topics: list[CreatableTopicResult] = field()
