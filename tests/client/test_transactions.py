"""Transactions: all or nothing, fencing, a reader's progress in them, and calls that hang."""
from __future__ import annotations

import threading

import pytest

import headwater
from headwater.client import librdkafka
from tests.any_kafka import Kafka


def test_a_block_that_ends_well_is_seen_whole(kafka: Kafka) -> None:
    one, two = kafka.topic("one"), kafka.topic("two")
    with headwater.open(kafka.address) as log:
        with log.transaction() as transaction:
            transaction.append(one, "a")
            transaction.append(two, "b")
        with log.transaction() as transaction:
            transaction.append(one, "c")
    assert kafka.values(one) == [b"a", b"c"]
    assert kafka.values(two) == [b"b"]


def test_a_block_that_raises_is_seen_by_nobody_who_reads_committed(kafka: Kafka) -> None:
    topic = kafka.topic()
    with headwater.open(kafka.address) as log:
        with pytest.raises(ZeroDivisionError), log.transaction() as transaction:
            transaction.append(topic, "half done").wait()
            _ = 1 / 0
        with log.transaction() as transaction:
            transaction.append(topic, "done")
    assert kafka.values(topic) == [b"done"]
    assert kafka.values(topic, committed=False) == [b"half done", b"done"]


def test_an_open_transaction_holds_back_what_follows_it(kafka: Kafka) -> None:
    topic = kafka.topic()
    with headwater.open(kafka.address) as log:
        with log.transaction() as transaction:
            transaction.append(topic, "open").wait()
            log.append(topic, "after it").wait()
            assert kafka.values(topic) == []
            assert kafka.values(topic, committed=False) == [b"open", b"after it"]
        assert kafka.values(topic) == [b"open", b"after it"]


def test_whoever_takes_over_the_id_fences_its_former_holder(kafka: Kafka) -> None:
    topic, identity = kafka.topic(), kafka.name("tx")
    with headwater.open(kafka.address) as old, headwater.open(kafka.address) as new:
        with pytest.raises(headwater.Conflict, match="transactional id"), old.transaction(identity) as transaction:
            transaction.append(topic, "zombie").wait()
            with new.transaction(identity) as second:
                second.append(topic, "living")
    assert kafka.values(topic) == [b"living"]


def test_a_readers_progress_is_part_of_the_transaction(kafka: Kafka) -> None:
    source, target, group = kafka.topic("in"), kafka.topic("out"), kafka.name("g")
    kafka.fill(source, ["1", "2", "3"])
    with headwater.open(kafka.address) as log:
        with log.read(source, group=group, commit=False, timeout=20) as reader:
            with log.transaction(kafka.name("tx")) as transaction:
                for _ in range(2):
                    transaction.append(target, next(reader).text * 2)
                transaction.send_offsets(reader)
            with pytest.raises(ZeroDivisionError), log.transaction(kafka.name("tx2")) as transaction:
                transaction.append(target, next(reader).text * 2)
                transaction.send_offsets(reader)
                _ = 1 / 0
        assert [record.text for record in log.read(source, group=group, commit=False, until="latest")] == ["3"]
    assert kafka.values(target) == [b"11", b"22"]


def test_a_reader_that_commits_by_itself_cannot_be_part_of_a_transaction(kafka: Kafka) -> None:
    topic = kafka.topic()
    with headwater.open(kafka.address) as log, log.read(topic, group=kafka.name("g")) as reader:
        with pytest.raises(headwater.UsageError, match="commit=False"), log.transaction() as transaction:
            transaction.send_offsets(reader)


def test_a_transaction_is_used_inside_its_block(kafka: Kafka) -> None:
    with headwater.open(kafka.address) as log, pytest.raises(headwater.UsageError, match="with block"):
        log.transaction().append("t", "v")


def test_a_call_of_librdkafka_that_hangs_is_given_up_at_its_deadline() -> None:
    for_ever = threading.Event()
    try:
        with pytest.raises(headwater.Unavailable, match=r"no answer within 0.05 s"):
            librdkafka.bounded(for_ever.wait, 0.05, "send offsets as", "tx", librdkafka.Reasons(), grace=0.05)
    finally:
        for_ever.set()
