"""The log stops at its first failed sync: whoever waits is told, and nobody is promised anything more."""

from __future__ import annotations

import contextlib

import pytest

from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.messages.delete_groups import DeleteGroupsRequest
from headwater.wire.messages.end_txn import EndTxnRequest
from headwater.wire.messages.find_coordinator import FindCoordinatorRequest
from headwater.wire.messages.init_producer_id import InitProducerIdRequest
from headwater.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tests.broker.conftest import World
from tests.broker.members import Consumer, Producer, commit_error, commit_request, committed

NOT_HERE = ErrorCode.NOT_COORDINATOR


def fence(world: World) -> None:
    """The next window cannot be written."""
    window = world.log.take_window()
    assert window is not None
    world.log.window_failed(window, OSError(5, "input/output error"))
    assert world.log.fenced is not None


@pytest.fixture
def producer(world: World) -> Producer:
    world.client().create("events")
    made = Producer(world, "tx")
    made.begin()
    made.add("events", 0)
    made.write("events", b"x")
    return made


def test_everybody_who_waits_for_the_disk_is_answered(world: World, producer: Producer) -> None:
    client = world.client()
    client.ask(commit_request("idle", {("events", 0): 1}), 8)
    consumer = Consumer(world, "g")
    consumer.join()
    commit = client.submit(commit_request("simple", {("events", 0): 1}), 8)
    sync = consumer.send_sync({consumer.member_id: b"part"})
    delete = client.submit(DeleteGroupsRequest(groups_names=["idle"]), 2)
    stable = client.submit(
        OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)], require_stable=True),
        8,
    )
    end = client.submit(EndTxnRequest(committed=True, **producer.owner()), 3)
    init = client.submit(InitProducerIdRequest(transactional_id="other", transaction_timeout_ms=1_000), 4)
    fence(world)
    assert commit_error(commit.response) == NOT_HERE
    assert sync.response.error_code == NOT_HERE
    assert delete.response.results[0].error_code == NOT_HERE
    assert stable.response.groups[0].error_code == NOT_HERE
    assert (end.response.error_code, init.response.error_code) == (NOT_HERE, NOT_HERE)


def test_afterwards_nothing_is_promised_any_more(world: World, producer: Producer) -> None:
    client = world.client()
    client.submit(commit_request("simple", {("events", 0): 1}), 8)
    fence(world)

    def now(request: object, version: int) -> object:
        pending = client.submit(request, version)
        assert pending.done, "a fenced log answers nobody later"
        return pending.response

    assert commit_error(now(commit_request("simple", {("events", 0): 2}), 8)) == NOT_HERE
    for commit in (True, False):
        ended = now(EndTxnRequest(committed=commit, **producer.owner()), 3)
        assert ended.error_code == NOT_HERE  # type: ignore[attr-defined]
    taken = now(InitProducerIdRequest(transactional_id=None), 4)
    assert taken.error_code == NOT_HERE  # type: ignore[attr-defined]
    found = now(FindCoordinatorRequest(key="g", key_type=0), 3)
    assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE  # type: ignore[attr-defined]


def test_what_was_not_durable_is_not_there_after_the_restart_that_follows(
    world: World, producer: Producer
) -> None:
    client = world.client()
    client.ask(commit_request("simple", {("events", 0): 1}), 8)
    client.submit(commit_request("simple", {("events", 0): 2}), 8)
    fence(world)
    world.crash(seed=2)
    assert committed(world.client(), "simple") == 1
    producer.client = world.client("tx")
    assert producer.end(commit=True) == ErrorCode.NONE


@pytest.mark.parametrize("nth", range(1, 12))
def test_a_sync_that_fails_at_any_call_loses_nothing_that_was_acknowledged(nth: int) -> None:
    world = World()
    client = world.client()
    client.create("events")
    client.ask(commit_request("g", {("events", 0): 0}), 8)
    acknowledged = 0
    world.disk.fail_sync_at = world.disk.syncs + nth
    for offset in range(1, 20):
        pending = client.submit(commit_request("g", {("events", 0): offset}), 8)
        with contextlib.suppress(KafkaError):  # the fence is what this is about
            world.log.commit()
        if pending.done and commit_error(pending.response) == ErrorCode.NONE:
            acknowledged = offset
        if world.log.fenced is not None:
            break
    world.disk.fail_sync_at = None
    world.crash(seed=nth)
    assert committed(world.client(), "g") >= acknowledged
