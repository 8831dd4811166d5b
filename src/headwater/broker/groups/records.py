"""What a group is at rest: the records of ``__consumer_offsets``, in Apache Kafka's own formats.

| key (int16 version, then fields) | value                                                     |
| 0, 1: group, topic, partition    | a committed offset: version 1 with an expiry time, else 4 |
| 2: group                         | generation, protocol, members and assignment: version 3   |

A tombstone takes the offset, or the group, away.

A record is valid iff its key version is one of these and key and value parse to their last byte. Records
of other key versions (newer group protocols, were Kafka to have written here) are left alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.broker.groups.group import EMPTY, STABLE, Group
from headwater.broker.groups.members import Member
from headwater.broker.groups.offsets import NO_TOPIC_ID, CommittedOffset
from headwater.wire import schema
from headwater.wire.messages.offsets_topic import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)

if TYPE_CHECKING:
    from headwater.broker.groups.coordinator import Groups

Record = tuple[bytes, bytes | None]
OFFSET_KEY = 1
GROUP_KEY = 2
OFFSET_VALUE_WITH_EXPIRY = 1
OFFSET_VALUE = 4
GROUP_VALUE = 3


def versioned(message: Any, version: int) -> bytes:
    """A message as a record's key or value: its version first."""
    return version.to_bytes(2, "big") + b"".join(schema.encode(message, version))


def parse(cls: Any, data: bytes) -> Any:
    version = int.from_bytes(data[:2], "big")
    return schema.decode(cls, version, memoryview(data), 2)


# ---------------------------------------------------------------------- offsets


class OffsetKey(NamedTuple):
    group: str
    topic: str
    partition: int


def offset_record(key: OffsetKey, committed: CommittedOffset | None) -> Record:
    encoded = versioned(
        OffsetCommitKey(group=key.group, topic=key.topic, partition=key.partition), OFFSET_KEY
    )
    if committed is None:
        return encoded, None
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp_ms,
    )
    if committed.expire_timestamp_ms >= 0:
        value.expire_timestamp = committed.expire_timestamp_ms
        return encoded, versioned(value, OFFSET_VALUE_WITH_EXPIRY)
    value.topic_id = committed.topic_id
    return encoded, versioned(value, OFFSET_VALUE)


def committed_offset(value: OffsetCommitValue, record_offset: int) -> CommittedOffset:
    return CommittedOffset(
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        commit_timestamp_ms=value.commit_timestamp,
        expire_timestamp_ms=value.expire_timestamp,
        topic_id=bytes(value.topic_id) if value.topic_id is not None else NO_TOPIC_ID,
        record_offset=record_offset,
    )


# ----------------------------------------------------------------------- groups


def empty_group_record(group: Group) -> Record:
    """A group that was just made: it has a name and nothing else."""
    value = GroupMetadataValue(
        protocol_type="", generation=0, protocol=None, leader=None,
        current_state_timestamp=group.state_timestamp_ms, members=[],
    )  # fmt: skip
    return _group_key(group.group_id), versioned(value, GROUP_VALUE)


def group_record(group: Group, assignment: dict[str, bytes]) -> Record:
    members = [
        MemberMetadata(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout=member.rebalance_timeout_ms,
            session_timeout=member.session_timeout_ms,
            subscription=member.metadata(group.protocol_name),
            assignment=assignment[member.member_id],
        )
        for member in group.members.values()
    ]
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp=group.state_timestamp_ms,
        members=members,
    )
    return _group_key(group.group_id), versioned(value, GROUP_VALUE)


def group_tombstone(group_id: str) -> Record:
    return _group_key(group_id), None


def _group_key(group_id: str) -> bytes:
    return versioned(GroupMetadataKey(group=group_id), GROUP_KEY)


def group_from(group_id: str, value: GroupMetadataValue, now_ms: int) -> Group:
    """The group as it was when this was written: Stable with its members, or Empty."""
    group = Group(group_id, now_ms, STABLE if value.members else EMPTY)
    group.generation = value.generation
    group.protocol_name = value.protocol
    group.leader_id = value.leader
    group.state_timestamp_ms = value.current_state_timestamp
    for each in value.members:
        rebalance_ms = each.session_timeout if each.rebalance_timeout == -1 else each.rebalance_timeout
        group.add(
            Member(
                each.member_id, each.group_instance_id, each.client_id, each.client_host, rebalance_ms,
                each.session_timeout, value.protocol_type, [(value.protocol or "", bytes(each.subscription))],
                bytes(each.assignment),
            )
        )  # fmt: skip
    group.protocol_type = value.protocol_type or None
    group.subscribed = group.compute_subscribed()
    return group


# ---------------------------------------------------------------------- loading


def load_record(
    groups: Groups, index: int, offset: int, producer_id: int, key: bytes, value: bytes | None
) -> None:
    """One record of partition ``index``, at start. ``producer_id`` is -1 outside a transaction."""
    version = int.from_bytes(key[:2], "big")
    if version <= OFFSET_KEY:
        parsed = parse(OffsetCommitKey, key)
        name = OffsetKey(parsed.group, parsed.topic, parsed.partition)
        committed = None if value is None else committed_offset(parse(OffsetCommitValue, value), offset)
        groups.load_offset(index, producer_id, name, committed)
    elif version == GROUP_KEY:
        group_id = parse(GroupMetadataKey, key).group
        if value is None:
            groups.load_group(group_id, None)
        else:
            now_ms = groups.clock.wall_ms()
            groups.load_group(group_id, group_from(group_id, parse(GroupMetadataValue, value), now_ms))
