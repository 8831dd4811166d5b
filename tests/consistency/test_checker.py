"""The checker finds every anomaly that is planted into a sound history, and none in the sound one."""

from __future__ import annotations

import pytest

from tests.consistency.checker import PLANTS, Event, Read, Sent, check

PLACE = ("t", 0)
OTHER = ("t", 1)


def sound() -> list[Event]:
    events = []
    for value in range(10):
        sent = (Sent(PLACE, value, value), Sent(OTHER, 100 + value, value))
        events.append(Event("send", "ok", f"writer-{value}", value, value + 0.5, sent))
    reads = tuple(Read(PLACE, value, value) for value in range(10))
    others = tuple(Read(OTHER, value, 100 + value) for value in range(10))
    events.append(Event("poll", "ok", "reader-1", 10, 11, read=reads[:6], fresh=True))
    events.append(Event("poll", "ok", "reader-1", 11, 12, read=reads[6:]))
    events.append(Event("final", "ok", "final", 13, 14, read=reads + others, fresh=True))
    return events


def test_a_sound_history_has_no_anomaly() -> None:
    assert check(sound()) == {}


@pytest.mark.parametrize("name", sorted(PLANTS))
def test_a_planted_anomaly_is_found(name: str) -> None:
    assert name in check(PLANTS[name](sound()))


def test_a_lost_acknowledged_tail_is_unseen() -> None:
    history = sound()
    last = history[-1]
    history[-1] = last._replace(read=tuple(read for read in last.read if read.value != 9))
    assert set(check(history)) == {"unseen"}


def test_a_write_of_unknown_fate_may_be_there_or_not() -> None:
    history = sound()
    history.insert(0, Event("send", "info", "writer-x", 0, 1, (Sent(PLACE, 77, None),)))
    assert check(history) == {}


def test_an_aborted_write_may_be_missing() -> None:
    history = sound()
    history.insert(0, Event("send", "fail", "writer-x", 0, 1, (Sent(PLACE, 77, None),)))
    assert check(history) == {}
