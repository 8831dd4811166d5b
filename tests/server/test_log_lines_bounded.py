"""Faults whose places have ever new names."""

from __future__ import annotations

import io

from headwater.server.log_lines import BUGS_MAX, LogLines
from headwater.testing.clock import ManualClock


def test_faults_in_ever_new_places_take_bounded_memory_and_lines() -> None:
    stream = io.StringIO()
    lines = LogLines(stream, ManualClock())
    for number in range(20 * BUGS_MAX):
        lines.bug(f"request of {number} bytes", ValueError("x"))
    assert len(lines._allowances) <= BUGS_MAX + 2
    assert stream.getvalue().count("\n") < BUGS_MAX + 20
