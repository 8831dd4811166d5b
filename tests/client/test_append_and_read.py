"""Appending and reading back, on any Kafka."""
from __future__ import annotations

from datetime import UTC, datetime

import pytest

import headwater
from tests.any_kafka import Kafka


def test_an_appended_record_is_read_back_with_everything_it_had(kafka: Kafka) -> None:
    topic = kafka.topic()
    when = datetime(2026, 11, 19, 10, 0, tzinfo=UTC)
    with headwater.open(kafka.address) as log:
        log.append(topic, "värde", "nyckel", headers={"a": "1", "b": b"\xff", "c": None}, timestamp=when)
        log.append(topic, b"\x00\xff", headers=[("twice", "1"), ("twice", "2")])
        log.append(topic, None, key="gone")
        log.flush()
        first, second, third = log.read(topic, until="latest")
    assert (first.value, first.key, first.text) == ("värde".encode(), b"nyckel", "värde")
    assert first.headers == [("a", b"1"), ("b", b"\xff"), ("c", None)]
    assert first.time == when
    assert second.value == b"\x00\xff"
    assert second.key is None
    assert second.headers == [("twice", b"1"), ("twice", b"2")]
    assert (third.key, third.value) == (b"gone", None)
    assert [record.offset for record in (first, second, third)] == [0, 1, 2]


def test_the_result_of_an_append_is_the_position_of_the_record(kafka: Kafka) -> None:
    topic = kafka.topic()
    with headwater.open(kafka.address) as log:
        log.append(topic, "zero")
        position = log.append(topic, "one").result()
        record = next(log.read(topic, start=position))
        assert record.text == "one"
        assert (position.partition, position.offset) == (0, 1)
        assert position.cluster_id == log.cluster_id
        assert log.position(record)[:3] == position[:3]
        (end,) = log.positions(topic)
        assert end.offset == 2
        assert not position.is_reached_by(log.positions(topic, "earliest")[0])


@pytest.mark.parametrize("start, expected", [
    ("earliest", "0 1 2 3 4"), ("latest", ""), (0, "0 1 2 3 4"), (3, "3 4"), (5, ""), (-2, "3 4"), (-99, "0 1 2 3 4"),
    (datetime.fromtimestamp(1_700_000_002, UTC), "2 3 4"), (datetime.fromtimestamp(1_800_000_000, UTC), ""),
])
def test_reading_starts_where_it_is_told(kafka: Kafka, five: str, start: int | str, expected: str) -> None:
    assert b" ".join(value or b"" for value in kafka.values(five, start=start)).decode() == expected


@pytest.mark.parametrize("until, expected", [
    (2, "0 1"), (-1, "0 1 2 3"), (0, ""), (datetime.fromtimestamp(1_700_000_003, UTC), "0 1 2"),
])
def test_reading_ends_where_it_is_told(kafka: Kafka, five: str, until: int, expected: str) -> None:
    with headwater.open(kafka.address) as log:
        assert " ".join(record.text for record in log.read(five, until=until)) == expected


@pytest.fixture(scope="module")
def five(kafka: Kafka) -> str:
    """Records 0 to 4, one second apart."""
    topic = kafka.topic()
    with headwater.open(kafka.address, options={"enable.idempotence": "false"}) as log:
        for number in range(5):
            log.append(topic, str(number), timestamp=(1_700_000_000 + number) * 1000)
    return topic


def test_an_offset_that_is_not_there_is_named_with_those_that_are(kafka: Kafka, five: str) -> None:
    with headwater.open(kafka.address) as log, pytest.raises(headwater.NotFound, match="holds 0 to 5"):
        log.read(five, start=6)


def test_partitions_can_be_chosen_for_writing_and_for_reading(kafka: Kafka) -> None:
    topic = kafka.topic(partitions=3)
    with headwater.open(kafka.address) as log:
        for partition in range(3):
            log.append(topic, f"in {partition}", partition=partition)
        log.flush()
        assert [record.text for record in log.read(topic, until="latest", partitions=[1])] == ["in 1"]
        assert sorted(record.partition for record in log.read(topic, until="latest")) == [0, 1, 2]
        with pytest.raises(headwater.UsageError, match="0 to 2"):
            log.read(topic, partitions=[3])


def test_several_topics_are_read_together(kafka: Kafka) -> None:
    one, two = kafka.topic("one"), kafka.topic("two")
    kafka.fill(one, ["a"])
    kafka.fill(two, ["b"])
    with headwater.open(kafka.address) as log:
        assert {record.topic: record.text for record in log.read([one, two], until="latest")} == {one: "a", two: "b"}


