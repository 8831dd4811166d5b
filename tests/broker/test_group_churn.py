"""Consumers that come, go, vanish and come back, over a broker that stops and loses power, by seed.

What must hold whatever happens:
* a partition has at most one owner in a generation;
* a commit under a generation that a later one has replaced is refused;
* an acknowledged offset is never taken back, and neither is one that was shown;
* every request is answered in the end, unless its connection is gone.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from headwater.wire.errors import ErrorCode
from tests.broker.conftest import Pending, World
from tests.broker.members import Consumer, commit_request, committed, subscription

PARTITIONS = 4
STEPS = 1_000
REJOIN = (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID)


class Churn:
    """One run. `owners` is the checker's memory: who was told to own what, in which generation."""

    def __init__(self, seed: int, settings: dict[str, str]) -> None:
        self.chance = random.Random(seed)
        self.world = World(settings)
        self.world.client().create("events", partitions=PARTITIONS)
        self.consumers: list[Consumer] = []
        self.joining: dict[Consumer, Pending] = {}
        self.syncing: dict[Consumer, Pending] = {}
        self.unread: list[Pending] = []
        self.owners: dict[tuple[int, int], str] = {}
        self.newest = 0  # the latest generation that anybody was told of
        self.stored = 0  # the latest whose assignment was answered: it survives any crash
        self.offset = 0
        self.acknowledged = -1

    # -------------------------------------------------------------- what may happen

    def step(self) -> None:
        actions: list[tuple[float, Callable[[], None]]] = [
            (3, self.arrive),
            (8, self.join),
            (10, self.sync),
            (6, self.heartbeat),
            (8, self.commit),
            (1, self.leave),
            (0.5, self.vanish),
            (1, self.reincarnate),
            (2, self.lose_an_answer),
            (3, self.late_commit),
            (3, self.wait),
            (0.2, self.restart),
            (0.2, self.crash),
        ]
        weights = [weight for weight, _ in actions]
        (chosen,) = self.chance.choices([action for _, action in actions], weights)
        chosen()
        if self.chance.random() < 0.7:
            self.world.settle()
        self.collect()

    def arrive(self) -> None:
        if len(self.consumers) < 6:
            instance = f"i{self.chance.randrange(3)}" if self.chance.random() < 0.4 else None
            if instance is None or all(consumer.instance != instance for consumer in self.consumers):
                self.add(instance)

    def add(self, instance: str | None) -> None:
        timeouts = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 20_000}
        self.consumers.append(Consumer(self.world, "g", instance, **timeouts))

    def join(self) -> None:
        for consumer in self.some():
            if consumer not in self.joining and consumer not in self.syncing:
                if self.chance.random() < 0.1:
                    consumer.fields["protocols"] = {
                        "range": subscription("events", *["x"] * self.chance.randrange(2))
                    }
                self.joining[consumer] = consumer.send_join()

    def sync(self) -> None:
        for consumer in self.some():
            if consumer.generation > 0 and consumer not in self.joining and consumer not in self.syncing:
                self.syncing[consumer] = consumer.send_sync(self.plan(consumer) if consumer.leader else None)

    def plan(self, leader: Consumer) -> dict[str, bytes]:
        members = [member.member_id for member in leader.members]
        shares: dict[str, bytes] = dict.fromkeys(members, b"")
        for partition in range(PARTITIONS if members else 0):
            shares[self.chance.choice(members)] += bytes([partition])
        return shares

    def heartbeat(self) -> None:
        for consumer in self.free():
            if consumer.heartbeat() in REJOIN:
                self.forget_generation(consumer)

    def commit(self) -> None:
        for consumer in self.free():
            if consumer.generation < 0:
                continue  # without a generation this would be somebody who is no member
            self.offset += 1
            generation = consumer.generation
            error = consumer.commit(self.offset)
            if generation < self.newest:
                assert error != ErrorCode.NONE, (
                    f"generation {generation} committed after {self.newest} had begun"
                )
            if error == ErrorCode.NONE:
                self.acknowledged = self.offset
            self.check_offset()

    def late_commit(self) -> None:
        """A commit of the member's last generation was on its way for so long that the next one has begun."""
        for consumer in self.free():
            if 1 < consumer.generation <= self.newest:
                consumer.generation -= 1
                error = consumer.commit(self.offset + 1_000_000)
                consumer.generation += 1
                assert error != ErrorCode.NONE
                self.check_offset()

    def leave(self) -> None:
        for consumer in self.free()[:1]:
            if consumer.member_id:
                consumer.leave()
                self.consumers.remove(consumer)

    def vanish(self) -> None:
        """Without a word; its session has to end by itself."""
        if self.consumers:
            self.drop(self.chance.choice(self.consumers))

    def reincarnate(self) -> None:
        """A static member's process was restarted: the same instance, no memory."""
        for consumer in [each for each in self.consumers if each.instance][:1]:
            self.drop(consumer)
            self.add(consumer.instance)

    def lose_an_answer(self) -> None:
        """The broker has taken the member into a new generation, and the member does not know."""
        for consumer in list(self.joining)[:1]:
            pending = self.joining.pop(consumer)
            if not pending.done:
                self.unread.append(pending)

    def drop(self, consumer: Consumer) -> None:
        self.consumers.remove(consumer)
        self.joining.pop(consumer, None)
        self.syncing.pop(consumer, None)

    def wait(self) -> None:
        self.world.advance(self.chance.choice([100, 500, 3_000, 9_000, 21_000]))

    def restart(self) -> None:
        self.reconnect(self.world.restart)

    def crash(self) -> None:
        self.reconnect(lambda: self.world.crash(self.chance.randrange(1_000)))

    def reconnect(self, again: Callable[[], None]) -> None:
        self.collect()
        again()
        self.joining.clear()
        self.syncing.clear()
        self.unread.clear()
        for consumer in self.consumers:
            consumer.client = self.world.client("consumer")
        # A generation whose assignment nobody was given may come again: nobody owned anything in it.
        self.newest = self.stored
        self.check_offset()

    # ------------------------------------------------------------------- bookkeeping

    def some(self) -> list[Consumer]:
        return [consumer for consumer in self.consumers if self.chance.random() < 0.6]

    def free(self) -> list[Consumer]:
        return [each for each in self.some() if each not in self.joining and each not in self.syncing]

    def forget_generation(self, consumer: Consumer) -> None:
        consumer.generation, consumer.leader = -1, False

    def collect(self) -> None:
        for pending in self.unread:
            if pending.done and pending.response.error_code == ErrorCode.NONE:
                self.newest = max(self.newest, pending.response.generation_id)
        self.unread = [pending for pending in self.unread if not pending.done]
        for consumer, pending in list(self.joining.items()):
            if pending.done:
                del self.joining[consumer]
                error = consumer.take_join(pending)
                if error == ErrorCode.NONE:
                    self.newest = max(self.newest, consumer.generation)
                elif error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
                    consumer.member_id = ""
                    self.forget_generation(consumer)
        for consumer, pending in list(self.syncing.items()):
            if pending.done:
                del self.syncing[consumer]
                if pending.response.error_code == ErrorCode.NONE:
                    self.own(consumer, bytes(pending.response.assignment))
                else:
                    self.forget_generation(consumer)

    def own(self, consumer: Consumer, partitions: bytes) -> None:
        self.stored = max(self.stored, consumer.generation)
        who = consumer.instance or consumer.member_id
        for partition in partitions:
            owner = self.owners.setdefault((consumer.generation, partition), who)
            assert owner == who, (
                f"partition {partition} in generation {consumer.generation}: {owner} and {who}"
            )

    def check_offset(self) -> None:
        shown = committed(self.world.client(), "g")
        assert shown >= self.acknowledged, f"{shown} after {self.acknowledged} was acknowledged"
        self.acknowledged = shown

    def finish(self) -> None:
        """Nobody new, nobody gone: time alone answers everything."""
        for _ in range(60):
            self.world.advance(5_000)
            self.collect()
        waiting = [*self.joining.values(), *self.syncing.values(), *self.unread]
        assert all(pending.done for pending in waiting)
        assert not self.world.bugs, self.world.bugs


