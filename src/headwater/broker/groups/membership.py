"""SyncGroup, Heartbeat and LeaveGroup, and what happens when a member falls silent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.broker.groups.group import COMPLETING, DEAD, EMPTY, PREPARING, STABLE, Group
from headwater.broker.groups.rebalance import (
    after_removal,
    complete_if_all_joined,
    complete_join,
    rebalance_or_complete,
    refuse_join,
    store_assignment,
    synced,
)
from headwater.broker.groups.sessions import touch
from headwater.broker.waiting import Later
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.messages.leave_group import MemberResponse
from headwater.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from headwater.broker.groups.coordinator import Groups
    from headwater.broker.groups.members import Member


def sync(groups: Groups, request: SyncGroupRequest) -> SyncGroupResponse | Later[SyncGroupResponse]:
    group = groups.get(request.group_id)
    if group is None or group.state is EMPTY:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    _check_sync(group, request)
    member = group.members[request.member_id]
    if group.state is PREPARING:
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
    if group.state is STABLE:
        synced(group, member.member_id)
        return SyncGroupResponse(
            protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
        )
    promise: Later[SyncGroupResponse] = Later()
    before, member.awaiting_sync = member.awaiting_sync, promise
    if before is not None:
        before.set(SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    synced(group, member.member_id)
    if group.is_leader(member.member_id):
        store_assignment(
            groups, group, {each.member_id: bytes(each.assignment) for each in request.assignments}
        )
    return promise


def _check_sync(group: Group, request: SyncGroupRequest) -> None:
    if group.state is DEAD:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    for asked, ours in (
        (request.protocol_type, group.protocol_type),
        (request.protocol_name, group.protocol_name),
    ):
        if asked is not None and asked != ours:
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def heartbeat(groups: Groups, group_id: str, member_id: str, instance: str | None, generation: int) -> None:
    """Keeps the member; raises what it has to know."""
    group = groups.get(group_id)
    if group is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    if group.state is DEAD:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    group.check_member(member_id, instance)
    if generation != group.generation:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    touch(groups, group, group.members[member_id])
    if group.state is PREPARING:
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)


def leave(groups: Groups, group_id: str, leaving: list[tuple[str, str | None]]) -> list[MemberResponse]:
    """Members leave together, each with its own answer; at most one rebalance follows."""
    group = groups.get(group_id)
    if group is None:
        return [_left(member, instance, ErrorCode.UNKNOWN_MEMBER_ID) for member, instance in leaving]
    if group.state is DEAD:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    answers = [_left(member, instance, _leave_one(group, member, instance)) for member, instance in leaving]
    if any(answer.error_code == ErrorCode.NONE for answer in answers):
        if group.state in (STABLE, COMPLETING):
            rebalance_or_complete(groups, group)
        else:
            complete_if_all_joined(groups, group)
    return answers


def _left(member_id: str, instance: str | None, error: ErrorCode) -> MemberResponse:
    return MemberResponse(member_id=member_id, group_instance_id=instance, error_code=error)


def _leave_one(group: Group, member_id: str, instance: str | None) -> ErrorCode:
    if not member_id:
        known = group.static_members.get(instance) if instance is not None else None
        if known is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        _remove(group, group.members[known])
        return ErrorCode.NONE
    if member_id in group.pending_join:
        group.remove(member_id)
        return ErrorCode.NONE
    try:
        group.check_member(member_id, instance)
    except KafkaError as error:
        return error.code
    _remove(group, group.members[member_id])
    return ErrorCode.NONE


def _remove(group: Group, member: Member) -> None:
    refuse_join(member, ErrorCode.UNKNOWN_MEMBER_ID)
    if member.awaiting_sync is not None:
        promise, member.awaiting_sync = member.awaiting_sync, None
        promise.set(SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
    group.remove(member.member_id)


def expire(groups: Groups, group: Group, member: Member) -> None:
    """No sign of life for a session timeout."""
    _remove(group, member)
    after_removal(groups, group)


def expire_pending(groups: Groups, group: Group, member_id: str) -> None:
    """Somebody was given an id and never came back: nobody waits for it any longer."""
    group.remove(member_id)
    if group.state is PREPARING and group.all_joined:
        complete_join(groups, group)
