"""JoinGroup: a member comes, comes again, or comes back.

A dynamic member gets its id first and joins with it (KIP-394); a static member that is known takes its old
place and, if nothing changes for the group, its old assignment (KIP-345). Everything that ends in waiting
goes through ``rebalance``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.broker.groups import records
from headwater.broker.groups.group import COMPLETING, DEAD, EMPTY, PREPARING, STABLE, Group
from headwater.broker.groups.members import Member, Protocols
from headwater.broker.groups.rebalance import (
    answer_join,
    answer_sync,
    complete_if_all_joined,
    current_generation,
    join_members,
    prepare,
    rebalance_or_complete,
    refuse_join,
)
from headwater.broker.groups.sessions import expect_join, touch
from headwater.core.ids import random_id
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from headwater.wire.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from headwater.broker.groups.coordinator import Groups
    from headwater.broker.registry import Context
    from headwater.broker.waiting import Later

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000  # Kafka's: a client that vanished while it waited to join
KNOWN_MEMBER_ID_SINCE = 4  # KIP-394
SKIP_ASSIGNMENT_SINCE = 9  # KIP-814


class Join:
    """One JoinGroup request, with what every step of it needs."""

    __slots__ = (
        "client_host", "client_id", "group_id", "instance", "member_id", "promise", "protocol_type",
        "protocols", "rebalance_timeout_ms", "session_timeout_ms", "version",
    )  # fmt: skip

    def __init__(
        self, request: JoinGroupRequest, context: Context, promise: Later[JoinGroupResponse]
    ) -> None:
        self.group_id: str = request.group_id
        self.member_id: str = request.member_id
        self.instance: str | None = request.group_instance_id
        self.protocol_type: str = request.protocol_type
        self.protocols: Protocols = [
            (protocol.name, bytes(protocol.metadata)) for protocol in request.protocols
        ]
        self.session_timeout_ms: int = request.session_timeout_ms
        self.version = context.api_version
        # Version 0 knew one timeout for both.
        self.rebalance_timeout_ms: int = (
            request.rebalance_timeout_ms if self.version >= 1 else request.session_timeout_ms
        )
        self.client_id = context.client_id or ""
        self.client_host = f"/{context.client_host}"  # as Java prints an address
        self.promise = promise

    def refuse(self, error: ErrorCode, member_id: str | None = None) -> None:
        asked = self.member_id if member_id is None else member_id
        self.promise.set(JoinGroupResponse(error_code=error, member_id=asked, protocol_name=None))


def join(
    groups: Groups, request: JoinGroupRequest, context: Context, promise: Later[JoinGroupResponse]
) -> None:
    asked = Join(request, context, promise)
    settings = groups.settings
    if not asked.group_id:
        asked.refuse(ErrorCode.INVALID_GROUP_ID)
        return
    if (
        not settings.group_min_session_timeout_ms
        <= asked.session_timeout_ms
        <= settings.group_max_session_timeout_ms
    ):
        asked.refuse(ErrorCode.INVALID_SESSION_TIMEOUT)
        return
    group = groups.get(asked.group_id)
    if group is None:
        if asked.member_id:
            asked.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
            return
        group = groups.create(asked.group_id)
        _enter(groups, group, asked)
        # The group exists from now on, also after a restart, whether or not this member was taken in.
        groups.append(group.group_id, [records.empty_group_record(group)])
        return
    _enter(groups, group, asked)


def _enter(groups: Groups, group: Group, asked: Join) -> None:
    if not group.accepts(asked.member_id, groups.settings.group_max_size):
        group.remove(asked.member_id)
        asked.refuse(ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    elif group.state is DEAD:
        asked.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    elif not group.supports(asked.protocol_type, {name for name, _ in asked.protocols}):
        asked.refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    elif asked.member_id:
        _known(groups, group, asked)
    else:
        _unknown(groups, group, asked)


def _unknown(groups: Groups, group: Group, asked: Join) -> None:
    new_id = f"{asked.client_id if asked.instance is None else asked.instance}-{_uuid()}"
    if asked.instance is not None:
        old_id = group.static_members.get(asked.instance)
        if old_id is None:
            _add(groups, group, asked, new_id)
        else:
            _static_returns(groups, group, asked, old_id, new_id)
    elif asked.version >= KNOWN_MEMBER_ID_SINCE:
        expect_join(groups, group, new_id, asked.session_timeout_ms)
        asked.refuse(ErrorCode.MEMBER_ID_REQUIRED, new_id)
    else:
        _add(groups, group, asked, new_id)


def _uuid() -> str:
    """A random UUID in its usual text form."""
    raw = bytearray(random_id())
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _add(groups: Groups, group: Group, asked: Join, member_id: str) -> None:
    member = Member(
        member_id, asked.instance, asked.client_id, asked.client_host, asked.rebalance_timeout_ms,
        asked.session_timeout_ms, asked.protocol_type, asked.protocols,
    )  # fmt: skip
    member.is_new = True
    if group.state is PREPARING and group.previous_state is EMPTY:
        group.new_member_added = True
    member.awaiting_join = asked.promise
    group.add(member)
    touch(groups, group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)
    rebalance_or_complete(groups, group)


def _known(groups: Groups, group: Group, asked: Join) -> None:
    if asked.member_id in group.pending_join:
        if asked.instance is not None:
            # Ids are given out in advance to dynamic members only; Kafka fails in the same place.
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        _add(groups, group, asked, asked.member_id)
        return
    try:
        group.check_member(asked.member_id, asked.instance)
    except KafkaError as error:
        asked.refuse(error.code)
        return
    member = group.members[asked.member_id]
    unchanged = member.protocols == asked.protocols
    leads = group.is_leader(member.member_id)
    if group.state is COMPLETING and unchanged:
        # It lost our answer: the generation is still the one it was told.
        asked.promise.set(current_generation(group, member, with_members=leads))
    elif group.state is STABLE and unchanged and not leads:
        asked.promise.set(current_generation(group, member, with_members=False))
    elif group.state in (PREPARING, COMPLETING, STABLE):
        # A leader that joins again asks for a rebalance: its topics may have changed.
        _update(group, member, asked)
        rebalance_or_complete(groups, group)
    else:
        asked.refuse(ErrorCode.UNKNOWN_MEMBER_ID)


def _update(group: Group, member: Member, asked: Join) -> None:
    group.offer(member, asked.protocols)
    member.rebalance_timeout_ms = asked.rebalance_timeout_ms
    member.session_timeout_ms = asked.session_timeout_ms
    before, member.awaiting_join = member.awaiting_join, asked.promise
    if before is not None:
        # The same member asked on another connection: nobody reads the older answer, but it is owed.
        before.set(
            JoinGroupResponse(
                error_code=ErrorCode.REBALANCE_IN_PROGRESS, member_id=member.member_id, protocol_name=None
            )
        )


def _static_returns(groups: Groups, group: Group, asked: Join, old_id: str, new_id: str) -> None:
    leader_before = group.leader_id
    old, member = group.replace_static(old_id, new_id)
    refuse_join(old, ErrorCode.FENCED_INSTANCE_ID, old_id)
    answer_sync(old, SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID, assignment=b""))
    touch(groups, group, member)
    _update(group, member, asked)
    if group.state is STABLE:
        if group.select_protocol() == group.protocol_name:
            _keep_assignment(groups, group, asked, member, leader_before)
        else:
            rebalance_or_complete(groups, group)
    elif group.state is COMPLETING:
        prepare(groups, group)
    else:
        assert group.state is PREPARING, f"a static member in a group that is {group.state.value}"
        complete_if_all_joined(groups, group)


def _keep_assignment(
    groups: Groups, group: Group, asked: Join, member: Member, leader_before: str | None
) -> None:
    """Nothing changes but the member's id: it is told the running generation once the id is durable."""
    assignment = {each.member_id: each.assignment for each in group.members.values()}

    def stored() -> None:
        leads = group.is_leader(member.member_id)
        if asked.version >= SKIP_ASSIGNMENT_SINCE:
            response = current_generation(group, member, with_members=False)
            response.members = join_members(group) if leads else []
            response.skip_assignment = leads
        else:
            # Older clients would assign anew if they were told that they lead: name the old id.
            response = current_generation(group, member, with_members=False)
            response.leader = leader_before or ""
        answer_join(member, response)

    def failed() -> None:
        refuse_join(member, ErrorCode.NOT_COORDINATOR)

    groups.append(group.group_id, [records.group_record(group, assignment)], stored, failed)
