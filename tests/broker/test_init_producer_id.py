"""InitProducerId: ids that are never given twice, epochs that only go up, owners that are fenced."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.broker.transactions.transaction import EPOCH_EXHAUSTED
from headwater.wire.errors import ErrorCode
from headwater.wire.messages.describe_transactions import DescribeTransactionsRequest
from headwater.wire.messages.init_producer_id import InitProducerIdRequest
from tests.broker.conftest import Client, World
from tests.broker.members import Producer

NONE = ErrorCode.NONE


def init(client: Client, version: int = 4, **fields: Any) -> Any:
    values: dict[str, Any] = {"transactional_id": "tx", "transaction_timeout_ms": 60_000, **fields}
    return client.ask(InitProducerIdRequest(**values), version)


def idempotent(client: Client) -> int:
    response = init(client, transactional_id=None)
    assert (response.error_code, response.producer_epoch) == (NONE, 0)
    return int(response.producer_id)


@pytest.mark.parametrize("version", range(6))
def test_every_version_gives_an_id_to_an_idempotent_producer(client: Client, version: int) -> None:
    response = init(client, version, transactional_id=None, transaction_timeout_ms=-1)
    assert (response.error_code, response.producer_epoch) == (NONE, 0)
    assert response.producer_id >= 0


def test_no_two_producers_share_an_id_across_restarts_and_crashes(world: World) -> None:
    given = []
    for seed in range(4):
        client = world.client()
        given += [idempotent(client) for _ in range(700)]
        given.append(init(client, transactional_id=f"tx-{seed}").producer_id)
        if seed % 2:
            world.restart()
        else:
            world.crash(seed)
    assert len(set(given)) == len(given)


def test_an_id_is_told_only_when_its_reservation_is_durable(world: World, client: Client) -> None:
    pending = client.submit(InitProducerIdRequest(transactional_id=None), 4)
    assert not pending.done
    world.log.commit()
    assert pending.done


def test_each_owner_of_a_transactional_id_has_the_next_epoch(world: World, client: Client) -> None:
    owners = [init(client) for _ in range(3)]
    assert len({owner.producer_id for owner in owners}) == 1
    assert [owner.producer_epoch for owner in owners] == [0, 1, 2]
    world.restart()
    assert init(world.client()).producer_epoch == 3


REFUSED: dict[str, tuple[dict[str, Any], int, ErrorCode]] = {
    "empty id": ({"transactional_id": ""}, 4, ErrorCode.INVALID_REQUEST),
    "timeout too long": ({"transaction_timeout_ms": 900_001}, 4, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
    "timeout zero": ({"transaction_timeout_ms": 0}, 0, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
    "timeout negative": ({"transaction_timeout_ms": -5}, 4, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
    "id without epoch": ({"producer_id": 3}, 4, ErrorCode.INVALID_REQUEST),
    "epoch without id": ({"producer_epoch": 3}, 4, ErrorCode.INVALID_REQUEST),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused(client: Client, case: str) -> None:
    fields, version, error = REFUSED[case]
    response = init(client, version, **fields)
    assert (response.error_code, response.producer_id, response.producer_epoch) == (error, -1, -1)


def test_an_owner_may_recover_under_its_own_epoch_and_retry(client: Client) -> None:
    first = init(client)
    recovered = init(client, producer_id=first.producer_id, producer_epoch=0)
    assert (recovered.producer_id, recovered.producer_epoch) == (first.producer_id, 1)
    retried = init(client, producer_id=first.producer_id, producer_epoch=0)
    assert retried.producer_epoch == 1, "the answer was lost: the same again, without another epoch"
    later = init(client, producer_id=first.producer_id, producer_epoch=1)
    assert later.producer_epoch == 2


@pytest.mark.parametrize(
    ("version", "error"), [(3, ErrorCode.INVALID_PRODUCER_EPOCH), (4, ErrorCode.PRODUCER_FENCED)]
)
def test_an_owner_that_was_replaced_may_not_recover(client: Client, version: int, error: ErrorCode) -> None:
    first = init(client)
    init(client)
    response = init(client, version, producer_id=first.producer_id, producer_epoch=0)
    assert (response.error_code, response.producer_id) == (error, -1)
    assert init(client, version, producer_id=first.producer_id + 1, producer_epoch=1).error_code == error


def test_taking_over_aborts_what_the_earlier_owner_was_doing(world: World, client: Client) -> None:
    client.create("events")
    zombie = Producer(world, "tx")
    zombie.begin()
    zombie.add("events", 0)
    zombie.write("events", b"half")
    assert init(client).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    (shown,) = client.ask(DescribeTransactionsRequest(transactional_ids=["tx"]), 0).transaction_states
    assert (shown.transaction_state, shown.producer_epoch) == ("CompleteAbort", 1)
    assert init(client).producer_epoch == 2
    assert zombie.end(commit=True) == ErrorCode.PRODUCER_FENCED
    assert zombie.write("events", b"more") == ErrorCode.INVALID_PRODUCER_EPOCH


def test_an_exhausted_epoch_gives_way_to_a_new_id(world: World, client: Client) -> None:
    first = init(client)
    world.broker.transactions.by_id["tx"].producer_epoch = EPOCH_EXHAUSTED
    rotated = init(client)
    assert (rotated.error_code, rotated.producer_epoch) == (NONE, 0)
    assert rotated.producer_id != first.producer_id
    # The owner of the exhausted epoch may have missed that answer.
    owner = {"producer_id": first.producer_id, "producer_epoch": EPOCH_EXHAUSTED}
    assert init(client, **owner).error_code == ErrorCode.PRODUCER_FENCED


def test_an_owner_that_exhausted_its_epoch_recovers_under_a_new_id_and_may_retry(
    world: World, client: Client
) -> None:
    first = init(client)
    world.broker.transactions.by_id["tx"].producer_epoch = EPOCH_EXHAUSTED
    owner = {"producer_id": first.producer_id, "producer_epoch": EPOCH_EXHAUSTED}
    rotated = init(client, **owner)
    assert (rotated.error_code, rotated.producer_epoch) == (NONE, 0)
    again = init(client, **owner)
    assert (again.producer_id, again.producer_epoch) == (rotated.producer_id, 0)
