"""The byte budget: who gets what, and when."""

from __future__ import annotations

import random

import pytest

from headwater.server.budget import Budget


def test_nobody_overtakes_those_who_wait() -> None:
    budget = Budget(100)
    assert budget.take(80)
    order: list[str] = []
    budget.wait(50, lambda: order.append("first"), begun=False)
    assert not budget.take(1), "there is room for one byte, but somebody is waiting"
    budget.wait(10, lambda: order.append("second"), begun=False)
    budget.give(80)
    assert order == ["first", "second"]
    assert budget.taken == 60


def test_a_frame_that_has_begun_goes_before_one_that_has_not() -> None:
    budget = Budget(100)
    budget.take(100)
    budget.shut = True
    order: list[str] = []
    budget.wait(10, lambda: order.append("fresh"), begun=False)
    budget.wait(10, lambda: order.append("begun"), begun=True)
    budget.give(100)
    assert order == []
    budget.shut = False
    assert order == ["begun", "fresh"]


def test_halves_that_fill_the_budget_do_not_wait_for_each_other_for_ever() -> None:
    budget = Budget(100)
    assert budget.take(50)
    assert budget.take(50)
    order: list[int] = []
    budget.wait(60, lambda: order.append(1), begun=True)
    budget.wait(60, lambda: order.append(2), begun=True)
    assert order == [1], "one may overdraw, and only one"
    budget.give(110)  # the first is finished
    assert order == [1, 2]


def test_one_frame_larger_than_the_budget_is_taken_when_nothing_else_is() -> None:
    budget = Budget(100)
    budget.take(1)
    granted: list[bool] = []
    budget.wait(1000, lambda: granted.append(True), begun=False)
    assert not granted
    budget.give(1)
    assert granted


def test_a_place_that_is_given_up_holds_nobody_back() -> None:
    budget = Budget(100)
    budget.take(100)
    never: list[bool] = []
    granted: list[bool] = []
    place = budget.wait(1000, lambda: never.append(True), begun=False)
    budget.wait(10, lambda: granted.append(True), begun=False)
    place.cancel()
    budget.give(100)
    assert granted
    assert not never
    assert not budget.contended


def test_giving_back_twice_is_noticed() -> None:
    budget = Budget(100)
    budget.take(10)
    budget.give(10)
    with pytest.raises(AssertionError):
        budget.give(10)


@pytest.mark.parametrize("seed", range(10))
def test_everybody_is_served_and_at_most_one_frame_is_overdrawn(seed: int) -> None:
    chance = random.Random(seed)
    budget = Budget(1000)
    held: list[int] = []
    asked = served = 0
    for _ in range(2000):
        if chance.random() < 0.5:
            count = chance.randint(1, 900)
            asked += 1

            def granted(count: int = count) -> None:
                nonlocal served
                served += 1
                held.append(count)

            if budget.take(count):
                granted()
            else:
                budget.wait(count, granted, begun=chance.random() < 0.3)
        elif held:
            budget.give(held.pop(chance.randrange(len(held))))
        assert budget.taken == sum(held) <= 1000 + 900
    while held:
        budget.give(held.pop())
    assert served == asked
    assert budget.taken == 0