def test_records_that_come_while_reading_are_read(kafka: Kafka) -> None:
    topic = kafka.topic()
    with headwater.open(kafka.address) as log, log.read(topic, timeout=20) as reader:
        log.append(topic, "first")
        assert next(reader).text == "first"
        log.append(topic, "second")
        assert next(reader).text == "second"


def test_a_reading_with_a_timeout_says_that_no_record_came(kafka: Kafka) -> None:
    topic = kafka.topic()
    with headwater.open(kafka.address) as log, pytest.raises(headwater.Unavailable, match="no record came for 0.2 s"):
        next(log.read(topic, timeout=0.2))


def test_an_unknown_topic_is_not_found_and_the_nearest_name_is_suggested(kafka: Kafka) -> None:
    topic = kafka.topic("payments")
    with headwater.open(kafka.address) as log, pytest.raises(headwater.NotFound, match=f"Did you mean {topic}"):
        log.read(topic.replace("payments", "paymnets"))


def test_a_position_of_a_topic_that_was_made_anew_is_refused(kafka: Kafka) -> None:
    topic = kafka.topic()
    with headwater.open(kafka.address) as log:
        position = log.append(topic, "old").result()
        log.topics.delete([topic])
        log.topics.create(topic, 1)
        with pytest.raises(headwater.NotFound, match="deleted since"):
            log.read(topic, start=position)


def test_a_group_goes_on_where_it_stood(kafka: Kafka) -> None:
    topic, group = kafka.topic(), kafka.name("g")
    kafka.fill(topic, ["1", "2", "3"])
    with headwater.open(kafka.address) as log:
        reader = log.read(topic, group=group, timeout=20)
        assert [next(reader).text, next(reader).text] == ["1", "2"]
        reader.commit()
        reader.close()
        assert [record.text for record in log.read(topic, group=group, until="latest")] == ["3"]
        assert [record.text for record in log.read(topic, group=group, until="latest")] == []


def test_a_group_that_does_not_commit_reads_again(kafka: Kafka) -> None:
    topic, group = kafka.topic(), kafka.name("g")
    kafka.fill(topic, ["1", "2"])
    with headwater.open(kafka.address) as log:
        for _ in range(2):
            found = [record.text for record in log.read(topic, group=group, commit=False, until="latest")]
            assert found == ["1", "2"]


def test_a_group_cannot_be_told_where_to_start(kafka: Kafka) -> None:
    with headwater.open(kafka.address) as log, pytest.raises(headwater.UsageError, match="groups reset"):
        log.read("any", group="g", start=5)


def test_a_failure_that_nobody_saw_is_raised_by_flush(kafka: Kafka) -> None:
    topic = kafka.topic(max_message_bytes="1000")
    with headwater.open(kafka.address) as log:
        log.append(topic, "x" * 5000)
        with pytest.raises(headwater.UsageError, match="max.message.bytes"):
            log.flush()
        log.append(topic, "small").wait()


def test_a_failure_that_was_seen_is_not_raised_again(kafka: Kafka) -> None:
    topic = kafka.topic(max_message_bytes="1000")
    with headwater.open(kafka.address) as log:
        appended = log.append(topic, "x" * 5000)
        with pytest.raises(headwater.UsageError):
            appended.wait()
        log.flush()


def test_a_record_without_a_key_is_refused_by_a_compacted_topic(kafka: Kafka) -> None:
    topic = kafka.topic(cleanup_policy="compact")
    with headwater.open(kafka.address) as log, pytest.raises(headwater.UsageError, match="key"):
        log.append(topic, "no key").wait()


def test_a_value_that_is_neither_text_nor_bytes_is_refused_with_the_way_to_say_it(kafka: Kafka) -> None:
    with headwater.open(kafka.address) as log, pytest.raises(headwater.UsageError, match=r"json\.dumps"):
        log.append("any", {"id": 1})  # type: ignore[arg-type]


def test_leaving_the_block_waits_for_what_was_appended(kafka: Kafka) -> None:
    topic = kafka.topic()
    with headwater.open(kafka.address) as log:
        appended = [log.append(topic, str(number)) for number in range(1000)]
    assert all(one.done for one in appended)
    assert [one.offset for one in appended] == list(range(1000))


def test_a_closed_log_says_so(kafka: Kafka) -> None:
    log = headwater.open(kafka.address)
    log.close()
    with pytest.raises(headwater.UsageError, match="closed"):
        log.append("t", "v")
