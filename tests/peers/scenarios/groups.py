"""Classic groups: joining, rebalancing, leaving, static members, offsets, administration."""

from __future__ import annotations

from headwater.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from headwater.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from headwater.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from headwater.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from headwater.wire.messages.join_group import JoinGroupResponse
from headwater.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from headwater.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from headwater.wire.messages.offset_commit import OffsetCommitResponse
from headwater.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from headwater.wire.messages.offset_fetch import OffsetFetchResponse
from headwater.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from tests.peers.prober import Session, scenario
from tests.peers.requests import commit, committed, join, made

JOIN, SYNC = 9, 5


def coordinated(session: Session, word: str, *, kind: int = 0) -> str:
    """A group's name, once its coordinator answers (a young Apache Kafka makes its internal topics first)."""
    name = session.name(word)
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[name])
    for _ in range(2000):
        answer = session.quietly(request, FindCoordinatorResponse, 4)
        if answer.coordinators[0].error_code == 0:
            break
    for _ in range(2000):
        if kind or session.quietly(committed(name, None), OffsetFetchResponse, 7).error_code not in (
            14,
            15,
            16,
        ):
            break
    return name


def topic_of(session: Session, word: str, partitions: int = 2) -> str:
    made(session, word, partitions)
    return session.name(word)


def sync(group: str, generation: int, member: str, *assigned: tuple[str, bytes], instance: str | None = None,
         protocol: str | None = "range", kind: str | None = "consumer") -> SyncGroupRequest:  # fmt: skip
    rows = [SyncGroupRequestAssignment(member_id=name, assignment=data) for name, data in assigned]
    return SyncGroupRequest(group_id=group, generation_id=generation, member_id=member, group_instance_id=instance,
                            protocol_type=kind, protocol_name=protocol, assignments=rows)  # fmt: skip


def beat(group: str, generation: int, member: str, instance: str | None = None) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=group, generation_id=generation, member_id=member, group_instance_id=instance
    )


def alone(session: Session, group: str, **fields: str) -> tuple[str, int]:
    """One member that has joined and holds an assignment: its id and generation."""
    first = session.quietly(join(group, **fields), JoinGroupResponse, JOIN)  # type: ignore[arg-type]
    joined = first
    if first.error_code == 79:
        joined = session.quietly(join(group, first.member_id, **fields), JoinGroupResponse, JOIN)  # type: ignore[arg-type]
    everything = (joined.member_id, b"all")
    request = sync(group, joined.generation_id, joined.member_id, everything, instance=fields.get("instance"))
    session.quietly(request, SyncGroupResponse, SYNC)
    return joined.member_id, joined.generation_id


def members_of(group: str, *names: str, instances: bool = False) -> LeaveGroupRequest:
    if instances:
        rows = [MemberIdentity(member_id="", group_instance_id=name) for name in names]
    else:
        rows = [MemberIdentity(member_id=name) for name in names]
    return LeaveGroupRequest(group_id=group, members=rows)


@scenario
def coordinators(session: Session) -> None:
    group = coordinated(session, "found")
    for version in range(7):
        many = [group, session.name("other")]
        request = (
            FindCoordinatorRequest(key=group)
            if version < 4
            else FindCoordinatorRequest(coordinator_keys=many)
        )
        session.ask("coordinator", request, FindCoordinatorResponse, version)
    for kind in (2, 9):
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[group])
        session.ask(f"kind {kind}", request, FindCoordinatorResponse, 4)
    session.ask("empty", FindCoordinatorRequest(key="", key_type=0), FindCoordinatorResponse, 3)


@scenario
def one_member_in_every_version(session: Session) -> None:
    for version in range(10):
        group = coordinated(session, f"one-{version}")
        first = session.ask("first join", join(group), JoinGroupResponse, version)
        joined = first
        if first.error_code == 79:
            joined = session.ask("second join", join(group, first.member_id), JoinGroupResponse, version)
        member, generation = joined.member_id, joined.generation_id
        session.ask(
            "sync", sync(group, generation, member, (member, b"all")), SyncGroupResponse, min(version, SYNC)
        )
        session.ask("heartbeat", beat(group, generation, member), HeartbeatResponse, min(version, 4))
        leave = (
            members_of(group, member) if version >= 3 else LeaveGroupRequest(group_id=group, member_id=member)
        )
        session.ask("leave", leave, LeaveGroupResponse, min(version, 5))
        session.ask("heartbeat after", beat(group, generation, member), HeartbeatResponse, min(version, 4))


