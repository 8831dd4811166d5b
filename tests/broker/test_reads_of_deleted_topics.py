"""A read from the disk is under way when its topic is deleted and made again under the same name: files have
the same names then, and the records of one topic must not be given out as those of the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater.wire import batch
from headwater.wire.errors import ErrorCode
from headwater.wire.messages.delete_topics import DeleteTopicsRequest
from headwater.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from headwater.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.broker.conftest import Client, World


def one_record(world: World, value: bytes) -> bytearray:
    return batch.build([(None, value)], now_ms=world.clock.wall_ms())


def delayed(world: World, monkeypatch: Any) -> list[Callable[[], None]]:
    """Readers do not begin before they are told to; memory holds nothing."""
    jobs: list[Callable[[], None]] = []
    world.broker.io = lambda job, done: jobs.append(lambda: done(job()))
    monkeypatch.setattr(world.disk, "read_now", lambda *_: None)
    return jobs


def delete_and_make_again(world: World, client: Client) -> None:
    client.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
    client.create("t")
    assert client.produce("t", one_record(world, b"new")).error_code == 0


def test_a_fetch_from_the_disk_never_answers_with_records_of_the_next_topic(
    world: World, client: Client, monkeypatch: Any
) -> None:
    client.create("t")
    assert client.produce("t", one_record(world, b"old")).error_code == 0
    world.restart()  # the tail in memory is empty now
    jobs = delayed(world, monkeypatch)
    ask = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    pending = client.submit(FetchRequest(topics=[FetchTopic(topic="t", partitions=[ask])]), 12)
    assert len(jobs) == 1
    delete_and_make_again(world, client)
    jobs[0]()
    (answer,) = pending.response.responses[0].partitions
    assert (answer.error_code, bytes(answer.records or b"")) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, b"")


def test_an_offset_by_time_from_the_disk_is_not_that_of_the_next_topic(
    world: World, client: Client, monkeypatch: Any
) -> None:
    client.create("t")
    assert client.produce("t", one_record(world, b"old")).error_code == 0
    world.restart()
    jobs = delayed(world, monkeypatch)
    at = ListOffsetsPartition(partition_index=0, timestamp=1)
    pending = client.submit(ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=[at])]), 7)
    assert len(jobs) == 1
    delete_and_make_again(world, client)
    jobs[0]()
    (answer,) = pending.response.topics[0].partitions
    assert (answer.error_code, answer.offset) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
