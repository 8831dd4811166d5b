"""TxnOffsetCommit: only inside the transaction, only under a live generation."""

from __future__ import annotations

import pytest

from headwater.wire.errors import ErrorCode
from tests.broker.conftest import World
from tests.broker.members import Producer, committed, start_alone

NONE = ErrorCode.NONE


@pytest.fixture
def producer(world: World) -> Producer:
    world.client().create("events")
    made = Producer(world, "tx")
    made.begin()
    return made


@pytest.mark.parametrize(
    ("version", "error"),
    [(version, ErrorCode.INVALID_TXN_STATE) for version in range(4)] + [(4, ErrorCode.TRANSACTION_ABORTABLE)],
)
def test_before_version_5_the_group_must_have_been_added(
    producer: Producer, version: int, error: ErrorCode
) -> None:
    assert producer.commit_offset("g", 1, version=version or None) == error
    assert producer.add_offsets("g") == NONE
    assert producer.commit_offset("g", 1, version=version or None) == NONE


def test_version_5_adds_the_group_by_itself(producer: Producer) -> None:
    assert producer.commit_offset("g", 1, version=5) == NONE
    assert producer.end(True, 5) == NONE
    assert committed(producer.client, "g") == 1


@pytest.mark.parametrize("version", [1, 3, 5])
def test_only_the_owner_may_commit(producer: Producer, version: int) -> None:
    producer.add_offsets("g")
    producer.epoch += 1
    assert producer.commit_offset("g", 1, version=version) == ErrorCode.INVALID_PRODUCER_EPOCH
    producer.epoch -= 1
    producer.producer_id += 1
    assert producer.commit_offset("g", 1, version=version) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    producer.transactional_id = "other"
    assert producer.commit_offset("g", 1, version=version) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    producer.transactional_id = ""
    assert producer.commit_offset("g", 1, version=version) == ErrorCode.INVALID_REQUEST
    producer.transactional_id = "tx"
    assert producer.commit_offset("", 1, version=version) == ErrorCode.INVALID_GROUP_ID


def test_a_member_of_an_old_generation_may_not_commit(world: World, producer: Producer) -> None:
    consumer = start_alone(world, "g")
    producer.add_offsets("g")

    def commit(**who: object) -> ErrorCode:
        values = {"generation_id": consumer.generation, "member_id": consumer.member_id, **who}
        return producer.commit_offset("g", 1, **values)

    assert commit() == NONE
    assert commit(generation_id=0) == ErrorCode.ILLEGAL_GENERATION
    assert commit(member_id="x") == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(group_instance_id="i") == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(generation_id=-1, member_id="") == NONE, (
        "clients before version 3 could not say who they were"
    )


def test_the_generation_of_an_unknown_group_is_illegal(producer: Producer) -> None:
    producer.add_offsets("g")
    assert producer.commit_offset("g", 1, generation_id=3, member_id="m") == ErrorCode.ILLEGAL_GENERATION


def test_offsets_in_an_open_transaction_survive_a_restart_and_a_crash(
    world: World, producer: Producer
) -> None:
    producer.add_offsets("g")
    producer.commit_offset("g", 8)
    for restart in (world.restart, world.crash):
        restart()
        client = world.client("tx")
        assert committed(client, "g") == -1
        assert committed(client, "g", stable=True) == -ErrorCode.UNSTABLE_OFFSET_COMMIT
    producer.client = world.client("tx")
    assert producer.end(commit=True) == NONE
    assert committed(producer.client, "g", stable=True) == 8
    world.restart()
    assert committed(world.client(), "g") == 8