@scenario
def joins_that_are_refused(session: Session) -> None:
    group = coordinated(session, "refused")
    cases = {
        "no group": join(""),
        "unknown member": join(group, "nobody"),
        "short session": join(group, session_ms=10),
        "long session": join(group, session_ms=10**9),
        "no protocols": join(group, protocols=()),
        "no protocol type": join(group, protocol_type=""),
    }
    for label, request in cases.items():
        session.ask(label, request, JoinGroupResponse, JOIN)
        session.ask(label, request, JoinGroupResponse, 3)


@scenario
def protocols_that_do_not_fit(session: Session) -> None:
    group = coordinated(session, "protocols")
    alone(session, group)
    session.ask("another type", join(group, protocol_type="connect"), JoinGroupResponse, JOIN, on="b")
    session.ask("another protocol", join(group, protocols=("sticky",)), JoinGroupResponse, JOIN, on="b")


@scenario
def two_members(session: Session) -> None:
    """Apache Kafka lists members in the order of a hash table."""
    group = coordinated(session, "two")
    a, generation = alone(session, group)
    b = session.ask(
        "b first", join(group, protocols=("sticky", "range")), JoinGroupResponse, JOIN, on="b"
    ).member_id
    session.send(join(group, b, protocols=("sticky", "range")), JOIN, on="b")
    until(session, group, generation, a, 27)
    session.ask("a before", DescribeGroupsRequest(groups=[group]), DescribeGroupsResponse, 5, by="member_id")
    session.ask("a heartbeat", beat(group, generation, a), HeartbeatResponse, 4)
    joined = session.ask("a again", join(group, a), JoinGroupResponse, JOIN, by="member_id")
    session.receive("b joined", JoinGroupResponse, JOIN, on="b")
    now = joined.generation_id
    session.ask("a old generation", beat(group, generation, a), HeartbeatResponse, 4)
    session.ask("a while syncing", beat(group, now, a), HeartbeatResponse, 4)
    session.send(sync(group, now, b), SYNC, on="b")
    session.ask("a sync", sync(group, now, a, (a, b"left"), (b, b"right")), SyncGroupResponse, SYNC)
    session.receive("b sync", SyncGroupResponse, SYNC, on="b")
    session.ask("described", DescribeGroupsRequest(groups=[group]), DescribeGroupsResponse, 5, by="member_id")
    session.ask("b leaves", members_of(group, b), LeaveGroupResponse, 5, on="b")
    session.ask("a heartbeat after", beat(group, now, a), HeartbeatResponse, 4)


def until(session: Session, group: str, generation: int, member: str, error: int) -> None:
    """Asks, unnoted, until a heartbeat gives this error: the other member's request has arrived."""
    for _ in range(2000):
        if session.quietly(beat(group, generation, member), HeartbeatResponse, 4).error_code == error:
            return


@scenario
def syncs_and_heartbeats_that_are_refused(session: Session) -> None:
    group = coordinated(session, "wrong")
    member, generation = alone(session, group)
    session.ask("sync unknown member", sync(group, generation, "nobody"), SyncGroupResponse, SYNC)
    session.ask("sync old generation", sync(group, generation - 1, member), SyncGroupResponse, SYNC)
    session.ask("sync unknown group", sync(session.name("none"), 1, member), SyncGroupResponse, SYNC)
    session.ask(
        "sync other protocol", sync(group, generation, member, protocol="sticky"), SyncGroupResponse, SYNC
    )
    session.ask("sync other type", sync(group, generation, member, kind="connect"), SyncGroupResponse, SYNC)
    session.ask(
        "sync no type", sync(group, generation, member, kind=None, protocol=None), SyncGroupResponse, SYNC
    )
    session.ask("sync again", sync(group, generation, member), SyncGroupResponse, SYNC)
    session.ask("beat unknown member", beat(group, generation, "nobody"), HeartbeatResponse, 4)
    session.ask("beat no member", beat(group, generation, ""), HeartbeatResponse, 4)
    session.ask("beat generation", beat(group, generation + 1, member), HeartbeatResponse, 4)
    session.ask("beat unknown group", beat(session.name("none"), 1, member), HeartbeatResponse, 4)
    session.ask("beat unknown instance", beat(group, generation, member, "who"), HeartbeatResponse, 4)
    session.ask("leave unknown", members_of(group, "nobody", member), LeaveGroupResponse, 5)
    session.ask("leave unknown group", members_of(session.name("none"), "nobody"), LeaveGroupResponse, 5)
    session.ask(
        "leave unknown old", LeaveGroupRequest(group_id=group, member_id="nobody"), LeaveGroupResponse, 2
    )


