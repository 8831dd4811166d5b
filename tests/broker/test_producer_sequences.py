"""Idempotent producers do everything wrong in any order, with restarts between: answers are as the model says.

Several producers and two partitions, through Produce itself; duplicates, gaps, reordering, sequences that wrap at
2^31 - 1, unknown producers, new and stale epochs, clean and unclean restarts, state that expires.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from headwater.log import producer_state
from headwater.log.producer_state import ProducerStates
from headwater.wire import batch
from headwater.wire.errors import ErrorCode
from tests.broker.conftest import World

WRAP = 2**31
KEPT = 5
EXPIRES_MS = 86_400_000  # Kafka's producer.id.expiration.ms
DUPLICATE, APPENDED = True, False


class ModelProducer:
    """One producer in one partition: Kafka's rules in the fewest lines."""

    def __init__(self) -> None:
        self.epoch = -1  # unknown
        self.next = 0
        self.kept: list[tuple[int, int, int]] = []  # (first sequence, records, offset), of this epoch
        self.heard_ms = 0

    def judge(self, epoch: int, sequence: int, count: int) -> ErrorCode | int | None:
        """An error, the offset of what this repeats, or None: append it."""
        if self.epoch < 0:
            return None
        if epoch < self.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if epoch > self.epoch:
            return None if sequence == 0 else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        for first, records, offset in self.kept:
            if (first, records) == (sequence, count):
                return offset
        return None if sequence == self.next else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def append(self, epoch: int, sequence: int, count: int, offset: int, now_ms: int) -> None:
        if epoch != self.epoch:
            self.epoch, self.kept = epoch, []
        self.next = (sequence + count) % WRAP
        self.kept = [*self.kept, (sequence, count, offset)][-KEPT:]
        self.heard_ms = now_ms


class Producers(RuleBasedStateMachine):
    producers = st.sampled_from((7, 8))
    partitions = st.sampled_from((0, 1))
    counts = st.integers(1, 3)
    steps = st.sampled_from((1, 1, 2, -1))

    def __init__(self) -> None:
        super().__init__()
        self.world = World({"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"})
        self.client = self.world.client()
        self.client.create("t", partitions=2, retention_ms="-1")
        self.model: dict[tuple[int, int], ModelProducer] = {}
        self.ends = [0, 0]
        self.values: list[list[bytes]] = [[], []]
        self.sent = 0
        self.forgotten = False

    def of(self, producer: int, partition: int) -> ModelProducer:
        return self.model.setdefault((producer, partition), ModelProducer())

    def send(self, producer: int, partition: int, epoch: int, sequence: int, count: int) -> None:
        known, now_ms = self.of(producer, partition), self.world.clock.wall_ms()
        expected = known.judge(epoch, sequence, count)
        self.sent += 1
        values = [b"%d/%d" % (self.sent, number) for number in range(count)]
        data = batch.build(
            [(None, value) for value in values], now_ms=now_ms,
            producer_id=producer, producer_epoch=epoch, base_sequence=sequence,
        )  # fmt: skip
        answer = self.client.produce("t", data, partition)
        if isinstance(expected, ErrorCode):
            assert answer.error_code == expected, (ErrorCode(answer.error_code), expected)
            return
        offset = self.ends[partition] if expected is None else expected
        assert (answer.error_code, answer.base_offset) == (0, offset)
        if expected is None:
            known.append(epoch, sequence, count, offset, now_ms)
            self.ends[partition] += count
            self.values[partition] += values

    # rules: what a producer sends

    @initialize(producer=producers, partition=partitions, back=st.integers(1, 9), count=counts)
    def begins_near_the_wrap(self, producer: int, partition: int, back: int, count: int) -> None:
        self.send(producer, partition, 3, WRAP - back, min(count, back))

    @rule(producer=producers, partition=partitions, sizes=st.lists(counts, min_size=1, max_size=KEPT + 1))
    def next_batches(self, producer: int, partition: int, sizes: list[int]) -> None:
        known = self.of(producer, partition)
        for count in sizes:
            self.send(producer, partition, max(known.epoch, 0), known.next, count)

    @rule(producer=producers, partition=partitions, back=st.integers(1, KEPT))
    def duplicate(self, producer: int, partition: int, back: int) -> None:
        known = self.of(producer, partition)
        if len(known.kept) >= back:
            sequence, count, _ = known.kept[-back]
            self.send(producer, partition, known.epoch, sequence, count)

    @rule(producer=producers, partition=partitions, jump=st.integers(-12, 12), count=counts)
    def gap_or_old(self, producer: int, partition: int, jump: int, count: int) -> None:
        known = self.of(producer, partition)
        self.send(producer, partition, max(known.epoch, 0), (known.next + jump) % WRAP, count)

    @rule(producer=producers, partition=partitions)
    def two_in_the_wrong_order(self, producer: int, partition: int) -> None:
        known = self.of(producer, partition)
        epoch, first = max(known.epoch, 0), known.next
        self.send(producer, partition, epoch, (first + 1) % WRAP, 1)
        self.send(producer, partition, epoch, first, 1)

    @rule(producer=producers, partition=partitions, step=steps, first=st.booleans(), count=counts)
    def other_epoch(self, producer: int, partition: int, step: int, first: bool, count: int) -> None:
        known = self.of(producer, partition)
        epoch = max(known.epoch + step, 0)
        self.send(producer, partition, epoch, 0 if first else known.next, count)

    # rules: what happens to the broker

    @rule(clean=st.booleans(), seed=st.integers(0, 99))
    def restart(self, clean: bool, seed: int) -> None:
        if clean or self.forgotten:
            # What expires is forgotten in memory; an unclean stop before the next checkpoint brings it back.
            self.world.restart()
        else:
            self.world.crash(seed)
        self.forgotten = False
        self.client = self.world.client()

    @rule(hours=st.sampled_from((1, 11, 25)))
    def time_passes(self, hours: int) -> None:
        for _ in range(hours):
            self.world.clock.advance(3_600_000)
            self.world.log.tick()
        now_ms = self.world.clock.wall_ms()
        for key, known in list(self.model.items()):
            if now_ms - known.heard_ms >= EXPIRES_MS:
                del self.model[key]
                self.forgotten = True

    def teardown(self) -> None:
        for partition in (0, 1):
            found: list[bytes] = []
            while len(found) < self.ends[partition]:
                answer = self.client.fetch("t", len(found), partition)
                assert answer.error_code == 0 and answer.records
                view = memoryview(b"".join([answer.records]))  # type: ignore[list-item]
                for position, header in batch.headers(view):
                    assert header.base_offset == len(found), "a gap"
                    found += [bytes(r.value or b"") for r in batch.records(view[position : position + header.size])]
            assert found == self.values[partition], "stored twice, or not at all, or not in order"
        assert not self.world.bugs


