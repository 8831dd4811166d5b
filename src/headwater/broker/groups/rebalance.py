"""The two phases of a rebalance: members join until all are there or time is up; then the leader's
assignment is stored, and only when it is durable does anybody get it.

A generation begins in ``complete_join`` and nowhere else. Every promise that a member holds is answered
here or when the member is removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.broker.groups import records
from headwater.broker.groups.group import COMPLETING, EMPTY, PREPARING, STABLE
from headwater.broker.groups.sessions import touch
from headwater.wire.errors import ErrorCode
from headwater.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from headwater.wire.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from headwater.broker.groups.coordinator import Groups
    from headwater.broker.groups.group import Group
    from headwater.broker.groups.members import Member


# ------------------------------------------------------------------ join phase


def rebalance_or_complete(groups: Groups, group: Group) -> None:
    """A member changed: begin a rebalance, or let the running one end if this was the last it waited for."""
    if group.can_rebalance:
        prepare(groups, group)
    else:
        complete_if_all_joined(groups, group)


def complete_if_all_joined(groups: Groups, group: Group) -> None:
    # The initial rebalance is ended by its delay alone, so that members that start together share it.
    if group.state is PREPARING and group.previous_state is not EMPTY and group.all_joined:
        complete_join(groups, group)


def prepare(groups: Groups, group: Group) -> None:
    if group.state is COMPLETING:
        for member in group.members.values():
            member.assignment = b""
        _answer_syncs(groups, group, ErrorCode.REBALANCE_IN_PROGRESS)
    _stop_pending_sync(group)
    initial = group.state is EMPTY
    group.become(PREPARING, groups.clock.wall_ms())
    if initial:
        delay_ms = groups.settings.group_initial_rebalance_delay_ms
        _initial_delay(groups, group, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
    elif group.all_joined:
        complete_join(groups, group)
    else:
        _complete_at_timeout(groups, group)


def _initial_delay(groups: Groups, group: Group, delay_ms: int, remaining_ms: int) -> None:
    def due() -> None:
        if group.new_member_added and remaining_ms:
            group.new_member_added = False
            next_ms = min(groups.settings.group_initial_rebalance_delay_ms, remaining_ms)
            _initial_delay(groups, group, next_ms, max(remaining_ms - delay_ms, 0))
        else:
            complete_join(groups, group)

    if delay_ms <= 0:
        complete_join(groups, group)
    else:
        group.join_timer = groups.timers.at(groups.clock.monotonic_ms() + delay_ms, due)


def _complete_at_timeout(groups: Groups, group: Group) -> None:
    _stop_join_timer(group)
    deadline_ms = groups.clock.monotonic_ms() + group.rebalance_timeout_ms
    group.join_timer = groups.timers.at(deadline_ms, lambda: complete_join(groups, group))


def complete_join(groups: Groups, group: Group) -> None:
    """End the join phase: dynamic members that did not come back are out, the others form a generation."""
    _stop_join_timer(group)
    if group.state is not PREPARING:
        return
    for member in [m for m in group.members.values() if m.awaiting_join is None and not m.is_static]:
        group.remove(member.member_id)
    if not group.elect_joined_leader() and group.members:
        _complete_at_timeout(groups, group)  # only absent static members: nobody could lead
        return
    group.next_generation(groups.clock.wall_ms())
    if group.state is EMPTY:
        groups.append(group.group_id, [records.group_record(group, {})])
        return
    for member in list(group.members.values()):
        answer_join(member, current_generation(group, member, with_members=group.is_leader(member.member_id)))
        touch(groups, group, member)
        member.is_new = False
        group.pending_sync.add(member.member_id)
    _expect_syncs(groups, group)


def current_generation(group: Group, member: Member, *, with_members: bool) -> JoinGroupResponse:
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        member_id=member.member_id,
        members=join_members(group) if with_members else [],
    )


def join_members(group: Group) -> list[JoinGroupResponseMember]:
    return [
        JoinGroupResponseMember(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            metadata=member.metadata(group.protocol_name),
        )
        for member in group.members.values()
    ]


def answer_join(member: Member, response: JoinGroupResponse) -> None:
    promise, member.awaiting_join = member.awaiting_join, None
    if promise is not None:
        promise.set(response)


def refuse_join(member: Member, error: ErrorCode, member_id: str = "") -> None:
    answer_join(member, JoinGroupResponse(error_code=error, member_id=member_id, protocol_name=None))


# ------------------------------------------------------------------ sync phase


def store_assignment(groups: Groups, group: Group, assignment: dict[str, bytes]) -> None:
    """The leader's assignment: written first, given to the members when it is durable."""
    whole = {member_id: assignment.get(member_id, b"") for member_id in group.members}
    generation = group.generation

    def stored() -> None:
        if group.state is COMPLETING and group.generation == generation:
            for member in group.members.values():
                member.assignment = whole.get(member.member_id, b"")
            _answer_syncs(groups, group, ErrorCode.NONE)
            group.become(STABLE, groups.clock.wall_ms())

    def failed() -> None:
        if group.state is COMPLETING and group.generation == generation:
            _answer_syncs(groups, group, ErrorCode.NOT_COORDINATOR)

    groups.append(group.group_id, [records.group_record(group, whole)], stored, failed)


def synced(group: Group, member_id: str) -> None:
    """This member has asked for its assignment; the deadline for syncs falls with the last of them."""
    group.pending_sync.discard(member_id)
    if not group.pending_sync:
        _stop_sync_timer(group)


def _answer_syncs(groups: Groups, group: Group, error: ErrorCode) -> None:
    fine = error == ErrorCode.NONE
    for member in group.members.values():
        if answer_sync(
            member,
            SyncGroupResponse(
                error_code=error,
                protocol_type=group.protocol_type if fine else None,
                protocol_name=group.protocol_name if fine else None,
                assignment=member.assignment,
            ),
        ):
            touch(groups, group, member)


def answer_sync(member: Member, response: SyncGroupResponse) -> bool:
    promise, member.awaiting_sync = member.awaiting_sync, None
    if promise is None:
        return False
    promise.set(response)
    return True


def _expect_syncs(groups: Groups, group: Group) -> None:
    generation = group.generation

    def due() -> None:
        if (
            group.generation != generation
            or group.state not in (COMPLETING, STABLE)
            or not group.pending_sync
        ):
            return
        for member_id in list(group.pending_sync):
            group.remove(member_id)
        prepare(groups, group)

    _stop_sync_timer(group)
    group.sync_timer = groups.timers.at(groups.clock.monotonic_ms() + group.rebalance_timeout_ms, due)


def _stop_pending_sync(group: Group) -> None:
    group.pending_sync.clear()
    _stop_sync_timer(group)


def _stop_sync_timer(group: Group) -> None:
    if group.sync_timer is not None:
        group.sync_timer.cancel()
        group.sync_timer = None


def _stop_join_timer(group: Group) -> None:
    if group.join_timer is not None:
        group.join_timer.cancel()
        group.join_timer = None


# ---------------------------------------------------------------- the end of it


def after_removal(groups: Groups, group: Group) -> None:
    """A member is gone: those that remain share the partitions anew."""
    if group.state in (STABLE, COMPLETING):
        rebalance_or_complete(groups, group)
    elif group.state is PREPARING and group.all_joined:
        complete_join(groups, group)
