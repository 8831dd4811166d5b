"""Short ways to build the requests that scenarios send again and again, and to make the topics that they need."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from headwater.wire import batch
from headwater.wire.messages import (
    create_topics,
    fetch,
    join_group,
    list_offsets,
    offset_commit,
    offset_fetch,
    produce,
)
from tests.peers.prober import Session

NO_TOPIC_ID = bytes(16)
LED_ASKS_MAX = 2000
WALL_MS = int(time.time() * 1000) - 60_000  # one for both brokers; an old one would roll segments and expire


def create(name: str, partitions: int = 1, replication: int = 1, configs: Mapping[str, str | None] = {},
           **fields: object) -> create_topics.CreateTopicsRequest:  # fmt: skip
    configured = [create_topics.CreatableTopicConfig(name=key, value=value) for key, value in configs.items()]
    topic = create_topics.CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=replication, configs=configured
    )
    return create_topics.CreateTopicsRequest(topics=[topic], timeout_ms=30_000, **fields)  # type: ignore[arg-type]


def made(session: Session, word: str, partitions: int = 1, configs: Mapping[str, str | None] = {}) -> bytes:
    """Makes the topic of this word and waits until each partition is led: Apache Kafka answers a moment before."""
    topic = session.name(word)
    answer = session.quietly(
        create(topic, partitions, configs=configs), create_topics.CreateTopicsResponse, 7
    )
    for partition in range(partitions):
        for _ in range(LED_ASKS_MAX):
            found = session.quietly(
                offsets_at(topic, -1, partition=partition), list_offsets.ListOffsetsResponse, 7
            )
            if found.topics[0].partitions[0].error_code == 0:
                break
    return answer.topics[0].topic_id


def records(count: int = 1, *, value: bytes = b"value", at: int = WALL_MS, key: bytes | None = b"key",
            **fields: object) -> bytearray:  # fmt: skip
    made = [batch.Record(number, at + number, key, b"%s-%d" % (value, number), ()) for number in range(count)]
    return batch.build(made, **fields)  # type: ignore[arg-type]


def produce_to(
    name: str,
    data: bytes | bytearray | None,
    *,
    partition: int = 0,
    acks: int = -1,
    transactional_id: str | None = None,
    topic_id: bytes = NO_TOPIC_ID,
) -> produce.ProduceRequest:
    part = produce.PartitionProduceData(index=partition, records=data)
    topic = produce.TopicProduceData(
        name=name if topic_id == NO_TOPIC_ID else "", topic_id=topic_id, partition_data=[part]
    )
    return produce.ProduceRequest(
        transactional_id=transactional_id, acks=acks, timeout_ms=10_000, topic_data=[topic]
    )


def fetch_from(name: str, offset: int = 0, *, partition: int = 0, max_wait_ms: int = 0, min_bytes: int = 0,
               max_bytes: int = 1 << 20, partition_max_bytes: int = 1 << 20, isolation: int = 0,
               epoch: int = -1, topic_id: bytes = NO_TOPIC_ID, **fields: int) -> fetch.FetchRequest:  # fmt: skip
    part = fetch.FetchPartition(
        partition=partition,
        fetch_offset=offset,
        partition_max_bytes=partition_max_bytes,
        current_leader_epoch=epoch,
    )
    topic = fetch.FetchTopic(
        topic=name if topic_id == NO_TOPIC_ID else "", topic_id=topic_id, partitions=[part]
    )
    return fetch.FetchRequest(max_wait_ms=max_wait_ms, min_bytes=min_bytes, max_bytes=max_bytes,
                              isolation_level=isolation, topics=[topic], **fields)  # fmt: skip


def offsets_at(name: str, *timestamps: int, partition: int = 0, isolation: int = 0,
               epoch: int = -1) -> list_offsets.ListOffsetsRequest:  # fmt: skip
    asked = [
        list_offsets.ListOffsetsPartition(partition_index=partition, timestamp=at, current_leader_epoch=epoch)
        for at in timestamps
    ]
    topic = list_offsets.ListOffsetsTopic(name=name, partitions=asked)
    return list_offsets.ListOffsetsRequest(
        replica_id=-1, isolation_level=isolation, topics=[topic], timeout_ms=10_000
    )


def join(group: str, member: str = "", *, instance: str | None = None, protocols: Sequence[str] = ("range",),
         protocol_type: str = "consumer", session_ms: int = 10_000, metadata: bytes = b"meta",
         rebalance_ms: int = 10_000) -> join_group.JoinGroupRequest:  # fmt: skip
    offered = [join_group.JoinGroupRequestProtocol(name=name, metadata=metadata) for name in protocols]
    return join_group.JoinGroupRequest(
        group_id=group, session_timeout_ms=session_ms, rebalance_timeout_ms=rebalance_ms, member_id=member,
        group_instance_id=instance, protocol_type=protocol_type, protocols=offered,
    )  # fmt: skip


def commit(group: str, topic: str, offset: int, *, partition: int = 0, generation: int = -1, member: str = "",
           metadata: str | None = "", instance: str | None = None,
           topic_id: bytes = NO_TOPIC_ID) -> offset_commit.OffsetCommitRequest:  # fmt: skip
    part = offset_commit.OffsetCommitRequestPartition(
        partition_index=partition, committed_offset=offset, committed_metadata=metadata
    )
    asked = offset_commit.OffsetCommitRequestTopic(
        name=topic if topic_id == NO_TOPIC_ID else "", topic_id=topic_id, partitions=[part]
    )
    return offset_commit.OffsetCommitRequest(
        group_id=group, generation_id_or_member_epoch=generation, member_id=member, group_instance_id=instance,
        topics=[asked],
    )  # fmt: skip


def committed(group: str, topic: str | None, *partitions: int, stable: bool = False,
              version: int = 7) -> offset_fetch.OffsetFetchRequest:  # fmt: skip
    if version >= 8:
        topics = None if topic is None else [
            offset_fetch.OffsetFetchRequestTopics(name=topic, partition_indexes=list(partitions))
        ]  # fmt: skip
        asked = offset_fetch.OffsetFetchRequestGroup(group_id=group, topics=topics)
        return offset_fetch.OffsetFetchRequest(groups=[asked], require_stable=stable)
    old = None if topic is None else [
        offset_fetch.OffsetFetchRequestTopic(name=topic, partition_indexes=list(partitions))
    ]  # fmt: skip
    return offset_fetch.OffsetFetchRequest(group_id=group, topics=old, require_stable=stable)
