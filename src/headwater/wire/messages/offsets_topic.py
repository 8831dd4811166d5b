"""Records of `__consumer_offsets`. Key and value each begin with their version as int16.

The version of a key says what the record is: 0 and 1 an offset, 2 a classic group. Keys are never flexible;
values are from v4 on. A null value is a tombstone.
"""

from __future__ import annotations

from headwater.wire.schema import Bytes, Int32, Int64, String, Uuid, field, message, struct


@message(versions=(0, 1))
class OffsetCommitKey:
    group: String = ""
    topic: String = ""
    partition: Int32 = 0


@message(versions=(0, 4), flexible=4)
class OffsetCommitValue:
    offset: Int64 = 0
    leader_epoch: Int32 = field(since=3, default=-1, ignorable=True)
    metadata: String = ""
    commit_timestamp: Int64 = 0
    expire_timestamp: Int64 = field(since=1, until=1, default=-1, ignorable=True)
    topic_id: Uuid = field(since=4, tag=0, ignorable=True)


@message(versions=(2, 2))
class GroupMetadataKey:
    group: String = ""


@struct
class MemberMetadata:
    member_id: String = ""
    group_instance_id: String | None = field(since=3, default=None, ignorable=True)
    client_id: String = ""
    client_host: String = ""
    rebalance_timeout: Int32 = field(since=1, default=-1, ignorable=True)
    session_timeout: Int32 = 0
    subscription: Bytes = b""
    assignment: Bytes = b""


@message(versions=(0, 4), flexible=4)
class GroupMetadataValue:
    protocol_type: String = ""
    generation: Int32 = 0
    protocol: String | None = ""
    leader: String | None = ""
    current_state_timestamp: Int64 = field(since=2, default=-1, ignorable=True)
    members: list[MemberMetadata] = field()
