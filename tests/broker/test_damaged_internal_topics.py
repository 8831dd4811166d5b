"""Damage in the broker's own topics: whom it concerns is refused, everybody else goes on, nobody is told old things."""

from __future__ import annotations

from headwater.broker.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE, partition_for
from headwater.wire import batch
from headwater.wire.errors import ErrorCode
from headwater.wire.messages.describe_groups import DescribeGroupsRequest
from headwater.wire.messages.init_producer_id import InitProducerIdRequest
from headwater.wire.messages.list_groups import ListGroupsRequest
from headwater.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from headwater.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from tests.broker.conftest import Client, World
from tests.peers.requests import commit, committed

NOT_AVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE


def committed_offset(client: Client, group: str, *, stable: bool = False) -> tuple[int, int]:
    """(error of the group, offset)"""
    request: OffsetFetchRequest = committed(group, "t", 0, stable=stable)
    answer: OffsetFetchResponse = client.ask(request, 7)
    return answer.error_code, answer.topics[0].partitions[0].committed_offset


def commit_offset(client: Client, group: str, offset: int) -> int:
    request: OffsetCommitRequest = commit(group, "t", offset)
    answer: OffsetCommitResponse = client.ask(request, 7)
    return answer.topics[0].partitions[0].error_code


def flip_a_bit(world: World, topic: str, key: str, *, of_batch: int) -> None:
    """A clean stop, a bit of the partition to which the key belongs turns over, a start."""
    partition = world.log.topics[topic].partitions[partition_for(key, 50)]
    sizes = [header.size for view in partition.batches() for _, header in batch.headers(view)]
    path, position = partition.segments[0].path, sum(sizes[:of_batch]) + batch.HEADER_BYTES + 1
    world.log.close()
    handle = world.disk.open(path, write=True)
    (byte,) = world.disk.read(handle, position, 1)
    world.disk.write(handle, position, [bytes([byte ^ 1])])
    world.disk.close(handle)
    world.open()


def test_a_group_whose_offsets_are_damaged_is_refused_and_the_others_go_on(world: World, client: Client) -> None:
    client.create("t")
    for offset in (3, 4):
        assert commit_offset(client, "harmed", offset) == commit_offset(client, "other", offset) == 0
    assert partition_for("harmed", 50) != partition_for("other", 50)
    flip_a_bit(world, CONSUMER_OFFSETS, "harmed", of_batch=1)
    client = world.client()
    assert committed_offset(client, "other") == (0, 4)
    assert commit_offset(client, "other", 5) == 0
    assert committed_offset(client, "harmed") == committed_offset(client, "harmed", stable=True) == (NOT_AVAILABLE, -1)
    assert commit_offset(client, "harmed", 9) == NOT_AVAILABLE
    described = client.ask(DescribeGroupsRequest(groups=["harmed", "other"]), 6).groups
    assert {each.group_id: each.error_code for each in described} == {"harmed": NOT_AVAILABLE, "other": 0}
    assert [each.group_id for each in client.ask(ListGroupsRequest(), 4).groups] == ["other"]
    assert [damage.topic for damage in world.log.damage] == [CONSUMER_OFFSETS]


def test_a_transactional_id_whose_state_is_damaged_is_refused_and_the_others_go_on(
    world: World, client: Client
) -> None:
    def init(client: Client, name: str) -> tuple[int, int]:
        request = InitProducerIdRequest(
            transactional_id=name, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
        )
        answer = client.ask(request, 4)
        return answer.error_code, answer.producer_epoch

    assert init(client, "harmed") == init(client, "other") == (0, 0)
    assert partition_for("harmed", 50) != partition_for("other", 50)
    flip_a_bit(world, TRANSACTION_STATE, "harmed", of_batch=0)
    client = world.client()
    assert init(client, "harmed") == (NOT_AVAILABLE, -1)
    assert init(client, "other") == (0, 1)


def test_a_record_that_a_client_wrote_into_our_topic_does_not_keep_the_broker_from_starting(
    world: World, client: Client
) -> None:
    client.create("t")
    assert commit_offset(client, "group", 4) == 0
    admin = world.client("__admin_client")
    for topic, key in ((CONSUMER_OFFSETS, b"\0\1nonsense"), (CONSUMER_OFFSETS, b"\0\2"), (TRANSACTION_STATE, b"\0\0x")):
        if topic == TRANSACTION_STATE:
            world.broker.transactions.topic.ensure()
        written = batch.build([(key, b"\0\3nonsense")], now_ms=world.clock.wall_ms())
        assert admin.produce(topic, written, partition=partition_for("group", 50)).error_code == 0
    world.restart()
    assert committed_offset(world.client(), "group") == (0, 4)
    assert [damage.topic for damage in world.log.damage] == [CONSUMER_OFFSETS, CONSUMER_OFFSETS, TRANSACTION_STATE]
