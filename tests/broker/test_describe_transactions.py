"""DescribeTransactions: one answer for each id, known or not."""

from __future__ import annotations

from headwater.wire.errors import ErrorCode
from headwater.wire.messages.describe_transactions import DescribeTransactionsRequest
from tests.broker.conftest import Client, World
from tests.broker.members import Producer


def test_an_open_transaction_is_shown_with_its_owner_and_partitions(world: World, client: Client) -> None:
    client.create("events", partitions=2)
    producer = Producer(world, "tx", timeout_ms=1_234)
    producer.begin()
    began_ms = world.clock.wall_ms()
    producer.add("events", 0, 1)
    shown, unknown, empty = client.ask(
        DescribeTransactionsRequest(transactional_ids=["tx", "none", ""]), 0
    ).transaction_states
    assert (shown.error_code, shown.transaction_state) == (0, "Ongoing")
    assert (shown.producer_id, shown.producer_epoch) == (producer.producer_id, 0)
    assert (shown.transaction_timeout_ms, shown.transaction_start_time_ms) == (1_234, began_ms)
    assert [(topic.topic, sorted(topic.partitions)) for topic in shown.topics] == [("events", [0, 1])]
    assert unknown.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert empty.error_code == ErrorCode.INVALID_REQUEST


def test_before_its_first_partition_a_transaction_has_not_begun(world: World, client: Client) -> None:
    Producer(world, "tx").begin()
    (shown,) = client.ask(DescribeTransactionsRequest(transactional_ids=["tx"]), 0).transaction_states
    assert (shown.transaction_state, shown.transaction_start_time_ms, shown.topics) == ("Empty", -1, [])