def thorough(times: int) -> settings:
    """`times` the examples of the profile. To explain a failure it would trace every line that runs."""
    profile = settings()
    return settings(
        max_examples=profile.max_examples * times, stateful_step_count=30,
        phases=[phase for phase in Phase if phase is not Phase.explain], suppress_health_check=list(HealthCheck),
    )  # fmt: skip


@pytest.mark.timeout(300)
def test_any_order_is_answered_as_the_model_says(plant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if plant in PLANTS:
        PLANTS[plant](monkeypatch)
    run_state_machine_as_test(Producers, settings=thorough(17))


@pytest.mark.slow
def test_any_order_is_answered_as_the_model_says_very_often() -> None:
    run_state_machine_as_test(Producers, settings=thorough(20))  # 100,000 with the profile `slow`


def forget(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProducerStates, "check", lambda self, header: None)


def keep_four(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(producer_state, "BATCHES_KEPT", 4)


def never_wrap(patch: pytest.MonkeyPatch) -> None:
    check = ProducerStates._check_next

    def unwrapped(self: ProducerStates, entry: Any, header: Any, first: int) -> None:
        if entry.last_sequence == WRAP - 1:
            entry.batches[-1] = entry.batches[-1]._replace(last_sequence=-2)
        check(self, entry, header, first)

    patch.setattr(ProducerStates, "_check_next", unwrapped)


def never_expire(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProducerStates, "expire", lambda self, now_ms, expiration_ms: 0)


PLANTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "repetitions-are-forgotten": forget,
    "four-batches-kept": keep_four,
    "sequences-never-wrap": never_wrap,
    "producers-never-expire": never_expire,
}


@pytest.mark.parametrize("name", PLANTS)
def test_the_model_notices(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTS[name](monkeypatch)
    fast = settings(
        thorough(4), derandomize=True, database=None, phases=[Phase.generate], report_multiple_bugs=False
    )  # fmt: skip
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Producers, settings=fast)
