"""Promised answers, deadlines and waiters of partitions."""

from __future__ import annotations

import pytest

from headwater.broker.waiting import Later, PartitionWaiters, Timers


def test_a_later_calls_back_when_set_and_at_once_when_it_was_set_before() -> None:
    later: Later[str] = Later()
    got: list[str] = []
    later.on_set(got.append)
    assert got == []
    later.set("a")
    later.on_set(got.append)
    assert got == ["a", "a"]


def test_a_response_cannot_be_given_twice() -> None:
    later: Later[str] = Later()
    later.set("a")
    with pytest.raises(AssertionError):
        later.set("b")


def test_timers_run_in_order_of_deadline_and_then_of_creation() -> None:
    timers = Timers()
    ran: list[str] = []
    for deadline, name in ((20, "c"), (10, "a"), (10, "b"), (30, "d")):
        timers.at(deadline, lambda name=name: ran.append(name))  # type: ignore[misc]
    assert timers.next_due() == 10
    assert timers.run_due(25) == 3
    assert ran == ["a", "b", "c"]
    assert timers.next_due() == 30


def test_a_cancelled_timer_neither_runs_nor_is_due() -> None:
    timers = Timers()
    ran: list[int] = []
    first = timers.at(10, lambda: ran.append(1))
    timers.at(20, lambda: ran.append(2))
    first.cancel()
    assert timers.next_due() == 20
    timers.run_due(100)
    assert ran == [2]
    assert timers.next_due() is None


def test_a_timer_may_set_and_cancel_timers_while_it_runs() -> None:
    timers = Timers()
    ran: list[str] = []
    doomed = timers.at(11, lambda: ran.append("doomed"))

    def first() -> None:
        doomed.cancel()
        timers.at(12, lambda: ran.append("again"))

    timers.at(10, first)
    timers.run_due(12)
    assert ran == ["again"]


def test_cancelled_timers_do_not_pile_up() -> None:
    timers = Timers()
    kept = timers.at(10**9, lambda: None)
    for deadline in range(20_000):
        timers.at(10**6 + deadline, lambda: None).cancel()
    assert len(timers._heap) <= 2 * Timers.COMPACT_AT
    assert timers.next_due() == kept.deadline_ms


def test_wake_reaches_those_who_wait_for_the_partition_until_they_cancel() -> None:
    waiters = PartitionWaiters()
    woken: list[tuple[str, str]] = []
    both = waiters.wait(["p", "q"], lambda partition: woken.append(("both", partition)))
    waiters.wait(["q"], lambda partition: woken.append(("q only", partition)))
    waiters.wake("p")
    waiters.wake("q")
    waiters.wake("r")
    assert woken == [("both", "p"), ("both", "q"), ("q only", "q")]
    both.cancel()
    both.cancel()
    waiters.wake("p")
    waiters.wake("q")
    assert woken[3:] == [("q only", "q")]
    assert len(waiters) == 1


def test_a_waiter_may_cancel_another_one_while_it_is_woken() -> None:
    waiters = PartitionWaiters()
    woken: list[int] = []
    second = None

    def first(_partition: object) -> None:
        woken.append(1)
        assert second is not None
        second.cancel()

    waiters.wait(["p"], first)
    second = waiters.wait(["p"], lambda _partition: woken.append(2))
    waiters.wake("p")
    assert woken == [1]
