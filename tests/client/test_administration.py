"""Topics and groups over the protocol."""
from __future__ import annotations

import pytest

import headwater
from tests.any_kafka import Kafka, wait_for


def test_a_topic_is_made_described_changed_grown_and_deleted(kafka: Kafka) -> None:
    name = kafka.name("t")
    with headwater.open(kafka.address) as log:
        log.topics.create(name, 2, {"retention.ms": "1000000"})
        wait_for(lambda: log.topics.all().get(name) == 2)
        log.append(name, "x", partition=1).wait()
        found = log.topics.describe(name)
        assert [(part.partition, part.start, part.end) for part in found.partitions] == [(0, 0, 0), (1, 0, 1)]
        assert found.settings["retention.ms"] == ("1000000", True)
        assert found.settings["cleanup.policy"] == ("delete", False)
        log.topics.configure(name, {"segment.ms": "600000"}, ["retention.ms"])
        # Apache Kafka's broker hears of a change a moment after the controller has answered.
        wait_for(lambda: log.topics.settings(name)["segment.ms"] == ("600000", True))
        wait_for(lambda: not log.topics.settings(name)["retention.ms"].overridden)
        log.topics.add_partitions(name, 5)
        wait_for(lambda: log.topics.all()[name] == 5)
        log.topics.delete([name])
        wait_for(lambda: name not in log.topics.all())


def test_a_topic_that_is_there_already_is_a_conflict(kafka: Kafka) -> None:
    topic = kafka.topic()
    with headwater.open(kafka.address) as log, pytest.raises(headwater.Conflict, match=topic):
        log.topics.create(topic, 1)


def test_a_wrong_setting_is_a_usage_error(kafka: Kafka) -> None:
    with headwater.open(kafka.address) as log, pytest.raises(headwater.UsageError, match=r"retention\.ms"):
        log.topics.create(kafka.name("t"), 1, {"retention.ms": "soon"})


def test_topics_do_not_shrink(kafka: Kafka) -> None:
    topic = kafka.topic(partitions=3)
    with headwater.open(kafka.address) as log, pytest.raises(headwater.UsageError):
        log.topics.add_partitions(topic, 2)


def test_a_groups_lag_is_what_it_has_not_read(kafka: Kafka) -> None:
    topic, group = kafka.topic(), kafka.name("g")
    kafka.fill(topic, ["1", "2", "3"])
    with headwater.open(kafka.address) as log:
        reader = log.read(topic, group=group, timeout=20)
        next(reader)
        reader.commit()
        described = log.groups.describe(group)
        assert (described.state, described.members, described.lag) == ("stable", 1, 2)
        assert described.progress[0].member == "headwater"
        with pytest.raises(headwater.Conflict, match="members"):
            log.groups.apply(group, log.groups.plan_move(group, to="earliest"))
        reader.close()
        assert any(found.name == group for found in log.groups.all())


@pytest.mark.parametrize("to, shift, expected", [
    ("earliest", None, 0), ("latest", None, 5), (3, None, 3), (99, None, 5), (None, 1, 3), (None, -9, 0), (-1, None, 0),
])
def test_a_group_is_moved_after_the_move_was_planned(
    kafka: Kafka, to: str | int | None, shift: int | None, expected: int
) -> None:
    topic, group = kafka.topic(), kafka.name("g")
    kafka.fill(topic, list("abcde"))
    with headwater.open(kafka.address) as log:
        with log.read(topic, group=group, timeout=20) as reader:
            next(reader), next(reader)
            reader.commit()
        wait_for(lambda: log.groups.describe(group).state == "empty")
        moves = log.groups.plan_move(group, to=to, shift=shift)
        assert [move[:4] for move in moves] == [(topic, 0, 2, expected)]
        # what the log does not reach is said, not silently replaced
        assert moves[0].asked == {99: 99, -1: -1}.get(to, -7 if shift == -9 else None)  # type: ignore[call-overload]
        assert log.groups.committed(group) == {(topic, 0): 2}
        log.groups.apply(group, moves)
        assert log.groups.committed(group) == {(topic, 0): expected}


def test_a_group_that_never_was_can_be_placed_on_a_topic(kafka: Kafka) -> None:
    topic, group = kafka.topic(partitions=2), kafka.name("g")
    with headwater.open(kafka.address) as log:
        log.groups.apply(group, log.groups.plan_move(group, [topic], to="earliest"))
        assert log.groups.committed(group) == {(topic, 0): 0, (topic, 1): 0}
        log.groups.delete(group)
        with pytest.raises(headwater.NotFound):
            log.groups.describe(group)


def test_an_unknown_group_is_not_found_and_the_nearest_name_is_suggested(kafka: Kafka) -> None:
    topic, group = kafka.topic(), kafka.name("billing")
    with headwater.open(kafka.address) as log:
        log.groups.apply(group, log.groups.plan_move(group, [topic], to="earliest"))
        with pytest.raises(headwater.NotFound, match=f"Did you mean {group}"):
            log.groups.describe(group.replace("billing", "biling"))
        with pytest.raises(headwater.NotFound):
            log.groups.delete(group.replace("billing", "biling"))
