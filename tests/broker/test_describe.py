"""DescribeLogDirs and DescribeProducers."""

from __future__ import annotations

from typing import Any

from headwater.wire.errors import ErrorCode
from headwater.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from headwater.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest

from .conftest import Client, World
from .test_fetch import transactional
from .test_produce import NOW, batch


def directories(client: Client, topics: Any, version: int = 5) -> Any:
    asked = None if topics is None else [DescribableLogDirTopic(topic=n, partitions=p) for n, p in topics]
    (result,) = client.ask(DescribeLogDirsRequest(topics=asked), version).results
    sizes = [(t.name, p.partition_index, p.partition_size) for t in result.topics for p in t.partitions]
    return result, sizes


def test_sizes_are_those_of_the_log(client: Client, world: World) -> None:
    client.create("t", 2)
    client.produce("t", batch(b"a"))
    size = len(batch(b"a"))
    for version in range(1, 6):
        result, sizes = directories(client, [("t", [0, 1, 9]), ("none", [0])], version)
        assert (result.error_code, result.log_dir, sizes) == (0, world.log.root, [("t", 0, size), ("t", 1, 0)])
    assert result.usable_bytes > 0 and not result.is_cordoned
    assert directories(client, None)[1] == [("t", 0, size), ("t", 1, 0)]
    assert directories(client, [])[1] == []
    assert directories(client, [("t", [])])[0].topics == []


def producers(client: Client, *asked: tuple[str, list[int]]) -> list[Any]:
    topics = [TopicRequest(name=name, partition_indexes=indexes) for name, indexes in asked]
    response = client.ask(DescribeProducersRequest(topics=topics), 0)
    return [each for topic in response.topics for each in topic.partitions]


def test_producers_are_described_with_their_open_transaction(client: Client, world: World) -> None:
    client.create("t")
    client.produce("t", batch(producer_id=777, producer_epoch=2, base_sequence=0))
    transactional(world, b"x", 9)
    (partition,) = producers(client, ("t", [0]))
    found = {each.producer_id: each for each in partition.active_producers}
    plain, open_one = found[777], found[9]
    assert (plain.producer_epoch, plain.last_sequence, plain.last_timestamp) == (2, 0, NOW)
    assert (plain.coordinator_epoch, plain.current_txn_start_offset) == (-1, -1)
    assert open_one.current_txn_start_offset == 1


def test_unknown_partitions_have_kafkas_codes_and_words(client: Client) -> None:
    client.create("t")
    answers = producers(client, ("t", [5]), ("none", [0]), ("", [0]))
    assert [(each.error_code, each.error_message) for each in answers] == [
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."),
        (ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: the empty string is not allowed"),
    ]
