"""AddOffsetsToTxn: the group's partition becomes part of the transaction."""

from __future__ import annotations

import pytest

from headwater.broker.internal_topics import partition_for
from headwater.wire.errors import ErrorCode
from headwater.wire.messages.describe_transactions import DescribeTransactionsRequest
from tests.broker.conftest import Client, World
from tests.broker.members import Producer


@pytest.mark.parametrize("version", range(5))
def test_the_partition_of_the_group_is_added(world: World, client: Client, version: int) -> None:
    producer = Producer(world, "tx")
    producer.begin()
    assert producer.add_offsets("g", version) == ErrorCode.NONE
    (state,) = client.ask(DescribeTransactionsRequest(transactional_ids=["tx"]), 0).transaction_states
    assert [(topic.topic, topic.partitions) for topic in state.topics] == [
        ("__consumer_offsets", [partition_for("g", 50)])
    ]


@pytest.mark.parametrize("version", range(5))
def test_only_the_owner_may_add(world: World, version: int) -> None:
    producer = Producer(world, "tx")
    producer.begin()
    producer.epoch += 1
    fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert producer.add_offsets("g", version) == fenced
    producer.producer_id += 1
    assert producer.add_offsets("g", version) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    producer.transactional_id = ""
    assert producer.add_offsets("g", version) == ErrorCode.INVALID_REQUEST
