"""The asynchronous half: the same answers, with the event loop free meanwhile."""
from __future__ import annotations

import asyncio

import pytest

import headwater
from tests.any_kafka import Kafka


def test_append_read_and_transaction_can_be_awaited(kafka: Kafka) -> None:
    topic = kafka.topic()

    async def main() -> list[str]:
        async with headwater.open(kafka.address) as log:
            appended = await asyncio.gather(*(log.aappend(topic, str(number)) for number in range(50)))
            assert sorted(one.offset for one in appended) == list(range(50))
            async with log.transaction() as transaction:
                transaction.append(topic, "in a transaction")
            return [record.text async for record in log.aread(topic, until="latest")]

    found = asyncio.run(main())
    assert sorted(found[:50], key=int) == [str(number) for number in range(50)]
    assert found[50:] == ["in a transaction"]


def test_the_loop_runs_on_while_a_reader_waits(kafka: Kafka) -> None:
    topic = kafka.topic()

    async def main() -> str:
        async with headwater.open(kafka.address) as log, log.aread(topic, timeout=20) as reader:
            waiting = asyncio.ensure_future(anext(reader))
            await log.aappend(topic, "wakes it")
            return (await waiting).text

    assert asyncio.run(main()) == "wakes it"


def test_a_cancelled_read_loses_no_record(kafka: Kafka) -> None:
    topic = kafka.topic()

    async def main() -> list[str]:
        async with headwater.open(kafka.address) as log, log.aread(topic, timeout=20) as reader:
            for _ in range(3):
                waiting = asyncio.ensure_future(anext(reader))
                await asyncio.sleep(0)
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
            for number in range(5):
                await log.aappend(topic, str(number))
            return [(await anext(reader)).text for _ in range(5)]

    assert asyncio.run(main()) == ["0", "1", "2", "3", "4"]


def test_a_refused_append_raises_where_it_is_awaited(kafka: Kafka) -> None:
    topic = kafka.topic(max_message_bytes="1000")

    async def main() -> None:
        async with headwater.open(kafka.address) as log:
            with pytest.raises(headwater.UsageError, match="max.message.bytes"):
                await log.aappend(topic, "x" * 5000)

    asyncio.run(main())
