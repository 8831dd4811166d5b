"""Deadlines of members: each has one timer, moved by heartbeats.

A heartbeat only moves ``deadline_ms``; the timer re-arms itself when it runs early, so the heap holds one
entry per member however often it beats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.broker.groups.coordinator import Groups
    from headwater.broker.groups.group import Group
    from headwater.broker.groups.members import Member


def touch(groups: Groups, group: Group, member: Member, timeout_ms: int | None = None) -> None:
    """The member is alive now; it is due again after its session timeout (or ``timeout_ms``)."""
    now_ms = groups.clock.monotonic_ms()
    member.deadline_ms = now_ms + (member.session_timeout_ms if timeout_ms is None else timeout_ms)
    timer = member.timer
    if timer is None or not timer.active or timer.deadline_ms > member.deadline_ms:
        _arm(groups, group, member)


def _arm(groups: Groups, group: Group, member: Member) -> None:
    member.stop_timer()

    def due() -> None:
        if groups.clock.monotonic_ms() < member.deadline_ms:
            _arm(groups, group, member)
        elif group.members.get(member.member_id) is member and not member.heartbeat_satisfied:
            groups.member_expired(group, member)

    member.timer = groups.timers.at(member.deadline_ms, due)


def expect_join(groups: Groups, group: Group, member_id: str, timeout_ms: int) -> None:
    """An id was given out: it is forgotten unless its owner joins with it in time."""
    group.pending_join[member_id] = groups.timers.at(
        groups.clock.monotonic_ms() + timeout_ms, lambda: groups.pending_expired(group, member_id)
    )