@scenario
def static_members(session: Session) -> None:
    group = coordinated(session, "static")
    a, generation = alone(session, group, instance="one")
    session.ask("same again", join(group, a, instance="one"), JoinGroupResponse, JOIN)
    came_back = session.ask("came back", join(group, instance="one"), JoinGroupResponse, JOIN)
    now = came_back.generation_id
    session.ask("old id heartbeat", beat(group, now, a, "one"), HeartbeatResponse, 4)
    session.ask("old id join", join(group, a, instance="one"), JoinGroupResponse, JOIN)
    session.ask(
        "old id commit",
        commit(group, "t", 5, generation=now, member=a, instance="one"),
        OffsetCommitResponse,
        8,
    )
    session.ask("new id sync", sync(group, now, came_back.member_id, instance="one"), SyncGroupResponse, SYNC)
    session.ask("described", DescribeGroupsRequest(groups=[group]), DescribeGroupsResponse, 5)
    session.ask("unknown instance", join(group, came_back.member_id, instance="two"), JoinGroupResponse, JOIN)
    session.ask("leaves", members_of(group, "one", "nobody", instances=True), LeaveGroupResponse, 5)


@scenario
def offsets_of_a_simple_group(session: Session) -> None:
    group, topic = coordinated(session, "simple"), topic_of(session, "simple-topic")
    for version in range(2, 10):
        session.ask(
            "commit",
            commit(group, topic, 10 + version, metadata=f"m{version}"),
            OffsetCommitResponse,
            version,
        )
        asked = min(version - 1, 9)
        session.ask("fetch", committed(group, topic, 0, 1, 7, version=asked), OffsetFetchResponse, asked)
    for version in (2, 5, 7, 8, 9):
        session.ask("all", committed(group, None, version=version), OffsetFetchResponse, version)
    session.ask("stable", committed(group, topic, 0, stable=True), OffsetFetchResponse, 7)
    session.ask("none", committed(session.name("nobody"), topic, 0), OffsetFetchResponse, 7)
    session.ask("none, all", committed(session.name("nobody"), None), OffsetFetchResponse, 7)
    session.ask("unknown topic", committed(group, session.name("no"), 0), OffsetFetchResponse, 7)


@scenario
def offsets_by_topic_id(session: Session) -> None:
    group, topic = coordinated(session, "by-id"), session.name("id-topic")
    topic_id = made(session, "id-topic")
    session.ask("commit", commit(group, topic, 4, topic_id=topic_id), OffsetCommitResponse, 10)
    request = committed(group, topic, 0, version=10)
    request.groups[0].topics[0].topic_id = topic_id  # type: ignore[index]
    session.ask("fetch", request, OffsetFetchResponse, 10)
    session.ask("all", committed(group, None, version=10), OffsetFetchResponse, 10)
    answer = session.quietly(commit(group, topic, 4, topic_id=b"\x03" * 16), OffsetCommitResponse, 10)
    session.note("unknown id", [part.error_code for part in answer.topics[0].partitions])


