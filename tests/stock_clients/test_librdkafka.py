"""confluent-kafka (librdkafka), unmodified: what applications do with it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)

SECONDS_MAX = 60.0
AlterOperation = pytest.importorskip("confluent_kafka.admin").AlterConfigOpType


def made(address: str, topic: str, partitions: int = 1, **config: str) -> AdminClient:
    admin = AdminClient({"bootstrap.servers": address})
    settings = {name.replace("_", "."): value for name, value in config.items()}
    admin.create_topics([NewTopic(topic, partitions, config=settings)])[topic].result(SECONDS_MAX)
    return admin


def written(address: str, topic: str, values: list[str], partition: int = 0, **config: Any) -> list[int]:
    """Writes the values and returns the offsets that were acknowledged."""
    offsets: list[int] = []

    def delivered(error: Any, message: Message) -> None:
        assert error is None, error
        offsets.append(message.offset())

    producer = Producer({"bootstrap.servers": address, "linger.ms": 5} | config)
    for value in values:
        producer.produce(
            topic, value.encode(), key=value.encode(), partition=partition, on_delivery=delivered
        )
    assert producer.flush(SECONDS_MAX) == 0
    return offsets


@contextmanager
def consumer_of(address: str, group: str, **config: Any) -> Iterator[Consumer]:
    base = {"bootstrap.servers": address, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = Consumer(base | {name.replace("_", "."): value for name, value in config.items()})
    try:
        yield consumer
    finally:
        consumer.close()


def read(consumer: Consumer, count: int) -> list[Message]:
    found: list[Message] = []
    end = time.monotonic() + SECONDS_MAX
    while len(found) < count and time.monotonic() < end:
        found += [message for message in consumer.consume(count - len(found), 0.5) if message.error() is None]
    return found


def texts(messages: list[Message]) -> list[str]:
    return [(message.value() or b"").decode() for message in messages]


def eventually(condition: Callable[[], bool], step: Callable[[], object] = lambda: None) -> None:
    end = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        step()


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_come_back_in_every_codec(address: str, topic: str, codec: str) -> None:
    made(address, topic)
    values = [f"value {number} " + "x" * 100 for number in range(1000)]
    assert written(address, topic, values, **{"compression.type": codec}) == list(range(1000))
    with consumer_of(address, topic) as consumer:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        messages = read(consumer, 1000)
    assert texts(messages) == values
    assert [message.offset() for message in messages] == list(range(1000))


def test_keys_headers_nulls_and_timestamps_come_back(address: str, topic: str) -> None:
    made(address, topic)
    producer = Producer({"bootstrap.servers": address})
    at = int(time.time() * 1000) - 5000
    producer.produce(
        topic, None, key=b"\x00\xff", headers=[("a", b"1"), ("a", None), ("ü", b"")], timestamp=at
    )
    producer.produce(topic, b"", key=None, timestamp=at + 1)
    producer.flush(SECONDS_MAX)
    with consumer_of(address, topic) as consumer:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        first, second = read(consumer, 2)
    assert (first.key(), first.value(), first.timestamp()[1]) == (b"\x00\xff", None, at)
    assert first.headers() == [("a", b"1"), ("a", None), ("ü", b"")]
    assert (second.key(), second.value()) == (None, b"")


def test_a_topic_comes_into_being_with_its_first_record(address: str, topic: str) -> None:
    assert written(address, topic, ["first"], partition=-1) == [0]


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_a_group_shares_the_partitions_and_takes_over(address: str, topic: str, strategy: str) -> None:
    made(address, topic, 4)
    config = {"partition_assignment_strategy": strategy, "session_timeout_ms": 10_000}
    with consumer_of(address, f"g-{topic}", **config) as one:
        one.subscribe([topic])
        eventually(lambda: len(one.assignment()) == 4, lambda: one.poll(0.1))
        with consumer_of(address, f"g-{topic}", **config) as two:
            two.subscribe([topic])

            def both() -> None:
                one.poll(0.1)
                two.poll(0.1)

            eventually(lambda: len(one.assignment()) == len(two.assignment()) == 2, both)
            held = {place.partition for place in (*one.assignment(), *two.assignment())}
            assert held == {0, 1, 2, 3}
        eventually(lambda: len(one.assignment()) == 4, lambda: one.poll(0.1))


def test_committed_offsets_are_where_the_next_member_begins(address: str, topic: str) -> None:
    made(address, topic)
    written(address, topic, [str(number) for number in range(10)])
    with consumer_of(address, f"g-{topic}", enable_auto_commit=False) as consumer:
        consumer.subscribe([topic])
        sixth = read(consumer, 6)[-1]
        consumer.commit(message=sixth, asynchronous=False)
    with consumer_of(address, f"g-{topic}", enable_auto_commit=False) as consumer:
        consumer.subscribe([topic])
        assert texts(read(consumer, 4)) == ["6", "7", "8", "9"]


def test_a_static_member_that_comes_back_causes_no_rebalance(address: str, topic: str) -> None:
    made(address, topic, 2)
    config = {"session_timeout_ms": 30_000}
    rebalances: list[int] = []
    with consumer_of(address, f"g-{topic}", group_instance_id="stays", **config) as stays:
        stays.subscribe([topic], on_assign=lambda _, places: rebalances.append(len(places)))
        with consumer_of(address, f"g-{topic}", group_instance_id="returns", **config) as returns:
            returns.subscribe([topic])

            def both() -> None:
                stays.poll(0.1)
                returns.poll(0.1)

            eventually(lambda: len(stays.assignment()) == len(returns.assignment()) == 1, both)
            seen = len(rebalances)
        with consumer_of(address, f"g-{topic}", group_instance_id="returns", **config) as returns:
            returns.subscribe([topic])
            eventually(lambda: len(returns.assignment()) == 1, both_of(stays, returns))
    assert len(rebalances) == seen


def both_of(*consumers: Consumer) -> Callable[[], None]:
    def step() -> None:
        for consumer in consumers:
            consumer.poll(0.1)

    return step


def test_offsets_are_found_by_time(address: str, topic: str) -> None:
    made(address, topic)
    start = int(time.time() * 1000) - 100_000
    producer = Producer({"bootstrap.servers": address})
    for number in range(100):
        producer.produce(topic, str(number).encode(), timestamp=start + number * 1000)
    producer.flush(SECONDS_MAX)
    with consumer_of(address, topic) as consumer:
        for delta, expected in ((0, 0), (1, 1), (50_000, 50), (99_000, 99), (99_001, -1)):
            asked = TopicPartition(topic, 0, start + delta)
            assert consumer.offsets_for_times([asked], SECONDS_MAX)[0].offset == expected
        assert consumer.get_watermark_offsets(TopicPartition(topic, 0), SECONDS_MAX) == (0, 100)


def test_an_idempotent_producer_writes_each_record_once_and_in_order(address: str, topic: str) -> None:
    made(address, topic)
    values = [str(number) for number in range(20_000)]
    config = {
        "enable.idempotence": True,
        "max.in.flight.requests.per.connection": 5,
        "batch.num.messages": 50,
    }
    assert written(address, topic, values, **config) == list(range(20_000))


def test_committed_transactions_are_seen_and_aborted_ones_are_not(address: str, topic: str) -> None:
    made(address, topic)
    producer = Producer({"bootstrap.servers": address, "transactional.id": topic})
    producer.init_transactions(SECONDS_MAX)
    for number in range(6):
        producer.begin_transaction()
        producer.produce(topic, str(number).encode(), partition=0)
        producer.flush(SECONDS_MAX)  # an abort purges what has not been sent
        (producer.abort_transaction if number % 2 else producer.commit_transaction)(SECONDS_MAX)
    with consumer_of(address, topic, isolation_level="read_committed") as consumer:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        assert texts(read(consumer, 3)) == ["0", "2", "4"]
    with consumer_of(address, topic, isolation_level="read_uncommitted") as consumer:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        assert texts(read(consumer, 6)) == ["0", "1", "2", "3", "4", "5"]


def test_the_older_of_two_producers_with_one_transactional_id_is_fenced(address: str, topic: str) -> None:
    made(address, topic)
    old = Producer({"bootstrap.servers": address, "transactional.id": topic})
    old.init_transactions(SECONDS_MAX)
    old.begin_transaction()
    old.produce(topic, b"of the old one", partition=0)
    old.flush(SECONDS_MAX)
    new = Producer({"bootstrap.servers": address, "transactional.id": topic})
    new.init_transactions(SECONDS_MAX)
    with pytest.raises(KafkaException) as refused:
        old.commit_transaction(SECONDS_MAX)
    assert refused.value.args[0].fatal()
    new.begin_transaction()
    new.produce(topic, b"of the new one", partition=0)
    new.commit_transaction(SECONDS_MAX)
    with consumer_of(address, topic, isolation_level="read_committed") as consumer:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        assert texts(read(consumer, 1)) == ["of the new one"]


def test_consumed_offsets_travel_inside_the_transaction(address: str, topic: str) -> None:
    source, target = topic, f"{topic}-out"
    made(address, source)
    made(address, target)
    written(address, source, [str(number) for number in range(100)])
    producer = Producer({"bootstrap.servers": address, "transactional.id": topic})
    producer.init_transactions(SECONDS_MAX)
    with consumer_of(address, f"g-{topic}", enable_auto_commit=False) as consumer:
        consumer.subscribe([source])
        copied = 0
        while copied < 100:
            messages = read(consumer, 10)
            copied += len(messages)
            producer.begin_transaction()
            for message in messages:
                producer.produce(target, message.value(), partition=0)
            producer.send_offsets_to_transaction(
                consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), SECONDS_MAX
            )
            producer.commit_transaction(SECONDS_MAX)
        place = consumer.committed([TopicPartition(source, 0)], SECONDS_MAX)[0]
    assert place.offset == 100
    with consumer_of(address, target, isolation_level="read_committed") as consumer:
        consumer.assign([TopicPartition(target, 0, OFFSET_BEGINNING)])
        assert texts(read(consumer, 100)) == [str(number) for number in range(100)]


def test_a_record_that_is_too_large_is_refused_and_the_next_one_is_not(address: str, topic: str) -> None:
    made(address, topic, max_message_bytes="2000")
    producer = Producer({"bootstrap.servers": address})
    errors: list[Any] = []
    producer.produce(topic, b"x" * 5000, on_delivery=lambda error, _: errors.append(error))
    producer.flush(SECONDS_MAX)
    assert errors[0] is not None
    assert errors[0].name() == "MSG_SIZE_TOO_LARGE"
    assert written(address, topic, ["small"]) == [0]


def test_the_administration_of_topics(address: str, topic: str) -> None:
    admin = made(address, topic, 2, retention_ms="600000")
    admin.create_partitions([NewPartitions(topic, 5)])[topic].result(SECONDS_MAX)
    eventually(lambda: len(admin.list_topics(topic, SECONDS_MAX).topics[topic].partitions) == 5)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    values = admin.describe_configs([resource])[resource].result(SECONDS_MAX)
    assert values["retention.ms"].value == "600000"
    entry = ConfigEntry("retention.ms", "700000", incremental_operation=AlterOperation.SET)
    change = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([change])[change].result(SECONDS_MAX)
    eventually(
        lambda: (
            admin.describe_configs([resource])[resource].result(SECONDS_MAX)["retention.ms"].value == "700000"
        )
    )
    admin.delete_topics([topic])[topic].result(SECONDS_MAX)
    eventually(lambda: topic not in admin.list_topics(timeout=SECONDS_MAX).topics)


def test_the_administration_of_groups_and_offsets(address: str, topic: str) -> None:
    admin = made(address, topic)
    written(address, topic, [str(number) for number in range(10)])
    group = f"g-{topic}"
    with consumer_of(address, group) as consumer:
        consumer.subscribe([topic])
        read(consumer, 10)
        consumer.commit(asynchronous=False)
        described = admin.describe_consumer_groups([group])[group].result(SECONDS_MAX)
        assert described.state.name == "STABLE"
        assert len(described.members) == 1
    listed = admin.list_consumer_groups().result(SECONDS_MAX)
    assert group in {row.group_id for row in listed.valid}
    asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 4)])
    eventually(
        lambda: admin.describe_consumer_groups([group])[group].result(SECONDS_MAX).state.name == "EMPTY"
    )
    admin.alter_consumer_group_offsets([asked])[group].result(SECONDS_MAX)
    shown = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(
        SECONDS_MAX
    )
    assert [(place.partition, place.offset) for place in shown.topic_partitions] == [(0, 4)]
    admin.delete_consumer_groups([group])[group].result(SECONDS_MAX)


def test_deleted_records_are_gone_and_offsets_go_on(address: str, topic: str) -> None:
    admin = made(address, topic)
    written(address, topic, [str(number) for number in range(10)])
    place = TopicPartition(topic, 0, 7)
    assert admin.delete_records([place])[place].result(SECONDS_MAX).low_watermark == 7
    spec = {TopicPartition(topic, 0): OffsetSpec.earliest()}
    found = admin.list_offsets(spec, isolation_level=IsolationLevel.READ_UNCOMMITTED)
    assert next(iter(found.values())).result(SECONDS_MAX).offset == 7
    with consumer_of(address, topic) as consumer:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        assert texts(read(consumer, 3)) == ["7", "8", "9"]


def test_many_producers_write_at_once(address: str, topic: str) -> None:
    made(address, topic, 3)
    offsets: dict[int, list[int]] = {}

    def run(partition: int) -> None:
        offsets[partition] = written(
            address, topic, [str(number) for number in range(2000)], partition=partition
        )

    threads = [threading.Thread(target=run, args=(partition,)) for partition in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS_MAX)
    assert offsets == {partition: list(range(2000)) for partition in range(3)}
