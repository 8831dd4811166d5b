"""One classic group: its members, its leader, its generation and the states it may go through.

Everything here is a plain change in memory; who waits, what is written and when things expire is decided
by ``rebalance``, ``sessions`` and ``expiry``. Refusals are Kafka's errors.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from headwater.broker.groups.protocols import CONSUMER_PROTOCOL_TYPE, elect, subscribed_topics
from headwater.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from headwater.broker.groups.members import Member, Protocols
    from headwater.broker.waiting import Timer

NO_TIMESTAMP = -1


class State(Enum):
    """Kafka's names, as DescribeGroups and ListGroups show them."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


EMPTY, PREPARING, COMPLETING, STABLE, DEAD = State
FROM: dict[State, tuple[State, ...]] = {  # target: where it may come from
    EMPTY: (PREPARING,),
    PREPARING: (STABLE, COMPLETING, EMPTY),
    COMPLETING: (PREPARING,),
    STABLE: (COMPLETING,),
    DEAD: (STABLE, PREPARING, COMPLETING, EMPTY, DEAD),
}


class Group:
    """State of one group. ``members`` keeps the order of joining."""

    def __init__(self, group_id: str, now_ms: int, state: State = EMPTY) -> None:
        self.group_id = group_id
        self.state = state
        self.previous_state = state
        self.state_timestamp_ms = now_ms
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}  # group instance id: member id
        self.pending_join: dict[str, Timer] = {}  # ids given out that have not come back with a join
        self.pending_sync: set[str] = set()
        self.subscribed: set[str] | None = None
        self.new_member_added = False
        self.join_timer: Timer | None = None
        self.sync_timer: Timer | None = None
        self._offered: dict[str, int] = {}  # protocol name: how many members offer it

    # ------------------------------------------------------------------ states

    def become(self, state: State, now_ms: int) -> None:
        assert self.state in FROM[state], (
            f"group {self.group_id}: {self.state.value} may not become {state.value}"
        )
        self.previous_state = self.state
        self.state = state
        self.state_timestamp_ms = now_ms

    @property
    def can_rebalance(self) -> bool:
        return self.state in FROM[PREPARING]

    def next_generation(self, now_ms: int) -> None:
        """The only place where a generation begins."""
        self.generation += 1
        if self.members:
            self.protocol_name = self.select_protocol()
            self.subscribed = self.compute_subscribed()
            self.become(COMPLETING, now_ms)
        else:
            self.protocol_name = None
            self.subscribed = self.compute_subscribed()
            self.become(EMPTY, now_ms)
        self.pending_sync.clear()

    # ----------------------------------------------------------------- members

    def add(self, member: Member) -> None:
        if member.group_instance_id is not None:
            assert member.group_instance_id not in self.static_members
            self.static_members[member.group_instance_id] = member.member_id
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self._count(member.protocols, 1)
        self.forget_pending(member.member_id)

    def remove(self, member_id: str) -> None:
        """Takes out whoever this is: a member, a pending one, or nobody. Promises are not touched."""
        member = self.members.pop(member_id, None)
        if member is not None:
            member.stop_timer()
            self._count(member.protocols, -1)
            if member.group_instance_id is not None:
                self.static_members.pop(member.group_instance_id, None)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.forget_pending(member_id)
        self.pending_sync.discard(member_id)

    def replace_static(self, old_id: str, new_id: str) -> tuple[Member, Member]:
        """The static member comes back under a new id; it keeps leadership and assignment. (old, new)"""
        old = self.members[old_id]
        new = old.replaced_by(new_id)
        old.stop_timer()
        self.members = {new_id if key == old_id else key: member for key, member in self.members.items()}
        self.members[new_id] = new
        if self.leader_id == old_id:
            self.leader_id = new_id
        assert new.group_instance_id is not None
        self.static_members[new.group_instance_id] = new_id
        self.pending_sync.discard(old_id)
        return old, new

    def offer(self, member: Member, protocols: Protocols) -> None:
        self._count(member.protocols, -1)
        member.protocols = protocols
        self._count(protocols, 1)

    def forget_pending(self, member_id: str) -> None:
        timer = self.pending_join.pop(member_id, None)
        if timer is not None:
            timer.cancel()

    def is_leader(self, member_id: str) -> bool:
        return self.leader_id == member_id

    @property
    def awaiting_join(self) -> int:
        return sum(member.awaiting_join is not None for member in self.members.values())

    @property
    def all_joined(self) -> bool:
        return not self.pending_join and all(member.awaiting_join for member in self.members.values())

    def elect_joined_leader(self) -> bool:
        """A leader that did not come back gives way to one that did. False: nobody came back."""
        if self.leader_id is None:
            return False
        if self.members[self.leader_id].awaiting_join is not None:
            return True
        for member in self.members.values():
            if member.awaiting_join is not None:
                self.leader_id = member.member_id
                return True
        return False

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def accepts(self, member_id: str, size_max: int) -> bool:
        """Whether this member fits. While members rejoin, only those that came back count."""
        if self.state in (EMPTY, DEAD):
            return True
        member = self.members.get(member_id)
        if self.state is PREPARING:
            return (member is not None and member.awaiting_join is not None) or self.awaiting_join < size_max
        return member is not None or len(self.members) < size_max

    # --------------------------------------------------------------- protocols

    def supports(self, protocol_type: str, names: set[str]) -> bool:
        if self.state is EMPTY:
            return bool(protocol_type) and bool(names)
        everybody = len(self.members)
        return self.protocol_type == protocol_type and any(
            self._offered.get(name, 0) == everybody for name in names
        )

    def select_protocol(self) -> str:
        everybody = len(self.members)
        candidates = {name for name, count in self._offered.items() if count == everybody}
        return elect(member.vote(candidates) for member in self.members.values())

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def is_subscribed(self, topic: str) -> bool:
        """Unknown subscriptions of a consumer group count as subscribed to everything."""
        return topic in self.subscribed if self.subscribed is not None else self.uses_consumer_protocol

    def compute_subscribed(self) -> set[str] | None:
        if not self.uses_consumer_protocol:
            return None
        if not self.members:
            return set()
        if self.protocol_name is None:
            return None
        topics: set[str] = set()
        try:
            for member in self.members.values():
                topics.update(subscribed_topics(member.metadata(self.protocol_name)))
        except ValueError:
            return None
        return topics

    def _count(self, protocols: Protocols, step: int) -> None:
        for name in {name for name, _ in protocols}:
            self._offered[name] = self._offered.get(name, 0) + step

    # --------------------------------------------------------------- refusals

    def check_member(self, member_id: str, group_instance_id: str | None) -> None:
        if group_instance_id is not None:
            owner = self.static_members.get(group_instance_id)
            if owner is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            if owner != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    def check_commit(
        self, member_id: str, instance: str | None, generation: int, *, transactional: bool
    ) -> None:
        """Whether offsets may be committed under this identity. A simple commit names nobody (-1, "")."""
        if generation < 0 and self.state is EMPTY:
            return  # an administrator, or a consumer that assigns partitions to itself
        if generation >= 0 or member_id or instance is not None:
            self.check_member(member_id, instance)
            if generation != self.generation:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        elif not transactional and self.state is not EMPTY:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if not transactional and self.state is COMPLETING:
            # The commit would be of partitions that the next assignment may give to somebody else.
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)

    def check_deletable(self) -> None:
        if self.state is not EMPTY:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def check_offset_delete(self) -> None:
        if self.state is not EMPTY and not self.uses_consumer_protocol:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def stop_timers(self) -> None:
        for timer in (self.join_timer, self.sync_timer, *self.pending_join.values()):
            if timer is not None:
                timer.cancel()
        for member in self.members.values():
            member.stop_timer()
