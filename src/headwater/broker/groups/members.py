"""One member of a classic group: who it is, what it offers, what it waits for.

A member waits for at most one JoinGroup and one SyncGroup answer at a time; whoever takes a promise away
answers it. Deadlines are kept here, the clock is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.broker.waiting import Later, Timer
    from headwater.wire.messages.join_group import JoinGroupResponse
    from headwater.wire.messages.sync_group import SyncGroupResponse

Protocols = list[tuple[str, bytes]]  # by preference: name, and what the client's assignor says under it


class Member:
    """A member as the coordinator knows it. Identity never changes; a rejoin replaces what it offers."""

    __slots__ = (
        "assignment", "awaiting_join", "awaiting_sync", "client_host", "client_id", "deadline_ms",
        "group_instance_id", "is_new", "member_id", "protocol_type", "protocols", "rebalance_timeout_ms",
        "session_timeout_ms", "timer",
    )  # fmt: skip

    def __init__(
        self, member_id: str, group_instance_id: str | None, client_id: str, client_host: str,
        rebalance_timeout_ms: int, session_timeout_ms: int, protocol_type: str, protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:  # fmt: skip
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocol_type = protocol_type
        self.protocols = protocols
        self.assignment = assignment
        self.awaiting_join: Later[JoinGroupResponse] | None = None
        self.awaiting_sync: Later[SyncGroupResponse] | None = None
        self.is_new = False  # joined, but its first rebalance has not completed: the join timeout applies
        self.deadline_ms = 0
        self.timer: Timer | None = None

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def heartbeat_satisfied(self) -> bool:
        """Waiting for our answer is a sign of life; but a new member must not wait for ever."""
        return not self.is_new and (self.awaiting_join is not None or self.awaiting_sync is not None)

    def metadata(self, protocol: str | None) -> bytes:
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        raise AssertionError(f"member {self.member_id} does not support protocol {protocol}")

    def vote(self, candidates: set[str]) -> str:
        for name, _ in self.protocols:
            if name in candidates:
                return name
        raise AssertionError(f"member {self.member_id} supports none of {candidates}")

    def replaced_by(self, member_id: str) -> Member:
        """The same static member under the id of its new incarnation."""
        return Member(
            member_id, self.group_instance_id, self.client_id, self.client_host, self.rebalance_timeout_ms,
            self.session_timeout_ms, self.protocol_type, self.protocols, self.assignment,
        )  # fmt: skip

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
