"""Somebody sets the wall clock, by a year in either direction or to and fro: nobody is dropped, nothing is removed.

What waits is timed by the monotonic clock. What is removed by age waits until the wall clock can be believed again.
"""

from __future__ import annotations

import random

import pytest

from headwater.wire import batch
from headwater.wire.errors import ErrorCode
from tests.broker.conftest import Client, World
from tests.broker.members import (
    Consumer,
    Producer,
    commit_error,
    commit_request,
    committed,
    read_committed,
    start_alone,
)

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
YEAR_MS = 365 * DAY_MS
NONE = ErrorCode.NONE

years = pytest.mark.parametrize("jump", [YEAR_MS, -YEAR_MS], ids=["a year on", "a year back"])


def pass_time(world: World, milliseconds: int, step: int = 1_000) -> None:
    """As in a process: a tick every second or so."""
    for _ in range(milliseconds // step):
        world.log.tick()
        world.advance(step)


def in_the_middle(world: World, jump: int) -> tuple[Consumer, Producer]:
    """A member of a group and an open transaction, a jump, and a while less than their timeouts."""
    member = start_alone(world, "g", session_timeout_ms=30_000)
    producer = Producer(world, "tx", timeout_ms=60_000)
    producer.begin()
    assert producer.add("events", 0) == NONE
    assert producer.write("events", b"before") == NONE
    world.clock.jump(jump)
    pass_time(world, 25_000)
    return member, producer


@years
def test_sessions_and_transactions_go_on(world: World, client: Client, jump: int) -> None:
    client.create("events", message_timestamp_after_max_ms=str(2 * YEAR_MS))
    member, producer = in_the_middle(world, jump)
    assert member.heartbeat() == NONE
    assert member.commit(5) == NONE
    assert producer.write("events", b"after") == NONE
    assert producer.end(True) == NONE
    assert read_committed(client, "events") == [b"before", b"after"]
    assert committed(client, "g") == 5


@years
def test_who_is_silent_is_still_dropped_in_time(world: World, client: Client, jump: int) -> None:
    client.create("events")
    member, producer = in_the_middle(world, jump)
    pass_time(world, 60_000)
    assert member.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    assert producer.end(True) in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
    assert read_committed(client, "events") == []


@years
def test_nothing_is_removed_by_age_while_the_clock_cannot_be_believed(world: World, client: Client, jump: int) -> None:
    """Records, offsets of groups that nobody is in, transactional ids, producers' states."""
    client.create("events", retention_ms=str(HOUR_MS))
    producer = Producer(world, "tx")
    producer.begin()
    assert producer.add("events", 0) == NONE and producer.write("events", b"kept") == NONE
    assert producer.end(True) == NONE
    assert commit_error(client.ask(commit_request("g", {("events", 0): 3}), 8)) == NONE
    known = len(world.broker.partition("events", 0).producers)  # type: ignore[union-attr]
    world.clock.jump(jump)
    pass_time(world, 2 * HOUR_MS, 10_000)
    assert read_committed(client, "events") == [b"kept"]
    assert committed(client, "g") == 3
    assert len(world.broker.partition("events", 0).producers) == known  # type: ignore[union-attr]
    assert producer.add("events", 0) == NONE, "the transactional id is known"


def test_a_jump_is_noticed_also_by_who_cleans_up_right_after_it(world: World, client: Client) -> None:
    client.create("events")
    assert commit_error(client.ask(commit_request("g", {("events", 0): 3}), 8)) == NONE
    pass_time(world, 595_000, 5_000)  # the round of the offsets is due in five seconds
    world.clock.jump(YEAR_MS)
    world.advance(6_000)
    assert committed(client, "g") == 3


def test_a_year_that_really_passes_is_believed(world: World, client: Client) -> None:
    """The tests above show nothing if nothing were ever removed."""
    client.create("events", retention_ms=str(HOUR_MS))
    client.produce("events", batch.build([(None, b"old")], now_ms=world.clock.wall_ms()))
    assert commit_error(client.ask(commit_request("g", {("events", 0): 3}), 8)) == NONE
    pass_time(world, 8 * DAY_MS, HOUR_MS)
    assert committed(client, "g") == -1
    assert client.fetch("events", 0).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_clock_that_goes_to_and_fro_changes_no_order_of_offsets(world: World, client: Client) -> None:
    client.create("events", message_timestamp_type="LogAppendTime", internal_segment_bytes="1000")
    member = start_alone(world, "g", session_timeout_ms=10_000)
    chance = random.Random(5)
    for number in range(200):
        world.clock.jump(chance.choice((-500, 500, -HOUR_MS, HOUR_MS)))
        data = batch.build([(None, b"%d" % number)], now_ms=world.clock.wall_ms())
        answer = client.produce("events", data)
        assert (answer.error_code, answer.base_offset) == (NONE, number)
        world.log.tick()
        world.advance(100)
        assert member.heartbeat() == NONE
    world.crash()
    assert world.broker.partition("events", 0).log_end_offset == 200  # type: ignore[union-attr]
