"""Ids, positions, clocks and errors: the small values that other parts write down."""

from __future__ import annotations

import pickle

import pytest

from headwater.core import ids
from headwater.core.clock import SystemClock
from headwater.core.errors import Conflict, HeadwaterError, UsageError
from headwater.core.position import Position
from headwater.testing.clock import ManualClock

CLUSTER = "AAAAAAAAAAAAAAAAAAAAAg"
TOPIC = ids.from_text("AQIDBAUGBwgJCgsMDQ4PEA")


def test_an_id_and_its_text_are_one_to_one() -> None:
    for _ in range(200):
        made = ids.random_id()
        text = ids.to_text(made)
        assert len(text) == 22 and not text.startswith("-")
        assert ids.from_text(text) == made


@pytest.mark.parametrize(
    "text", ["", "AQIDBAUGBwgJCgsMDQ4PEB", "AQIDBAUGBwgJCgsMDQ4PE", "AQIDBAUGBwgJCgsMDQ4PEA==", "ä" * 22]
)
def test_another_text_is_not_an_id(text: str) -> None:
    with pytest.raises(ValueError, match="not an id"):
        ids.from_text(text)


def test_a_position_and_its_text_are_one_to_one() -> None:
    for position in (Position(CLUSTER, TOPIC, 0, 0, 0), Position(CLUSTER, TOPIC, 2**31 - 1, -1, 2**63 - 1)):
        assert Position.parse(str(position)) == position
    assert str(Position(CLUSTER, TOPIC, 3, 0, 42)) == f"hw1:{CLUSTER}:AQIDBAUGBwgJCgsMDQ4PEA:3:0:42"


@pytest.mark.parametrize(
    "tail",
    ["3:0", "3:0:42:", "03:0:42", "3:0:-1", "3:-2:1", "3:0:+1", "3:0: 1", "2147483648:0:1", f"3:0:{2**63}", "3:0:१"],
)
def test_another_text_is_not_a_position(tail: str) -> None:
    with pytest.raises(ValueError, match="not a"):
        Position.parse(f"hw1:{CLUSTER}:AQIDBAUGBwgJCgsMDQ4PEA:{tail}")


def test_positions_are_compared_only_inside_one_partition() -> None:
    here = Position(CLUSTER, TOPIC, 0, 0, 10)
    assert here.is_reached_by(here._replace(offset=10, leader_epoch=4))
    assert not here.is_reached_by(here._replace(offset=9))
    with pytest.raises(ValueError, match="different partitions"):
        here.is_reached_by(here._replace(partition=1))


def test_an_error_is_one_paragraph_with_the_next_step_and_survives_pickling() -> None:
    error = Conflict("open the data directory", place="/d", cause="another process uses it", next_step="Stop it.")
    assert str(error) == "cannot open the data directory /d: another process uses it. Stop it."
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is Conflict and str(again) == str(error) and again.exit_code == 4
    assert str(UsageError("do that")) == "cannot do that." and HeadwaterError("x").exit_code == 1


def test_the_clocks_are_two() -> None:
    clock = ManualClock()
    before = clock.wall_ms(), clock.monotonic_ms()
    assert before[0] != before[1]
    clock.advance(5)
    clock.jump(100)
    assert (clock.wall_ms() - before[0], clock.monotonic_ms() - before[1]) == (105, 5)
    system = SystemClock()
    assert system.wall_ms() > 1_700_000_000_000 and system.monotonic_ms() <= system.monotonic_ms()
