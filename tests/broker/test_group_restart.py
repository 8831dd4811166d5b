"""Groups over restarts, clean and not: members go on, assignments and generations are as they were told."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headwater.wire.errors import ErrorCode
from tests.broker.conftest import World
from tests.broker.members import Consumer, committed, start_alone, start_together

NONE = ErrorCode.NONE
Restart = Callable[[World], None]


@pytest.fixture(params=["restart", "crash"])
def restart(request: pytest.FixtureRequest) -> Restart:
    def clean(world: World) -> None:
        world.restart()

    def unclean(world: World) -> None:
        world.crash(seed=3)

    return clean if request.param == "restart" else unclean


def reconnect(world: World, *consumers: Consumer) -> None:
    for consumer in consumers:
        consumer.client = world.client("consumer")


def test_members_of_a_stable_group_go_on_as_if_nothing_had_happened(world: World, restart: Restart) -> None:
    leader, follower = start_together(world, "g", 2)
    restart(world)
    reconnect(world, leader, follower)
    for consumer in (leader, follower):
        assert consumer.heartbeat() == NONE
        before = consumer.assignment
        assert consumer.sync() == NONE
        assert consumer.assignment == before


def test_a_member_that_did_not_survive_is_missed_after_its_session(world: World, restart: Restart) -> None:
    leader, follower = start_together(world, "g", 2, session_timeout_ms=10_000)
    restart(world)
    reconnect(world, leader, follower)
    world.advance(6_000)
    assert leader.heartbeat() == NONE
    world.advance(5_000)
    assert leader.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    assert leader.join() == NONE
    assert [member.member_id for member in leader.members] == [leader.member_id]
    assert follower.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_comes_back_to_its_assignment(world: World, restart: Restart) -> None:
    consumer = Consumer(world, "g", instance="i")
    consumer.join()
    consumer.sync({consumer.member_id: b"part"})
    restart(world)
    again = Consumer(world, "g", instance="i")
    assert again.join(version=9) == NONE
    assert (again.generation, again.sync(), again.assignment) == (1, NONE, b"part")


def test_a_rebalance_that_was_not_finished_is_begun_again(world: World, restart: Restart) -> None:
    leader, follower = start_together(world, "g", 2)
    rejoin = leader.send_join()
    assert follower.join() == NONE
    assert leader.take_join(rejoin) == NONE
    assert leader.generation == 3
    restart(world)
    reconnect(world, leader, follower)
    for consumer in (leader, follower):
        assert consumer.heartbeat() == ErrorCode.ILLEGAL_GENERATION
    pending = leader.send_join()
    assert follower.join() == NONE
    assert leader.take_join(pending) == NONE
    assert leader.generation == 3


def test_an_empty_group_keeps_its_generation_and_its_offsets(world: World, restart: Restart) -> None:
    world.client().create("events")
    consumer = start_alone(world, "g")
    consumer.commit(12)
    consumer.leave()
    restart(world)
    assert committed(world.client(), "g") == 12
    group = world.broker.groups.get("g")
    assert group is not None
    assert (group.generation, group.state.value, group.members) == (2, "Empty", {})


def test_a_group_that_became_larger_than_is_allowed_is_rebalanced_at_the_start() -> None:
    world = World()
    leader, *others = start_together(world, "g", 3)
    world.settings.group_max_size = 2
    world.restart()
    reconnect(world, leader, *others)
    answers = [consumer.send_join() for consumer in (leader, *others)]
    world.advance(60_000)
    errors = sorted(pending.response.error_code for pending in answers)
    assert errors == [NONE, NONE, ErrorCode.GROUP_MAX_SIZE_REACHED]


def test_what_the_broker_writes_is_in_apache_kafkas_format(world: World) -> None:
    """Bytes as Kafka 4.3.1 writes them: key version 1 and value version 4 for offsets, 2 and 3 for groups."""
    world.client().create("events")
    consumer = start_alone(world, "g")
    consumer.commit(7)
    partition = world.broker.groups.topic.partition_of("g")
    from headwater.wire import batch

    written = [record for view in partition.batches() for record in batch.records(view)]
    keys = {
        bytes(record.key)[:2]: bytes(record.value)[:2] for record in written if record.key and record.value
    }
    assert keys == {b"\x00\x01": b"\x00\x04", b"\x00\x02": b"\x00\x03"}
    (offset,) = [record for record in written if record.key and bytes(record.key)[:2] == b"\x00\x01"]
    assert bytes(offset.key or b"") == b"\x00\x01\x00\x01g\x00\x06events\x00\x00\x00\x00"