@scenario
def commits_that_are_refused(session: Session) -> None:
    group, topic = coordinated(session, "commits"), topic_of(session, "commits-topic")
    member, generation = alone(session, group)
    cases = {
        "unknown partition": commit(group, topic, 1, partition=9, generation=generation, member=member),
        "unknown topic": commit(group, session.name("no"), 1, generation=generation, member=member),
        "old generation": commit(group, topic, 1, generation=generation - 1, member=member),
        "unknown member": commit(group, topic, 1, generation=generation, member="nobody"),
        "no member": commit(group, topic, 1),
        "unknown instance": commit(group, topic, 1, generation=generation, member=member, instance="who"),
        "long metadata": commit(group, topic, 1, generation=generation, member=member, metadata="m" * 5000),
        "null metadata": commit(group, topic, 1, generation=generation, member=member, metadata=None),
        "negative": commit(group, topic, -5, generation=generation, member=member),
        "unknown group with a member": commit(session.name("none"), topic, 1, generation=3, member="nobody"),
        "no group": commit("", topic, 1),
        "right": commit(group, topic, 7, generation=generation, member=member),
    }
    for label, request in cases.items():
        session.ask(label, request, OffsetCommitResponse, 8)
    session.ask("then", committed(group, topic, 0, 1), OffsetFetchResponse, 7)


@scenario
def administration(session: Session) -> None:
    group, topic = coordinated(session, "admin"), topic_of(session, "admin-topic")
    unknown = session.name("nobody")
    session.quietly(commit(group, topic, 3), OffsetCommitResponse, 8)
    for version in range(7):
        session.ask(
            "described",
            DescribeGroupsRequest(groups=[group, unknown]),
            DescribeGroupsResponse,
            version,
            by="group_id",
        )
    session.ask(
        "operations",
        DescribeGroupsRequest(groups=[group], include_authorized_operations=True),
        DescribeGroupsResponse,
        5,
    )
    for version in range(6):
        answer = session.quietly(ListGroupsRequest(), ListGroupsResponse, version)
        mine = [session.tree(row) for row in answer.groups if row.group_id == group]
        session.note(f"listed v{version}", [answer.error_code, mine])
    for states in (["Empty"], ["Stable"], ["empty"], ["NoSuch"]):
        answer = session.quietly(ListGroupsRequest(states_filter=states), ListGroupsResponse, 5)
        session.note(
            f"states {states}", [answer.error_code, group in [row.group_id for row in answer.groups]]
        )
    for kinds in (["classic"], ["consumer"], ["Classic"], ["NoSuch"]):
        answer = session.quietly(ListGroupsRequest(types_filter=kinds), ListGroupsResponse, 5)
        session.note(f"types {kinds}", [answer.error_code, group in [row.group_id for row in answer.groups]])
    parts = [OffsetDeleteRequestPartition(partition_index=number) for number in (0, 1, 9)]
    rows = [OffsetDeleteRequestTopic(name=name, partitions=parts) for name in (topic, session.name("no"))]
    session.ask("offsets deleted", OffsetDeleteRequest(group_id=group, topics=rows), OffsetDeleteResponse, 0)
    session.ask("of nobody", OffsetDeleteRequest(group_id=unknown, topics=rows), OffsetDeleteResponse, 0)
    session.ask("then", committed(group, topic, 0), OffsetFetchResponse, 7)
    session.quietly(commit(group, topic, 3), OffsetCommitResponse, 8)
    for version in range(3):
        session.ask(
            "deleted",
            DeleteGroupsRequest(groups_names=[group, unknown, ""]),
            DeleteGroupsResponse,
            version,
            by="group_id",
        )
    session.ask("after", committed(group, topic, 0), OffsetFetchResponse, 7)


@scenario
def a_group_in_use_is_not_deleted(session: Session) -> None:
    group, topic = coordinated(session, "used"), topic_of(session, "used-topic")
    member, generation = alone(session, group)
    session.quietly(commit(group, topic, 3, generation=generation, member=member), OffsetCommitResponse, 8)
    session.ask("delete", DeleteGroupsRequest(groups_names=[group]), DeleteGroupsResponse, 2)
    part = [OffsetDeleteRequestPartition(partition_index=0)]
    request = OffsetDeleteRequest(
        group_id=group, topics=[OffsetDeleteRequestTopic(name=topic, partitions=part)]
    )
    session.ask("delete offsets", request, OffsetDeleteResponse, 0)
    session.ask("leave", members_of(group, member), LeaveGroupResponse, 5)
    session.ask("offsets stay", committed(group, topic, 0), OffsetFetchResponse, 7)
    session.ask("described", DescribeGroupsRequest(groups=[group]), DescribeGroupsResponse, 5)
