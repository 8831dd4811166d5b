"""ListOffsets, OffsetForLeaderEpoch, DeleteRecords: offsets by time, by epoch, and the start of the log."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.wire.errors import ErrorCode
from headwater.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from headwater.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from headwater.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

from .conftest import Client, World
from .test_fetch import end, transactional
from .test_produce import NOW, batch

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -1, -2, -3, -4, -5, -6


def offsets(client: Client, *asked: tuple[str, int, int], version: int = 11, isolation: int = 0, **fields: Any) -> Any:
    topics = [
        ListOffsetsTopic(
            name=name, partitions=[ListOffsetsPartition(partition_index=index, timestamp=timestamp, **fields)]
        )
        for name, index, timestamp in asked
    ]
    return client.ask(ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=topics), version)


def offset(client: Client, timestamp: int, **fields: Any) -> tuple[int, int, int, int]:
    """(error, timestamp, offset, leader epoch) of partition 0 of `t`."""
    (each,) = offsets(client, ("t", 0, timestamp), **fields).topics[0].partitions
    return each.error_code, each.timestamp, each.offset, each.leader_epoch


@pytest.fixture
def filled(client: Client) -> Client:
    """Five batches of two records, a second apart."""
    client.create("t", 2)
    for second in range(5):
        client.produce("t", batch(b"a", b"b", now_ms=NOW + second * 1000))
    return client


@pytest.mark.parametrize(
    ("timestamp", "answer"),
    [
        (LATEST, (0, -1, 10, 0)),
        (EARLIEST, (0, -1, 0, 0)),
        (MAX_TIMESTAMP, (0, NOW + 4000, 8, 0)),
        (EARLIEST_LOCAL, (0, -1, 0, 0)),
        (LATEST_TIERED, (0, -1, -1, -1)),
        (EARLIEST_PENDING, (0, -1, -1, -1)),
        (-7, (ErrorCode.UNSUPPORTED_VERSION, -1, -1, -1)),
        (0, (0, NOW, 0, 0)),
        (NOW + 1500, (0, NOW + 2000, 4, 0)),
        (NOW + 4000, (0, NOW + 4000, 8, 0)),
        (NOW + 4001, (0, -1, -1, -1)),
    ],
)
def test_a_point_in_time_has_kafkas_offset(filled: Client, timestamp: int, answer: tuple[int, ...]) -> None:
    assert offset(filled, timestamp) == answer


@pytest.mark.parametrize(
    ("timestamp", "answer"),
    [
        (LATEST, (0, -1, 0, 0)),
        (MAX_TIMESTAMP, (0, -1, -1, -1)),
        (5, (0, -1, -1, -1)),
    ],
)
def test_an_empty_partition_has_an_end_and_no_times(filled: Client, timestamp: int, answer: tuple[int, ...]) -> None:
    (each,) = offsets(filled, ("t", 1, timestamp)).topics[0].partitions
    assert (each.error_code, each.timestamp, each.offset, each.leader_epoch) == answer


@pytest.mark.parametrize("version", range(1, 12))
def test_special_timestamps_exist_from_the_version_that_brought_them(filled: Client, version: int) -> None:
    first = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING: 11}
    for timestamp, since in first.items():
        code = 0 if version >= since else ErrorCode.UNSUPPORTED_VERSION
        assert offset(filled, timestamp, version=version)[0] == code
    assert offset(filled, LATEST, version=version)[2] == 10


def test_a_partition_asked_for_twice_is_refused_and_the_others_answered(filled: Client) -> None:
    topics = offsets(filled, ("t", 0, LATEST), ("t", 1, LATEST), ("t", 0, EARLIEST)).topics
    assert [(p.partition_index, p.error_code) for p in topics[0].partitions] == [(0, 42), (1, 0)]


def test_unknown_partitions_and_epochs_are_named(filled: Client) -> None:
    topics = offsets(filled, ("none", 0, LATEST), ("t", 9, LATEST)).topics
    assert [p.error_code for topic in topics for p in topic.partitions] == [3, 3]
    assert offset(filled, LATEST, current_leader_epoch=3)[0] == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_the_latest_committed_offset_is_the_last_stable_one(world: World, filled: Client) -> None:
    transactional(world, b"open", 7)
    world.settle()
    assert offset(filled, LATEST)[2] == 11
    assert offset(filled, LATEST, isolation=1)[2] == 10
    end(world, 7, commit=True)
    world.settle()
    assert offset(filled, LATEST, isolation=1)[2] == 12


def test_times_are_found_again_from_the_disk(world: World, filled: Client) -> None:
    world.restart()
    assert offset(world.client(), NOW + 1500) == (0, NOW + 2000, 4, 0)
    assert offset(world.client(), MAX_TIMESTAMP) == (0, NOW + 4000, 8, 0)


# --- epochs


def epoch_end(client: Client, epoch: int, current: int = -1, version: int = 4) -> tuple[int, int, int]:
    each = OffsetForLeaderPartition(partition=0, current_leader_epoch=current, leader_epoch=epoch)
    topics = [OffsetForLeaderTopic(topic="t", partitions=[each])]
    (answer,) = client.ask(OffsetForLeaderEpochRequest(topics=topics), version).topics[0].partitions
    return answer.error_code, answer.leader_epoch, answer.end_offset


@pytest.mark.parametrize("version", [2, 3, 4])
def test_an_epoch_ends_where_the_log_ends(filled: Client, version: int) -> None:
    assert epoch_end(filled, 0, version=version) == (0, 0, 10)
    assert epoch_end(filled, 5, version=version) == (0, -1, -1)
    assert epoch_end(filled, -1, version=version) == (0, -1, -1)
    assert epoch_end(filled, 0, current=1, version=version) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)


def test_an_epoch_ended_where_the_broker_died(world: World, filled: Client) -> None:
    world.crash()
    client = world.client()
    client.produce("t", batch(b"after", now_ms=NOW))
    assert epoch_end(client, 0) == (0, 0, 10)
    assert epoch_end(client, 1) == (0, 1, 11)
    assert epoch_end(client, 0, current=0) == (ErrorCode.FENCED_LEADER_EPOCH, -1, -1)


# --- deletion


def delete(client: Client, before: int, topic: str = "t", index: int = 0) -> tuple[int, int]:
    each = DeleteRecordsPartition(partition_index=index, offset=before)
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[each])], timeout_ms=1000)
    (answer,) = client.ask(request, 2).topics[0].partitions
    return answer.error_code, answer.low_watermark


def test_the_log_starts_where_records_were_deleted_up_to(world: World, filled: Client) -> None:
    assert delete(filled, 3) == (0, 3)
    assert delete(filled, 2) == (0, 3)
    assert offset(filled, EARLIEST)[2] == 3
    assert filled.fetch("t", 2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert delete(filled, -1) == (0, 10)
    world.crash()
    assert offset(world.client(), EARLIEST)[2] == 10


@pytest.mark.parametrize("before", [-2, 11])
def test_only_what_is_there_can_be_deleted(filled: Client, before: int) -> None:
    assert delete(filled, before) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


def test_deletion_is_refused_where_it_makes_no_sense(world: World, filled: Client) -> None:
    filled.create("c", cleanup_policy="compact")
    world.log.create_topic("__consumer_offsets", 1, {})
    assert delete(filled, 0, "c") == (ErrorCode.POLICY_VIOLATION, -1)
    assert delete(filled, 0, "__consumer_offsets") == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)
    assert delete(filled, 0, "none") == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert delete(filled, 0, "t", 9) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


def test_a_waiting_reader_learns_that_its_offset_is_gone(world: World, filled: Client) -> None:
    from .test_fetch import ask, shape

    filled.submit(DeleteRecordsRequest(), 2)
    pending = world.client().submit(ask(("t", 1, 0), max_wait_ms=500), 12)
    filled.produce("t", batch(b"x"), partition=1)
    assert shape(pending.response)[0][2] == 0