@pytest.mark.parametrize("delay_ms", [0, 3_000])
@pytest.mark.parametrize("seed", range(12))
def test_a_group_keeps_its_promises_however_its_members_behave(seed: int, delay_ms: int) -> None:
    churn = Churn(seed, {"group.initial.rebalance.delay.ms": str(delay_ms)})
    for _ in range(STEPS):
        churn.step()
    churn.finish()
    assert churn.owners, "a run in which nobody ever owned anything shows nothing"


def test_fifty_rounds_of_coming_and_going_leave_nothing_behind() -> None:
    world = World()
    world.client().create("events")
    for round_number in range(50):
        members = [Consumer(world, "g", instance=f"i{n}" if n % 2 else None) for n in range(4)]
        pendings = [consumer.send_join() for consumer in members]
        for consumer, pending in zip(members, list(pendings), strict=True):
            if pending.done and consumer.take_join(pending) == ErrorCode.MEMBER_ID_REQUIRED:
                pendings.append(consumer.send_join())
        world.advance(60_000)
        assert all(pending.done for pending in pendings), round_number
        for consumer in members:
            if consumer.member_id:
                consumer.leave()
        world.advance(60_000)
    group = world.broker.groups.get("g")
    if group is not None:  # empty groups without offsets are forgotten every ten minutes
        left = (group.members, group.static_members, group.pending_join, group.pending_sync)
        assert left == ({}, {}, {}, set())
    world.client().ask(commit_request("g", {("events", 0): 1}), 8)
    world.advance(8 * 86_400_000)
    assert world.broker.groups.by_id == {}
    assert world.broker.groups.latest.groups == world.broker.groups.visible.groups == {}
