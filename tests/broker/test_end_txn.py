"""EndTxn: commit and abort, repeated and late, in both protocols; what readers see of it."""

from __future__ import annotations

import pytest

from headwater.broker.transactions.transaction import EPOCH_EXHAUSTED
from headwater.wire.errors import ErrorCode
from headwater.wire.messages.describe_transactions import DescribeTransactionsRequest
from headwater.wire.messages.end_txn import EndTxnRequest
from tests.broker.conftest import Client, World
from tests.broker.members import Producer, commit_request, committed, read_committed

NONE = ErrorCode.NONE


@pytest.fixture
def producer(world: World) -> Producer:
    return begun(world, bump=False)


def begun(world: World, *, bump: bool) -> Producer:
    if "events" not in world.log.topics:
        world.client().create("events", partitions=2)
    made = Producer(world, "tx", bump=bump)
    made.begin()
    return made


def transact(producer: Producer, value: bytes, partition: int = 0) -> None:
    if not producer.bump:
        assert producer.add("events", partition) == NONE
    assert producer.write("events", value, partition) == NONE


def state(client: Client) -> tuple[str, int]:
    (shown,) = client.ask(DescribeTransactionsRequest(transactional_ids=["tx"]), 0).transaction_states
    return shown.transaction_state, shown.producer_epoch


@pytest.mark.parametrize("version", range(6))
def test_what_is_committed_is_read_and_what_is_aborted_is_not(world: World, version: int) -> None:
    producer = begun(world, bump=version >= 5)
    for value, commit in ((b"a", True), (b"b", False), (b"c", True)):
        transact(producer, value)
        assert read_committed(producer.client, "events").count(value) == 0
        assert producer.end(commit, version) == NONE
    assert read_committed(producer.client, "events") == [b"a", b"c"]


def test_the_end_is_answered_only_when_it_is_durable_on_all_partitions(
    world: World, producer: Producer
) -> None:
    transact(producer, b"one", 0)
    transact(producer, b"two", 1)
    pending = producer.client.submit(EndTxnRequest(committed=True, **producer.owner()), 3)
    assert not pending.done
    assert world.log.topics["events"].partitions[0].last_stable_offset == 0
    world.log.commit()
    assert pending.response.error_code == NONE
    for partition in (0, 1):
        assert len(read_committed(producer.client, "events", partition)) == 1


def test_offsets_and_records_become_visible_together(world: World, producer: Producer) -> None:
    transact(producer, b"result")
    producer.add_offsets("g")
    producer.commit_offset("g", 41)
    assert committed(producer.client, "g") == -1
    producer.end(commit=True)
    assert committed(producer.client, "g") == 41
    assert read_committed(producer.client, "events") == [b"result"]
    transact(producer, b"undone")
    producer.add_offsets("g")
    producer.commit_offset("g", 99)
    producer.end(commit=False)
    assert committed(producer.client, "g", stable=True) == 41


def test_a_later_plain_commit_is_not_overtaken_by_an_earlier_transactional_one(
    world: World, producer: Producer
) -> None:
    producer.add_offsets("g")
    producer.commit_offset("g", 5)
    producer.client.ask(commit_request("g", {("events", 0): 7}), 8)
    producer.end(commit=True)
    assert committed(producer.client, "g") == 7
    world.restart()
    assert committed(world.client(), "g") == 7


@pytest.mark.parametrize("version", range(5))
def test_a_repeated_end_succeeds_and_the_opposite_does_not(world: World, version: int) -> None:
    producer = begun(world, bump=False)
    assert producer.end(True, version) == ErrorCode.INVALID_TXN_STATE
    assert producer.end(False, version) == ErrorCode.INVALID_TXN_STATE
    transact(producer, b"a")
    assert producer.end(True, version) == NONE
    assert producer.end(True, version) == NONE
    assert producer.end(False, version) == ErrorCode.INVALID_TXN_STATE
    transact(producer, b"b")
    assert producer.end(False, version) == NONE
    assert producer.end(False, version) == NONE
    assert producer.end(True, version) == ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize("version", range(6))
