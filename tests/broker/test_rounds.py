"""What the broker does every few minutes goes on after a round that met a fault of ours."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.broker.groups import expiry as groups_expiry
from headwater.broker.transactions import expiry as transactions_expiry
from tests.broker.conftest import World


@pytest.mark.parametrize(
    ("module", "name"), [(groups_expiry, "clean"), (transactions_expiry, "abort_timed_out")]
)
def test_a_round_that_fails_is_not_the_last_one(module: Any, name: str, monkeypatch: Any) -> None:
    rounds: list[int] = []

    def fail(*_: Any) -> None:
        rounds.append(1)
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(module, name, fail)
    world = World()
    for _ in range(3 * 600):
        world.clock.advance(1000)
        try:
            world.broker.timers.run_due(world.clock.monotonic_ms())
        except RuntimeError:
            pass
    assert len(rounds) >= 2
