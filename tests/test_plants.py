"""`--plant NAME` makes the checkers fail that know the name: a switch that does nothing would show nothing.

The checkers' own tests plant every fault that they know; here the switch itself is tried, as a person types it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CHECKERS = {
    "ack-before-sync": "log/test_power_cut.py::test_power_cut_at_every_disk_operation_keeps_what_was_acknowledged[1]",
    "acknowledge-before-sync": "broker/test_power_cut.py::"
    "test_a_power_cut_takes_back_nothing_that_the_broker_said[1]",
    "repetitions-are-forgotten": "broker/test_producer_sequences.py::"
    "test_any_order_is_answered_as_the_model_says",
    "lost-write": "consistency/test_under_kill.py::test_no_anomaly_while_the_broker_is_killed[1]",
}
SLOW = {"lost-write"}  # twenty kills


def run(test: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test, *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in CHECKERS]
)
def test_a_checker_fails_with_its_plant(name: str) -> None:
    done = run(f"tests/{CHECKERS[name]}", "--plant", name)
    assert done.returncode == 1, done.stdout[-3000:]
    assert "1 failed" in done.stdout
