"""Fetch: limits, long polls, isolation, fencing, sessions, and reads that need the disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headwater.wire import batch as record_batch
from headwater.wire.errors import ErrorCode
from headwater.wire.messages.delete_topics import DeleteTopicsRequest
from headwater.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from headwater.wire.messages.produce import ProduceRequest

from .conftest import Client, World, produce_request
from .test_produce import batch

ALL = 1 << 20


def ask(*partitions: tuple[str, int, int], partition_max: int = ALL, **fields: Any) -> FetchRequest:
    """(topic, partition, offset) of each."""
    topics: dict[str, list[FetchPartition]] = {}
    for topic, index, offset in partitions:
        each = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=partition_max)
        topics.setdefault(topic, []).append(each)
    fields = {"min_bytes": 1, "max_bytes": ALL} | fields
    return FetchRequest(topics=[FetchTopic(topic=name, partitions=each) for name, each in topics.items()], **fields)


def shape(response: Any) -> list[tuple[str, int, int, int]]:
    """(topic, partition, error, bytes) in the order of the answer."""
    return [
        (topic.topic, each.partition_index, each.error_code, len(each.records))
        for topic in response.responses
        for each in topic.partitions
    ]


def values(records: Any) -> list[bytes]:
    return [bytes(record.value or b"") for record in record_batch.records(records)]


SIZE = len(batch(b"a", b"b"))


@pytest.fixture
def filled(client: Client) -> Client:
    """Topic `t`: partition 0 has three batches of two records, partition 1 none, partition 2 one."""
    client.create("t", 3)
    for _ in range(3):
        client.produce("t", batch(b"a", b"b"))
    client.produce("t", batch(b"a", b"b"), partition=2)
    return client


@pytest.mark.parametrize("version", range(4, 19))
def test_every_version_reads(client: Client, version: int) -> None:
    topic_id = client.create("t")
    client.produce("t", batch(b"a"))
    each = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=ALL)
    request = FetchRequest(topics=[FetchTopic(topic="t", topic_id=topic_id, partitions=[each])], min_bytes=1)
    (topic,) = client.ask(request, version).responses
    assert (topic.topic, topic.topic_id) == (("t", bytes(16)) if version < 13 else ("", topic_id))
    (data,) = topic.partitions
    assert values(data.records) == [b"a"]
    assert (data.error_code, data.high_watermark, data.last_stable_offset) == (0, 1, 1)
    assert data.aborted_transactions is None and data.preferred_read_replica == -1


def test_an_offset_inside_a_batch_gets_the_whole_batch(filled: Client) -> None:
    data = filled.fetch("t", 3)
    assert len(data.records) == 2 * SIZE
    assert next(record_batch.records(data.records)).offset == 2


def test_the_first_batch_comes_whole_however_small_the_limits(filled: Client) -> None:
    response = filled.ask(ask(("t", 1, 0), ("t", 0, 0), ("t", 2, 0), partition_max=1, max_bytes=1), 12)
    assert shape(response) == [("t", 1, 0, 0), ("t", 0, 0, SIZE), ("t", 2, 0, 0)]


def test_the_partition_limit_gives_whole_batches(filled: Client) -> None:
    response = filled.ask(ask(("t", 0, 0), ("t", 2, 0), partition_max=2 * SIZE + 5), 12)
    assert shape(response) == [("t", 0, 0, 2 * SIZE), ("t", 2, 0, SIZE)]


def test_the_response_limit_is_over_all_partitions(filled: Client) -> None:
    response = filled.ask(ask(("t", 0, 2), ("t", 2, 0), max_bytes=2 * SIZE + 5), 12)
    assert shape(response) == [("t", 0, 0, 2 * SIZE), ("t", 2, 0, 0)]


def test_partitions_that_do_not_exist_come_last(filled: Client) -> None:
    response = filled.ask(ask(("none", 0, 0), ("t", 7, 0), ("t", 0, 0)), 12)
    assert shape(response) == [("t", 0, 0, 3 * SIZE), ("none", 0, 3, 0), ("t", 7, 3, 0)]
    missing = response.responses[1].partitions[0]
    assert (missing.high_watermark, missing.last_stable_offset, missing.log_start_offset) == (-1, -1, -1)
    assert missing.aborted_transactions == []


def test_unknown_topic_ids_are_named_as_such(client: Client) -> None:
    each = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=ALL)
    for topic_id in (b"1" * 16, bytes(16)):
        request = FetchRequest(topics=[FetchTopic(topic_id=topic_id, partitions=[each])])
        (topic,) = client.ask(request, 16).responses
        assert topic.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_of_a_partition_named_twice_the_last_counts(filled: Client) -> None:
    assert shape(filled.ask(ask(("t", 0, 0), ("t", 2, 0), ("t", 0, 4)), 12)) == [("t", 0, 0, SIZE), ("t", 2, 0, SIZE)]


@pytest.mark.parametrize("offset", [-1, 7])
def test_an_offset_outside_the_log_is_out_of_range(filled: Client, offset: int) -> None:
    data = filled.fetch("t", offset, max_wait_ms=10_000, min_bytes=1)
    assert (data.error_code, data.high_watermark, data.records) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1, b"")
    assert data.aborted_transactions is None


# --- waiting


def test_nothing_asked_is_answered_at_once(client: Client) -> None:
    pending = client.submit(FetchRequest(max_wait_ms=10_000, min_bytes=1), 12)
    assert pending.done and pending.response.responses == []


def test_the_end_of_the_log_waits_until_the_time_is_up(world: World, filled: Client) -> None:
    pending = filled.submit(ask(("t", 0, 6), max_wait_ms=500), 12)
    world.advance(499)
    assert not pending.done
    world.advance(1)
    assert shape(pending.response) == [("t", 0, 0, 0)]
    assert bytes(pending.response.responses[0].partitions[0].records) == b""


def test_a_durable_append_wakes_a_waiting_fetch(world: World, filled: Client) -> None:
    reader = world.client()
    pending = reader.submit(ask(("t", 0, 6), ("t", 1, 0), max_wait_ms=500), 12)
    filled.submit(produce_request("t", batch(b"new"), partition=1), 11)
    assert not pending.done
    world.log.commit()
    assert pending.done
    assert values(pending.response.responses[0].partitions[1].records) == [b"new"]
    assert len(world.broker.waiters) == 0 and (world.broker.timers.next_due() or 9999) > 5500


def test_one_window_with_many_partitions_is_one_answer(world: World, filled: Client) -> None:
    reader = world.client()
    pending = reader.submit(ask(("t", 0, 6), ("t", 1, 0), max_wait_ms=500), 12)
    filled.submit(produce_request("t", batch(b"x"), partition=0), 11)
    filled.submit(produce_request("t", batch(b"y"), partition=1), 11)
    world.log.commit()
    assert [size > 0 for _, _, _, size in shape(pending.response)] == [True, True]


def test_min_bytes_counts_over_all_partitions(world: World, filled: Client) -> None:
    reader = world.client()
    pending = reader.submit(ask(("t", 0, 6), ("t", 1, 0), ("t", 2, 0), max_wait_ms=500, min_bytes=2 * SIZE + 1), 12)
    assert not pending.done
    filled.produce("t", batch(b"a", b"b"), partition=1)
    assert not pending.done
    filled.produce("t", batch(b"a", b"b"), partition=0)
    assert [size for _, _, _, size in shape(pending.response)] == [SIZE, SIZE, SIZE]


def test_min_bytes_0_and_max_wait_0_do_not_wait(filled: Client) -> None:
    assert filled.submit(ask(("t", 1, 0), max_wait_ms=500, min_bytes=0), 12).done
    assert filled.submit(ask(("t", 1, 0), max_wait_ms=0, min_bytes=1), 12).done


def test_an_unknown_partition_does_not_end_the_wait_of_another(world: World, filled: Client) -> None:
    pending = filled.submit(ask(("t", 1, 0), ("t", 8, 0), max_wait_ms=500), 12)
    assert not pending.done
    world.advance(500)
    assert shape(pending.response) == [("t", 1, 0, 0), ("t", 8, 3, 0)]


def test_a_deleted_topic_ends_the_wait(world: World, filled: Client) -> None:
    pending = world.client().submit(ask(("t", 1, 0), max_wait_ms=500), 12)
    filled.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
    assert shape(pending.response) == [("t", 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)]


def test_a_waiting_fetch_ends_with_its_connection(world: World, filled: Client) -> None:
    reader = world.client()
    pending = reader.submit(ask(("t", 1, 0), max_wait_ms=500), 12)
    assert len(world.broker.waiters) == 1
    reader.connection.close()
    assert len(world.broker.waiters) == 0 and (world.broker.timers.next_due() or 9999) > 5500
    world.advance(1000)
    assert not pending.done


def test_an_answered_fetch_leaves_nothing_on_its_connection(world: World, filled: Client) -> None:
    for _ in range(3):
        filled.ask(ask(("t", 1, 0), max_wait_ms=5), 12)
    assert filled.connection.on_close == []


def test_nothing_above_the_high_watermark_is_read(world: World, filled: Client) -> None:
    filled.submit(produce_request("t", batch(b"not yet")), 11)
    data = world.client().submit(ask(("t", 0, 6), max_wait_ms=0), 12).response.responses[0].partitions[0]
    assert (data.error_code, data.high_watermark, bytes(data.records)) == (0, 6, b"")


# --- epochs and sessions


@pytest.mark.parametrize(
    ("epoch", "code"), [(-1, 0), (0, ErrorCode.FENCED_LEADER_EPOCH), (1, 0), (2, ErrorCode.UNKNOWN_LEADER_EPOCH)]
)
def test_the_readers_leader_epoch_is_held_against_ours(
    world: World, filled: Client, epoch: int, code: ErrorCode
) -> None:
    world.crash()
    assert world.broker.partition("t", 0).leader_epoch == 1  # type: ignore[union-attr]
    request = ask(("t", 0, 0), max_wait_ms=5000)
    request.topics[0].partitions[0].current_leader_epoch = epoch
    pending = world.client().submit(request, 12)
    assert pending.response.responses[0].partitions[0].error_code == code


def test_a_fenced_reader_of_new_versions_is_told_the_leader(world: World, filled: Client) -> None:
    topic_id = world.broker.topics.get("t").topic_id  # type: ignore[union-attr]
    world.crash()
    each = FetchPartition(partition=0, current_leader_epoch=0, partition_max_bytes=ALL)
    request = FetchRequest(topics=[FetchTopic(topic_id=topic_id, partitions=[each])])
    response = world.client().ask(request, 16)
    leader = response.responses[0].partitions[0].current_leader
    assert (leader.leader_id, leader.leader_epoch) == (1, 1)
    assert [(node.node_id, node.host, node.port) for node in response.node_endpoints] == [(1, "broker.test", 9092)]


@pytest.mark.parametrize(
    ("last_epoch", "offset", "code", "diverging"),
    [(0, 6, 0, (-1, -1)), (0, 99, 0, (0, 6)), (3, 6, ErrorCode.OFFSET_OUT_OF_RANGE, (-1, -1))],
)
def test_a_reader_whose_epoch_ended_earlier_is_told_where(
    filled: Client, last_epoch: int, offset: int, code: int, diverging: tuple[int, int]
) -> None:
    request = ask(("t", 0, offset), max_wait_ms=0)
    request.topics[0].partitions[0].last_fetched_epoch = last_epoch
    (data,) = filled.ask(request, 12).responses[0].partitions
    assert data.error_code == code and len(data.records) == 0
    assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == diverging


@pytest.mark.parametrize("session_id", [0, 5])
def test_a_session_is_refused_so_that_clients_fetch_everything_again(filled: Client, session_id: int) -> None:
    refused = filled.ask(ask(("t", 0, 0), session_id=session_id, session_epoch=1), 12)
    assert (refused.error_code, refused.session_id, refused.responses) == (70, 0, [])
    for epoch in (0, -1):
        full = filled.ask(ask(("t", 0, 0), session_id=session_id, session_epoch=epoch), 12)
        assert (full.error_code, full.session_id, len(shape(full))) == (0, 0, 1)


def test_a_follower_is_told_that_we_are_none_of_its_replicas(filled: Client) -> None:
    assert shape(filled.ask(ask(("t", 0, 0), replica_id=3), 12)) == [("t", 0, ErrorCode.NOT_LEADER_OR_FOLLOWER, 0)]


def test_an_isolation_level_that_does_not_exist_is_an_error_everywhere(filled: Client) -> None:
    response = filled.ask(ask(("t", 0, 0), isolation_level=7), 12)
    assert (response.error_code, shape(response)) == (-1, [("t", 0, -1, 0)])


# --- read committed


def transactional(world: World, value: bytes, producer_id: int, sequence: int = 0) -> None:
    """An append as the coordinator would allow it, without the coordinator."""
    partition = world.broker.partition("t", 0)
    assert partition is not None
    data = memoryview(
        batch(value, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, transactional=True)
    )
    partition.append(data, record_batch.parse_header(data))


def end(world: World, producer_id: int, commit: bool) -> None:
    world.broker.partition("t", 0).append_marker(producer_id, 0, 0, commit)  # type: ignore[union-attr]


@pytest.fixture
def committed(client: Client) -> Callable[..., Any]:
    def read(offset: int, **fields: Any) -> Any:
        return client.fetch("t", offset, isolation_level=1, **fields)

    return read


def test_read_committed_stops_before_the_first_open_transaction(
    world: World, client: Client, committed: Callable[..., Any]
) -> None:
    client.create("t")
    client.produce("t", batch(b"plain"))
    transactional(world, b"open", 7)
    client.produce("t", batch(b"behind"))
    data = committed(0)
    assert (data.high_watermark, data.last_stable_offset, values(data.records)) == (3, 1, [b"plain"])
    assert data.aborted_transactions == []
    waiting = world.client().submit(ask(("t", 0, 1), isolation_level=1, max_wait_ms=500), 12)
    assert not waiting.done
    end(world, 7, commit=True)
    world.settle()
    assert values(waiting.response.responses[0].partitions[0].records)[:2] == [b"open", b"behind"]


def test_aborted_transactions_of_the_range_come_sorted_by_first_offset(
    world: World, client: Client, committed: Callable[..., Any]
) -> None:
    client.create("t")
    transactional(world, b"a", 9)
    transactional(world, b"b", 7)
    end(world, 7, commit=False)
    end(world, 9, commit=False)
    world.settle()
    data = committed(0)
    assert [(each.producer_id, each.first_offset) for each in data.aborted_transactions] == [(9, 0), (7, 1)]
    assert client.fetch("t", 0).aborted_transactions is None


def test_aborted_transactions_behind_what_is_returned_are_left_out(
    world: World, client: Client, committed: Callable[..., Any]
) -> None:
    client.create("t")
    for producer_id in (7, 8):
        transactional(world, b"x" * 100, producer_id)
        end(world, producer_id, commit=False)
    world.settle()
    request = ask(("t", 0, 0), isolation_level=1, partition_max=10)
    (data,) = client.ask(request, 12).responses[0].partitions
    assert [each.producer_id for each in data.aborted_transactions] == [7]


# --- from the disk


def test_old_records_are_read_from_segments_by_the_reader(world: World, filled: Client) -> None:
    world.restart()
    jobs: list[tuple[Any, Any]] = []
    world.broker.io = lambda job, done: jobs.append((job, done))
    world.disk.nowait = False
    pending = world.client().submit(ask(("t", 0, 0), ("t", 2, 0), max_wait_ms=500), 12)
    assert not pending.done and len(jobs) == 1
    while jobs:
        job, done = jobs.pop()
        done(job())
    assert shape(pending.response) == [("t", 0, 0, 3 * SIZE), ("t", 2, 0, SIZE)]


def test_many_cold_partitions_fill_the_room_that_small_ones_leave(world: World, filled: Client) -> None:
    world.restart()
    world.disk.nowait = False
    client = world.client()
    response = client.ask(ask(("t", 0, 0), ("t", 2, 0), ("t", 1, 0), max_bytes=4 * SIZE), 12)
    assert shape(response) == [("t", 0, 0, 3 * SIZE), ("t", 2, 0, SIZE), ("t", 1, 0, 0)]
    response = client.ask(ask(("t", 0, 0), ("t", 2, 0), max_bytes=4 * SIZE - 1), 12)
    assert shape(response) == [("t", 0, 0, 3 * SIZE), ("t", 2, 0, 0)]


def test_a_produce_request_is_not_a_fetch(client: Client) -> None:
    """The shape helpers above must not pass on an empty answer."""
    assert client.ask(ProduceRequest(acks=1), 9).responses == []
