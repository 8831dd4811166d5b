"""aiokafka, unmodified: a client that speaks only old versions of the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

SECONDS_MAX = 60.0


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, SECONDS_MAX))


async def made(address: str, topic: str, partitions: int = 1) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    await admin.create_topics([NewTopic(topic, partitions, 1)])
    await admin.close()


async def taken(consumer: AIOKafkaConsumer, count: int) -> list[bytes]:
    return [(await consumer.getone()).value for _ in range(count)]


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_records_come_back_in_every_codec(address: str, topic: str, codec: str | None) -> None:
    async def work() -> None:
        await made(address, topic)
        async with AIOKafkaProducer(bootstrap_servers=address, compression_type=codec) as producer:
            for number in range(200):
                await producer.send(topic, str(number).encode() * 10, key=b"k", headers=[("h", b"v")])
        consumer = AIOKafkaConsumer(topic, bootstrap_servers=address, auto_offset_reset="earliest")
        async with consumer:
            assert await taken(consumer, 200) == [str(number).encode() * 10 for number in range(200)]

    try:
        run(work())
    except RuntimeError as error:  # a codec whose library aiokafka does not find
        pytest.skip(f"aiokafka cannot use {codec} here: {error}")


def test_a_group_commits_and_goes_on(address: str, topic: str) -> None:
    async def work() -> None:
        await made(address, topic)
        async with AIOKafkaProducer(bootstrap_servers=address, enable_idempotence=True) as producer:
            for number in range(10):
                await producer.send_and_wait(topic, str(number).encode())
        settings = {"bootstrap_servers": address, "group_id": f"g-{topic}", "auto_offset_reset": "earliest"}
        async with AIOKafkaConsumer(topic, **settings, enable_auto_commit=False) as consumer:
            assert await taken(consumer, 6) == [str(number).encode() for number in range(6)]
            await consumer.commit()
        async with AIOKafkaConsumer(topic, **settings) as consumer:
            assert await taken(consumer, 4) == [str(number).encode() for number in range(6, 10)]

    run(work())


def test_two_members_share_a_topic(address: str, topic: str) -> None:
    async def work() -> None:
        settings = {"bootstrap_servers": address, "group_id": f"g-{topic}", "metadata_max_age_ms": 1000}
        await made(address, topic, 2)
        async with AIOKafkaConsumer(topic, **settings) as one:
            while not one.assignment():
                await one.getmany(timeout_ms=100)
            async with AIOKafkaConsumer(topic, **settings) as two:
                while not (len(one.assignment()) == len(two.assignment()) == 1):
                    await asyncio.gather(one.getmany(timeout_ms=100), two.getmany(timeout_ms=100))

    run(work())


def test_transactions_commit_and_abort(address: str, topic: str) -> None:
    async def work() -> None:
        await made(address, topic)
        async with AIOKafkaProducer(bootstrap_servers=address, transactional_id=topic) as producer:
            for number in range(4):
                await producer.begin_transaction()
                await producer.send_and_wait(topic, str(number).encode())
                if number % 2:
                    await producer.abort_transaction()
                else:
                    await producer.commit_transaction()
        consumer = AIOKafkaConsumer(
            topic, bootstrap_servers=address, auto_offset_reset="earliest", isolation_level="read_committed"
        )
        async with consumer:
            assert await taken(consumer, 2) == [b"0", b"2"]

    run(work())


def test_offsets_are_found_by_time_and_at_the_ends(address: str, topic: str) -> None:
    async def work() -> None:
        place, start = TopicPartition(topic, 0), 1_750_000_000_000
        async with AIOKafkaProducer(bootstrap_servers=address) as producer:
            for number in range(10):
                await producer.send_and_wait(topic, b"v", partition=0, timestamp_ms=start + number * 1000)
        async with AIOKafkaConsumer(bootstrap_servers=address) as consumer:
            assert (await consumer.offsets_for_times({place: start + 4500}))[place].offset == 5
            assert await consumer.beginning_offsets([place]) == {place: 0}
            assert await consumer.end_offsets([place]) == {place: 10}

    run(work())
