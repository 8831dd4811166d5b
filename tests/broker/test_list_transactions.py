"""ListTransactions: filters, and patterns that cannot stop the broker."""

from __future__ import annotations

import random
import re
import time

import pytest

from headwater.broker.transactions.pattern import Pattern
from headwater.wire.errors import ErrorCode
from headwater.wire.messages.list_transactions import ListTransactionsRequest
from tests.broker.conftest import Client, World
from tests.broker.members import Producer


def names(client: Client, **filters: object) -> set[str]:
    response = client.ask(ListTransactionsRequest(**filters), 2)
    assert response.error_code == ErrorCode.NONE
    return {state.transactional_id for state in response.transaction_states}


def test_filters_by_state_producer_age_and_pattern(world: World, client: Client) -> None:
    client.create("events")
    idle, busy = Producer(world, "shop-idle"), Producer(world, "shop-busy")
    for producer in (idle, busy):
        producer.begin()
    busy.add("events", 0)
    world.advance(5_000)
    assert names(client) == {"shop-idle", "shop-busy"}
    assert names(client, state_filters=["Ongoing"]) == {"shop-busy"}
    assert names(client, state_filters=["ongoing"]) == set(), "states are spelled as Kafka spells them"
    assert names(client, producer_id_filters=[idle.producer_id]) == {"shop-idle"}
    assert names(client, state_filters=["Ongoing"], duration_filter=4_999) == {"shop-busy"}
    assert names(client, state_filters=["Ongoing"], duration_filter=5_000) == set()
    assert names(client, transactional_id_pattern="shop-i.*") == {"shop-idle"}
    assert names(client, transactional_id_pattern="shop") == set(), "the whole id must match"
    assert names(client, transactional_id_pattern="") == {"shop-idle", "shop-busy"}


def test_states_that_do_not_exist_are_named(client: Client) -> None:
    response = client.ask(ListTransactionsRequest(state_filters=["Bogus", "Empty"]), 2)
    assert response.unknown_state_filters == ["Bogus"]


def test_a_pattern_that_is_none_is_an_error(client: Client) -> None:
    response = client.ask(ListTransactionsRequest(transactional_id_pattern="("), 2)
    assert response.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


@pytest.mark.parametrize(
    "text",
    [
        "(",
        ")",
        "a**",
        "[",
        "[b-a]",
        "\\",
        "\\1",
        "(?P<x>a)",
        "a{2001}",
        "a{3,2}",
        "(a{900}){900}",
        "*a",
        "(" * 999,
    ],
)
def test_what_is_no_pattern_or_too_much_of_one_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="."):
        Pattern(text)


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        (r"orders-\d+", "orders-42", "orders-x"),
        (r"[^a-c_]\w*", "d_1", "a"),
        (r"a{2,3}?b", "aaab", "aaaab"),
        (r"^(?:x|y)+$", "xyx", "xz"),
        (r"a\.b", "a.b", "axb"),
        (r"[\d.-]+", "1.2-3", "1,2"),
        (r"\S+\s\S+", "a b", "a  b"),
        (r"", "", "a"),
    ],
)
def test_the_syntax_that_ids_need(pattern: str, matching: str, other: str) -> None:
    assert Pattern(pattern).matches(matching)
    assert not Pattern(pattern).matches(other)


def test_patterns_mean_what_python_means_by_them() -> None:
    chance = random.Random(11)

    def made(depth: int) -> str:
        kind = chance.random()
        if depth > 3 or kind < 0.4:
            return chance.choice("abc.")
        if kind < 0.55:
            return f"({made(depth + 1)}|{made(depth + 1)})"
        if kind < 0.75:
            return f"({made(depth + 1)}){chance.choice(['*', '+', '?', '{1,2}', '{2}', '{1,}'])}"
        return chance.choice(["[a-b]", "[^a]"]) if kind < 0.8 else made(depth + 1) + made(depth + 1)

    for _ in range(1_000):
        pattern = made(0)
        text = "".join(chance.choice("abc") for _ in range(chance.randint(0, 6)))
        assert Pattern(pattern).matches(text) == bool(re.fullmatch(pattern, text)), (pattern, text)


def test_a_pattern_that_would_take_a_backtracking_engine_for_ever_is_quick() -> None:
    began = time.monotonic()
    assert not Pattern("(a+)+b").matches("a" * 2_000)
    assert not Pattern(".*.*.*.*.*.*.*.*x").matches("a" * 2_000)
    assert time.monotonic() - began < 2
