"""How far a group counts as having read when its reader ends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import headwater


class Failed(Exception):
    """What a program that processes records raises."""


def written(broker: Any) -> str:
    topic: str = broker.topic()
    with headwater.open(broker.address) as log:
        for number in range(5):
            log.append(topic, str(number))
    return topic


def rest(broker: Any, topic: str, group: str) -> list[str]:
    with headwater.open(broker.address) as log:
        return [record.text or "" for record in log.read(topic, group=group, until="latest")]


@pytest.mark.parametrize("where", ["log", "reader"])
def test_a_record_whose_processing_raised_comes_again(broker: Any, where: str) -> None:
    topic, group = written(broker), broker.name("group")
    with pytest.raises(Failed), headwater.open(broker.address) as log:
        reader = log.read(topic, group=group)
        if where == "log":
            fail_at_two(reader)
        else:
            with reader:
                fail_at_two(reader)
    assert rest(broker, topic, group) == ["2", "3", "4"]


def fail_at_two(reader: Any) -> None:
    for record in reader:
        if record.text == "2":
            raise Failed


def test_a_record_whose_asynchronous_processing_raised_comes_again(broker: Any) -> None:
    topic, group = written(broker), broker.name("group")

    async def run() -> None:
        async with headwater.open(broker.address) as log, log.aread(topic, group=group) as reader:
            async for record in reader:
                if record.text == "2":
                    raise Failed

    with pytest.raises(Failed):
        asyncio.run(run())
    assert rest(broker, topic, group) == ["2", "3", "4"]


def test_a_record_after_which_the_reading_was_left_does_not_come_again(broker: Any) -> None:
    topic, group = written(broker), broker.name("group")
    with headwater.open(broker.address) as log:
        for record in log.read(topic, group=group):
            if record.text == "2":
                break
    assert rest(broker, topic, group) == ["3", "4"]
