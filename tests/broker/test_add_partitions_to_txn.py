"""AddPartitionsToTxn and AddOffsetsToTxn: all of the partitions or none, and only for the owner."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.wire.errors import ErrorCode
from headwater.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from headwater.wire.messages.describe_transactions import DescribeTransactionsRequest
from tests.broker.conftest import Client, World
from tests.broker.members import Producer

NONE = ErrorCode.NONE
Errors = dict[tuple[str, int], int]


@pytest.fixture
def producer(world: World) -> Producer:
    world.client().create("events", partitions=3)
    made = Producer(world, "tx")
    made.begin()
    return made


def add(producer: Producer, version: int, partitions: list[tuple[str, list[int]]], **owner: Any) -> Errors:
    values = {f"v3_and_below_{name}": value for name, value in {**producer.owner(), **owner}.items()}
    topics = [AddPartitionsToTxnTopic(name=name, partitions=indexes) for name, indexes in partitions]
    request = AddPartitionsToTxnRequest(v3_and_below_topics=topics, **values)
    return flat(producer.client.ask(request, version).results_by_topic_v3_and_below)


def flat(topics: Any) -> Errors:
    return {
        (topic.name, part.partition_index): part.partition_error_code
        for topic in topics
        for part in topic.results_by_partition
    }


def shown(client: Client) -> tuple[str, dict[str, list[int]]]:
    (state,) = client.ask(DescribeTransactionsRequest(transactional_ids=["tx"]), 0).transaction_states
    return state.transaction_state, {topic.topic: sorted(topic.partitions) for topic in state.topics}


@pytest.mark.parametrize("version", range(4))
def test_partitions_are_added_and_the_transaction_begins(
    producer: Producer, client: Client, version: int
) -> None:
    assert shown(client) == ("Empty", {})
    assert add(producer, version, [("events", [0, 2])]) == {("events", 0): NONE, ("events", 2): NONE}
    assert shown(client) == ("Ongoing", {"events": [0, 2]})
    assert add(producer, version, [("events", [1])]) == {("events", 1): NONE}
    assert shown(client) == ("Ongoing", {"events": [0, 1, 2]})


@pytest.mark.parametrize("version", range(4))
def test_one_that_cannot_be_added_keeps_the_others_out(
    producer: Producer, client: Client, version: int
) -> None:
    assert add(producer, version, [("events", [0, 9]), ("none", [0])]) == {
        ("events", 0): ErrorCode.OPERATION_NOT_ATTEMPTED,
        ("events", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("none", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert shown(client) == ("Empty", {})


@pytest.mark.parametrize("version", range(4))
def test_only_the_owner_may_add(producer: Producer, version: int) -> None:
    fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    for owner, error in (
        ({"producer_epoch": producer.epoch + 1}, fenced),
        ({"producer_epoch": producer.epoch - 1}, fenced),
        ({"producer_id": producer.producer_id + 1}, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ({"transactional_id": "other"}, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ({"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
    ):
        assert add(producer, version, [("events", [0])], **owner) == {("events", 0): error}


def test_internal_topics_are_not_for_clients(producer: Producer) -> None:
    producer.add_offsets("g")
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert add(producer, 3, [("__consumer_offsets", [0])]) == {("__consumer_offsets", 0): error}


@pytest.mark.parametrize("version", [4, 5])
def test_brokers_ask_for_several_transactions_and_may_only_look(
    producer: Producer, client: Client, version: int
) -> None:
    def ask(verify_only: bool, *partitions: int, **owner: Any) -> dict[str, Errors]:
        topics = [AddPartitionsToTxnTopic(name="events", partitions=list(partitions))]
        asked = AddPartitionsToTxnTransaction(
            topics=topics, verify_only=verify_only, **{**producer.owner(), **owner}
        )
        other = AddPartitionsToTxnTransaction(
            topics=topics, transactional_id="other", verify_only=verify_only
        )
        answer = client.ask(AddPartitionsToTxnRequest(transactions=[asked, other]), version)
        return {each.transactional_id: flat(each.topic_results) for each in answer.results_by_transaction}

    unknown = {("events", 1): ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    assert ask(True, 1) == {"tx": {("events", 1): ErrorCode.TRANSACTION_ABORTABLE}, "other": unknown}
    assert shown(client) == ("Empty", {})
    assert ask(False, 1)["tx"] == {("events", 1): NONE}
    assert ask(True, 1)["tx"] == {("events", 1): NONE}
    assert ask(True, 1, producer_epoch=7)["tx"] == {("events", 1): ErrorCode.PRODUCER_FENCED}


def test_adding_is_answered_only_when_it_is_durable(world: World, producer: Producer) -> None:
    topics = [AddPartitionsToTxnTopic(name="events", partitions=[0])]
    owner = {f"v3_and_below_{name}": value for name, value in producer.owner().items()}
    request = AddPartitionsToTxnRequest(v3_and_below_topics=topics, **owner)
    pending, again = producer.client.submit(request, 3), producer.client.submit(request, 3)
    assert not pending.done
    assert not again.done, "it is known already, but not yet for sure"
    world.log.commit()
    assert pending.done and again.done


def test_an_open_transaction_goes_on_after_a_restart(world: World, producer: Producer) -> None:
    producer.add("events", 0)
    producer.write("events", b"before")
    world.restart()
    producer.client = world.client("tx")
    assert shown(world.client()) == ("Ongoing", {"events": [0]})
    assert producer.write("events", b"after") == NONE
    assert producer.end(commit=True) == NONE
