"""A consumer and a producer that do by hand what clients do by themselves, one request at a time."""

from __future__ import annotations

import struct
from typing import Any

from headwater.wire import batch
from headwater.wire.errors import ErrorCode
from headwater.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from headwater.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from headwater.wire.messages.end_txn import EndTxnRequest
from headwater.wire.messages.heartbeat import HeartbeatRequest
from headwater.wire.messages.init_producer_id import InitProducerIdRequest
from headwater.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from headwater.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from headwater.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headwater.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from headwater.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from headwater.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)


def subscription(*topics: str) -> bytes:
    """Version 0 of the embedded consumer protocol."""
    body = struct.pack(">hi", 0, len(topics))
    for topic in topics:
        body += struct.pack(">h", len(topic)) + topic.encode()
    return body + struct.pack(">i", -1)


def join_request(group: str, member_id: str = "", **fields: Any) -> JoinGroupRequest:
    values: dict[str, Any] = {
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 60_000,
        "protocol_type": "consumer",
        "protocols": {"range": subscription("events")},
    }
    values.update(fields)
    values["protocols"] = [
        JoinGroupRequestProtocol(name=name, metadata=metadata)
        for name, metadata in values["protocols"].items()
    ]
    return JoinGroupRequest(group_id=group, member_id=member_id, **values)


class Consumer:
    """One member of a group over its own connection."""

    def __init__(
        self, world: Any, group: str, instance: str | None = None, name: str = "consumer", **fields: Any
    ):
        self.client = world.client(name)
        self.group = group
        self.instance = instance
        self.fields = fields
        self.member_id = ""
        self.generation = -1
        self.leader = False
        self.members: list[Any] = []
        self.assignment: bytes | None = None

    def send_join(self, version: int = 5) -> Any:
        fields = dict(self.fields, group_instance_id=self.instance) if version >= 5 else dict(self.fields)
        return self.client.submit(join_request(self.group, self.member_id, **fields), version)

    def take_join(self, pending: Any) -> ErrorCode:
        response = pending.response
        error = ErrorCode(response.error_code)
        if response.member_id:
            self.member_id = response.member_id
        if error == ErrorCode.NONE:
            self.generation = response.generation_id
            self.leader = response.leader == response.member_id
            self.members = response.members
        return error

    def join(self, version: int = 5) -> ErrorCode:
        """Until it is answered, with the second round that an unknown member needs."""
        for _ in range(2):
            pending = self.send_join(version)
            self.client.world.settle()
            while not pending.done:
                self.client.world.pass_to_next_deadline()
            error = self.take_join(pending)
            if error != ErrorCode.MEMBER_ID_REQUIRED:
                break
        return error

    def send_sync(self, assignment: dict[str, bytes] | None = None, version: int = 3) -> Any:
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=data)
                for member, data in (assignment or {}).items()
            ],
        )
        return self.client.submit(request, version)

    def sync(self, assignment: dict[str, bytes] | None = None) -> ErrorCode:
        pending = self.send_sync(assignment)
        self.client.world.settle()
        assert pending.done, "SyncGroup waits for the leader"
        self.assignment = bytes(pending.response.assignment)
        return ErrorCode(pending.response.error_code)

    def heartbeat(self) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance,
        )
        return ErrorCode(self.client.ask(request, 3).error_code)

    def leave(self) -> ErrorCode:
        identity = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance)
        request = LeaveGroupRequest(group_id=self.group, members=[identity])
        (member,) = self.client.ask(request, 3).members
        return ErrorCode(member.error_code)

    def commit(self, offset: int, topic: str = "events", partition: int = 0, **fields: Any) -> ErrorCode:
        request = commit_request(
            self.group, {(topic, partition): offset}, generation_id_or_member_epoch=self.generation,
            member_id=self.member_id, group_instance_id=self.instance, **fields,
        )  # fmt: skip
        return commit_error(self.client.ask(request, 8))


def start_alone(world: Any, group: str, **fields: Any) -> Consumer:
    """A group of one, Stable."""
    consumer = Consumer(world, group, **fields)
    assert consumer.join() == ErrorCode.NONE
    assert consumer.sync({consumer.member_id: b"everything"}) == ErrorCode.NONE
    return consumer


def start_together(world: Any, group: str, count: int, **fields: Any) -> list[Consumer]:
    """A Stable group; the leader comes first."""
    first = Consumer(world, group, **fields)
    assert first.join() == ErrorCode.NONE
    rest = [Consumer(world, group, **fields) for _ in range(count - 1)]
    for consumer in rest:
        answered = consumer.send_join()
        world.settle()
        assert consumer.take_join(answered) == ErrorCode.MEMBER_ID_REQUIRED
    waiting = [(consumer, consumer.send_join()) for consumer in [*rest, first]]
    world.settle()
    for consumer, pending in waiting:
        assert consumer.take_join(pending) == ErrorCode.NONE
    everybody = [first, *rest]
    (leader,) = (consumer for consumer in everybody if consumer.leader)
    syncs = [(consumer, consumer.send_sync()) for consumer in everybody if consumer is not leader]
    plan = {consumer.member_id: b"part of " + consumer.member_id.encode() for consumer in everybody}
    assert leader.sync(plan) == ErrorCode.NONE
    for consumer, pending in syncs:
        assert pending.response.error_code == ErrorCode.NONE
        consumer.assignment = bytes(pending.response.assignment)
    return [leader, *(consumer for consumer in everybody if consumer is not leader)]


