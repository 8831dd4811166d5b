"""Producers that fight for one transactional id, with zombies, lost and late requests, crashes, by seed.

What must hold whatever happens: a transaction is seen whole (both partitions and the group's offset) if and
only if an EndTxn that commits it was answered with success; nobody who lost the id writes or ends anything.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from typing import Any

import pytest

from headwater.wire.errors import ErrorCode
from headwater.wire.messages.end_txn import EndTxnRequest
from tests.broker.conftest import World
from tests.broker.members import Producer, committed, read_committed

STEPS = 600
NONE = ErrorCode.NONE
FENCED = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_ID_MAPPING)


class Writer(Producer):
    """One process that believes that it owns the transactional id."""

    def __init__(self, world: World, bump: bool) -> None:
        super().__init__(world, "tx", bump=bump)
        self.number = -1  # of the transaction that it is in
        self.written: set[int] = set()


class Fight:
    def __init__(self, seed: int, bump: bool) -> None:
        self.chance = random.Random(seed)
        self.bump = bump
        self.world = World()
        self.world.client().create("events", partitions=2)
        self.writers = [Writer(self.world, bump) for _ in range(3)]
        self.late: list[tuple[int, set[int], EndTxnRequest]] = []
        self.count = 0
        self.visible: dict[int, list[bytes]] = {0: [], 1: []}
        self.offset = -1
        self.commits = 0

    def step(self) -> None:
        writer = self.chance.choice(self.writers)
        if writer.producer_id < 0 or self.chance.random() < 0.02:
            # Most of the time whoever lost the id leaves it to the others, or nobody would ever get anywhere.
            if self.chance.random() < 0.15:
                self.take_over(writer)
        elif writer.number < 0:
            self.begin(writer)
        elif len(writer.written) < 2 and self.chance.random() < 0.8:
            self.write(writer)
        else:
            self.end(writer)
        if self.late and self.chance.random() < 0.15:
            self.deliver_late()
        if self.chance.random() < 0.03:
            self.world.advance(self.chance.choice([1_000, 90_000]))
        if self.chance.random() < 0.02:
            self.again(self.world.restart)

    def take_over(self, writer: Writer) -> None:
        writer.number, writer.written = -1, set()
        if writer.init() == NONE:
            return
        writer.producer_id = -1  # the transaction of somebody else had to be aborted first: next time

    def begin(self, writer: Writer) -> None:
        self.count += 1
        writer.number, writer.written = self.count, set()
        if not self.bump:
            self.expect(writer, writer.add("events", 0, 1), writer.add_offsets("g"))

    def write(self, writer: Writer) -> None:
        partition = self.chance.choice([index for index in (0, 1) if index not in writer.written])
        error = writer.write("events", b"%d" % writer.number, partition)
        self.expect(writer, error)
        if error == NONE:
            writer.written.add(partition)
            if len(writer.written) == 2:
                self.expect(writer, writer.commit_offset("g", writer.number))

    def expect(self, writer: Writer, *errors: ErrorCode) -> None:
        """Success, or the news that somebody else has taken the id."""
        for error in errors:
            assert error == NONE or error in FENCED, error
        if any(error != NONE for error in errors):
            writer.producer_id = -1

    def end(self, writer: Writer) -> None:
        commit = self.chance.random() < 0.7
        number, written = writer.number, set(writer.written)
        request = EndTxnRequest(committed=commit, **writer.owner())
        writer.number, writer.written = -1, set()
        if self.bump and self.chance.random() < 0.3:
            self.late.append((number, written, request))
            if self.chance.random() < 0.5:
                writer.producer_id = -1  # the request is lost, and so is the writer
                return
        if self.chance.random() < 0.1:
            self.crash_while_ending(writer, request, number, written)
            return
        error = writer.end(commit)
        if error == NONE:
            if commit and len(written) < 2 and not written:
                assert not self.bump, "nothing was written, and yet it was committed"
            self.ended(number, written, commit)
        else:
            # A timeout moves the epoch on by one, as an end does: then the commit looks like a wrong retry.
            assert error in FENCED or error == ErrorCode.INVALID_TXN_STATE, error
            writer.producer_id = -1

    def deliver_late(self) -> None:
        """It reaches the broker long after its sender gave up, or once more."""
        number, written, request = self.late.pop(self.chance.randrange(len(self.late)))
        before = self.seen()
        response = self.world.client("zombie").ask(request, 5)
        known = any(b"%d" % number in values for values in self.visible.values())
        if response.error_code == NONE and request.committed and not known:
            self.ended(number, written, True)
        elif self.seen() != before:
            raise AssertionError(f"a late EndTxn of {number} changed what is read")

    def crash_while_ending(
        self, writer: Writer, request: EndTxnRequest, number: int, written: set[int]
    ) -> None:
        """Nobody knows the outcome; but it is one outcome, on both partitions and for the offset."""
        writer.client.submit(request, 5 if self.bump else 3)
        if self.chance.random() < 0.5:  # power goes while the disk is at it
            window = self.world.log.take_window()
            self.world.disk.fail_sync_at = self.world.disk.syncs + 1
            if window is not None:
                with contextlib.suppress(OSError):
                    self.world.log.write_window(window)
        self.again(lambda: self.world.crash(self.chance.randrange(1_000)))
        name = b"%d" % number
        seen = {index for index in (0, 1) if name in self.seen()[index]}
        assert seen in (set(), written), f"half of transaction {number} is seen: {seen} of {written}"
        if seen:
            self.ended(number, written, True)
        writer.producer_id = -1

    def ended(self, number: int, written: set[int], commit: bool) -> None:
        if commit:
            self.commits += 1
            for partition in written:
                self.visible[partition].append(b"%d" % number)
            if len(written) == 2:
                self.offset = number
        self.check()

    def again(self, restart: Callable[[], None]) -> None:
        restart()
        for writer in self.writers:
            writer.client = self.world.client("tx")

    def seen(self) -> dict[int, list[bytes]]:
        client = self.world.client()
        return {partition: read_committed(client, "events", partition) for partition in (0, 1)}

    def check(self) -> None:
        for partition, values in self.seen().items():
            # What is behind an open transaction is not read yet; nothing else may be missing, or too much.
            assert values == self.visible[partition][: len(values)]
        assert committed(self.world.client(), "g") == self.offset

    def finish(self) -> None:
        self.world.advance(600_000)  # whoever holds readers back is aborted
        assert self.seen() == self.visible
        assert committed(self.world.client(), "g", stable=True) == self.offset
        assert not self.world.bugs, self.world.bugs


@pytest.mark.parametrize("bump", [False, True], ids=["first protocol", "second protocol"])
@pytest.mark.parametrize("seed", range(12))
def test_transactions_are_whole_and_only_their_owners_end_them(seed: int, bump: bool) -> None:
    fight(seed, bump)


@pytest.mark.slow
@pytest.mark.parametrize("bump", [False, True], ids=["first protocol", "second protocol"])
@pytest.mark.parametrize("tens", range(100, 150))
def test_transactions_are_whole_over_very_many_fights(tens: int, bump: bool) -> None:
    for seed in range(tens * 10, tens * 10 + 10):
        fight(seed, bump)


def fight(seed: int, bump: bool) -> None:
    print(f"seed {seed}")
    one: Any = Fight(seed, bump)
    for _ in range(STEPS):
        one.step()
    one.finish()
    assert one.commits > 3, "a run in which hardly anything is committed shows nothing"