def test_only_the_owner_may_end(world: World, version: int) -> None:
    producer = begun(world, bump=version >= 5)
    transact(producer, b"a")
    fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    for change, error in (
        ({"producer_epoch": producer.epoch + 1}, fenced),
        ({"producer_epoch": producer.epoch - 1}, fenced),
        ({"producer_id": producer.producer_id + 1}, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ({"transactional_id": "other"}, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ({"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
    ):
        response = producer.client.ask(
            EndTxnRequest(committed=True, **{**producer.owner(), **change}), version
        )
        assert (response.error_code, response.producer_id, response.producer_epoch) == (error, -1, -1)
    assert producer.end(True, version) == NONE


# ------------------------------------------------------------ the second protocol


def test_from_version_5_every_end_moves_the_epoch_on(world: World, client: Client) -> None:
    producer = begun(world, bump=True)
    for epoch, commit in enumerate((True, False, True), start=1):
        transact(producer, b"x")
        assert producer.end(commit) == NONE
        assert state(client) == ("CompleteCommit" if commit else "CompleteAbort", epoch)
        assert producer.epoch == epoch


def test_a_retry_under_the_old_epoch_is_told_the_new_one(world: World) -> None:
    producer = begun(world, bump=True)
    transact(producer, b"x")
    late = EndTxnRequest(committed=True, **producer.owner())
    opposite = EndTxnRequest(committed=False, **producer.owner())
    assert producer.end(True) == NONE
    response = producer.client.ask(late, 5)
    assert (response.error_code, response.producer_epoch) == (NONE, 1)
    assert producer.client.ask(opposite, 5).error_code == ErrorCode.INVALID_TXN_STATE


def test_a_late_end_cannot_touch_the_next_transaction(world: World) -> None:
    producer = begun(world, bump=True)
    transact(producer, b"first")
    late = [EndTxnRequest(committed=commit, **producer.owner()) for commit in (True, False)]
    assert producer.end(True) == NONE
    transact(producer, b"second")
    for request in late:
        assert producer.client.ask(request, 5).error_code == ErrorCode.PRODUCER_FENCED
    assert read_committed(producer.client, "events") == [b"first"]
    assert producer.end(True) == NONE
    assert read_committed(producer.client, "events") == [b"first", b"second"]


def test_nothing_may_be_aborted_but_not_committed(world: World, client: Client) -> None:
    producer = begun(world, bump=True)
    assert producer.end(True) == ErrorCode.INVALID_TXN_STATE
    assert producer.end(False) == NONE
    assert state(client) == ("CompleteAbort", 1)
    assert producer.end(True) == ErrorCode.INVALID_TXN_STATE
    assert producer.end(False) == NONE
    assert state(client) == ("CompleteAbort", 2)


def test_an_epoch_that_runs_out_is_followed_by_a_new_id_with_retries_told_so(world: World) -> None:
    producer = begun(world, bump=True)
    world.broker.transactions.by_id["tx"].producer_epoch = producer.epoch = EPOCH_EXHAUSTED
    before = producer.producer_id
    transact(producer, b"x")
    late = EndTxnRequest(committed=True, **producer.owner())
    assert producer.end(True) == NONE
    assert producer.epoch == 0
    assert producer.producer_id != before
    again = producer.client.ask(late, 5)
    assert (again.error_code, again.producer_id, again.producer_epoch) == (NONE, producer.producer_id, 0)
    transact(producer, b"y")
    assert producer.end(True) == NONE
    assert read_committed(producer.client, "events") == [b"x", b"y"]


# --------------------------------------------------------------------- timeouts


def test_a_transaction_that_takes_too_long_is_aborted_and_its_owner_fenced(
    world: World, client: Client
) -> None:
    client.create("events")
    slow = Producer(world, "tx", timeout_ms=20_000)
    slow.begin()
    transact(slow, b"late")
    world.advance(20_000)
    assert state(client) == ("Ongoing", 0)
    world.advance(10_001)
    assert state(client) == ("CompleteAbort", 1)
    assert slow.end(True) == ErrorCode.PRODUCER_FENCED
    assert slow.add("events", 0) == ErrorCode.PRODUCER_FENCED
    assert read_committed(client, "events") == []


def test_the_timeout_goes_on_over_a_restart_and_ignores_a_wrong_wall_clock(world: World) -> None:
    world.client().create("events")
    slow = Producer(world, "tx", timeout_ms=60_000)
    slow.begin()
    transact(slow, b"late")
    world.advance(40_000)
    world.clock.jump(-86_400_000)
    world.restart()
    world.advance(30_000)
    world.advance(40_000)
    assert state(world.client())[0] == "CompleteAbort"


def test_a_deleted_topic_does_not_keep_a_transaction_from_ending(world: World, producer: Producer) -> None:
    transact(producer, b"x", 0)
    world.client().create("other")
    assert producer.add("other", 0) == NONE
    assert producer.write("other", b"y") == NONE
    world.log.delete_topic(world.log.topics["events"])
    assert producer.end(commit=True) == NONE
    assert read_committed(world.client(), "other") == [b"y"]
