"""`headwater groups` as people and programs see it."""
from __future__ import annotations

import json

import pytest

import headwater
from tests.any_kafka import Kafka, Shell, wait_for, words


@pytest.fixture
def billing(kafka: Kafka) -> tuple[str, str, str]:
    """A group that has read one of three records of one topic, and two of a second one."""
    one, two, group = kafka.topic("one"), kafka.topic("two"), kafka.name("billing")
    kafka.fill(one, list("abc"))
    kafka.fill(two, list("de"))
    with headwater.open(kafka.address) as log:
        log.groups.apply(group, log.groups.plan_move(group, [one], to=1))
        log.groups.apply(group, log.groups.plan_move(group, [two], to=2))
        wait_for(lambda: len(log.groups.committed(group)) == 2)
    return one, two, group


def test_groups_are_listed_and_described_with_their_lag(shell: Shell, billing: tuple[str, str, str]) -> None:
    one, two, group = billing
    assert [group, "empty", "classic"] in words(shell("groups", "list").out)
    assert f"{group}\tempty\tclassic\n" in shell("groups", "list", "--plain").out
    text = shell("groups", "describe", group).out
    assert text.startswith(f"{group}  empty, 0 members, lag 2\n")
    assert [one, "0", "1", "3", "2", "-", "-"] in words(text)
    found = json.loads(shell("groups", "describe", group, "--json").out)
    assert found["lag"] == 2
    assert [(part["topic"], part["committed"], part["end"], part["lag"]) for part in found["partitions"]] == sorted(
        [(one, 1, 3, 2), (two, 2, 2, 0)]
    )


def test_a_reset_is_shown_first_and_done_with_yes(shell: Shell, billing: tuple[str, str, str]) -> None:
    one, two, group = billing
    done = shell("groups", "reset", group, "--to", "earliest")
    assert sorted(words(done.out)[1:]) == sorted([[one, "0", "1", "0", "-1"], [two, "0", "2", "0", "-2"]])
    assert "Nothing was changed. Add --yes" in done.err
    assert json.loads(shell("groups", "describe", group, "--json").out)["lag"] == 2
    shell("groups", "reset", group, "--to", "earliest", "--yes")
    assert json.loads(shell("groups", "describe", group, "--json").out)["lag"] == 5
    assert "stands there already" in shell("groups", "reset", group, "--to", "earliest").err


@pytest.mark.parametrize("options, expected", [
    (["--to", "latest"], [3, 2]), (["--to", "2"], [2, 2]), (["--shift", "1"], [2, 2]), (["--shift", "-1"], [0, 1]),
    (["--to", "@1000000000"], [0, 0]), (["--to", "2100-01-01"], [3, 2]),
])
def test_a_group_is_moved_by_name_offset_shift_and_time(
    shell: Shell, billing: tuple[str, str, str], options: list[str], expected: list[int]
) -> None:
    one, two, group = billing
    lines = [json.loads(line) for line in shell("groups", "reset", group, *options, "--json", "--yes").out.splitlines()]
    assert {line["topic"]: line["after"] for line in lines} == dict(zip((one, two), expected, strict=True))
    found = json.loads(shell("groups", "describe", group, "--json").out)["partitions"]
    assert {part["topic"]: part["committed"] for part in found} == dict(zip((one, two), expected, strict=True))


def test_only_the_named_topics_and_partitions_are_moved(shell: Shell, billing: tuple[str, str, str]) -> None:
    one, two, group = billing
    shell("groups", "reset", group, f"{one}:0", "--to", "earliest", "--yes")
    found = json.loads(shell("groups", "describe", group, "--json").out)["partitions"]
    assert {part["topic"]: part["committed"] for part in found} == {one: 0, two: 2}
    assert "0 to 0" in shell("groups", "reset", group, f"{one}:7", "--to", "earliest", code=2).err


def test_a_group_with_members_is_not_moved(kafka: Kafka, shell: Shell) -> None:
    topic, group = kafka.topic(), kafka.name("g")
    kafka.fill(topic, ["a", "b"])
    with headwater.open(kafka.address) as log, log.read(topic, group=group, timeout=20) as reader:
        next(reader)
        reader.commit()
        assert "has members" in shell("groups", "reset", group, "--to", "earliest", "--yes", code=4).err
        assert "has members" in shell("groups", "delete", group, "--yes", code=4).err


def test_deleting_is_shown_first_and_done_with_yes(shell: Shell, billing: tuple[str, str, str]) -> None:
    _, _, group = billing
    assert shell("groups", "delete", group).out == f"{group}: empty, offsets of 2 partitions\n"
    shell("groups", "delete", group, "--yes")
    shell("groups", "describe", group, code=3)