def commit_request(group: str, offsets: dict[tuple[str, int], int], **fields: Any) -> OffsetCommitRequest:
    metadata = fields.pop("metadata", "")
    values: dict[str, Any] = {"generation_id_or_member_epoch": -1, **fields}
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, partition), offset in offsets.items():
        topics.setdefault(topic, []).append(
            OffsetCommitRequestPartition(
                partition_index=partition, committed_offset=offset, committed_metadata=metadata
            )
        )
    asked = [OffsetCommitRequestTopic(name=topic, partitions=parts) for topic, parts in topics.items()]
    return OffsetCommitRequest(group_id=group, topics=asked, **values)


def commit_error(response: Any) -> ErrorCode:
    return ErrorCode(response.topics[0].partitions[0].error_code)


def committed(
    client: Any, group: str, topic: str = "events", partition: int = 0, stable: bool = False
) -> int:
    """The committed offset; -1 if there is none, minus the error if there is one."""
    asked = OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group, topics=[asked])], require_stable=stable
    )
    part = client.ask(request, 8).groups[0].topics[0].partitions[0]
    return -part.error_code if part.error_code else part.committed_offset


class Producer:
    """A transactional producer of the first protocol; ``bump=True``: of the second (KIP-890)."""

    def __init__(self, world: Any, transactional_id: str, *, bump: bool = False, timeout_ms: int = 60_000):
        self.client = world.client(transactional_id)
        self.transactional_id = transactional_id
        self.bump = bump
        self.timeout_ms = timeout_ms
        self.producer_id = -1
        self.epoch = -1
        self.sequences: dict[tuple[str, int], int] = {}

    def owner(self) -> dict[str, Any]:
        return {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
        }

    def init(self, version: int = 4, **fields: Any) -> ErrorCode:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=self.timeout_ms, **fields
        )
        response = self.client.ask(request, version)
        if response.error_code == ErrorCode.NONE:
            self.producer_id, self.epoch = response.producer_id, response.producer_epoch
            self.sequences = {}
        return ErrorCode(response.error_code)

    def begin(self) -> None:
        """Take ownership, however often the broker says to come again."""
        for _ in range(3):
            error = self.init()
            if error != ErrorCode.CONCURRENT_TRANSACTIONS:
                break
        assert error == ErrorCode.NONE, error

    def add(self, topic: str, *partitions: int, version: int = 3) -> ErrorCode:
        owner = {f"v3_and_below_{name}": value for name, value in self.owner().items()}
        asked = [AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))]
        response = self.client.ask(AddPartitionsToTxnRequest(v3_and_below_topics=asked, **owner), version)
        return ErrorCode(
            response.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
        )  # fmt: skip

    def add_offsets(self, group: str, version: int = 3) -> ErrorCode:
        request = AddOffsetsToTxnRequest(group_id=group, **self.owner())
        return ErrorCode(self.client.ask(request, version).error_code)

    def write(self, topic: str, value: bytes, partition: int = 0, version: int | None = None) -> ErrorCode:
        sequence = self.sequences.get((topic, partition), 0)
        data = batch.build(
            [batch.Record(0, 1_700_000_000_000, b"key", value, ())],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        answer = self.client.produce(
            topic, data, partition, version=version or (12 if self.bump else 9),
            transactional_id=self.transactional_id,
        )  # fmt: skip
        if answer.error_code == ErrorCode.NONE:
            self.sequences[topic, partition] = sequence + 1
        return ErrorCode(answer.error_code)

    def commit_offset(
        self, group: str, offset: int, topic: str = "events", partition: int = 0, version: int | None = None,
        **fields: Any,
    ) -> ErrorCode:  # fmt: skip
        part = TxnOffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata=""
        )
        topics = [TxnOffsetCommitRequestTopic(name=topic, partitions=[part])]
        request = TxnOffsetCommitRequest(group_id=group, topics=topics, **self.owner(), **fields)
        return commit_error(self.client.ask(request, version or (5 if self.bump else 3)))

    def end(self, commit: bool, version: int | None = None) -> ErrorCode:
        request = EndTxnRequest(committed=commit, **self.owner())
        version = version or (5 if self.bump else 3)
        response = self.client.ask(request, version)
        if version >= 5 and response.error_code == ErrorCode.NONE and response.producer_epoch != self.epoch:
            self.producer_id, self.epoch = response.producer_id, response.producer_epoch
            self.sequences = {}
        return ErrorCode(response.error_code)


def read_committed(client: Any, topic: str, partition: int = 0) -> list[bytes]:
    """The values that a read_committed consumer gets from the beginning."""
    answer = client.fetch(topic, 0, partition, isolation_level=1, max_bytes=1 << 20)
    assert answer.error_code == ErrorCode.NONE, answer
    aborted = sorted((each.first_offset, each.producer_id) for each in answer.aborted_transactions or ())
    view = memoryview(bytes(answer.records or b""))
    values: list[bytes] = []
    dropped: set[int] = set()
    for position, header in batch.headers(view):
        while aborted and aborted[0][0] <= header.base_offset:
            dropped.add(aborted.pop(0)[1])
        if header.is_control:
            dropped.discard(header.producer_id)
            continue
        if header.is_transactional and header.producer_id in dropped:
            continue
        whole = view[position : position + header.size]
        values.extend(bytes(record.value) for record in batch.records(whole) if record.value is not None)
    return values
