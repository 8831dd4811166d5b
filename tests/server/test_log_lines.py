"""What the broker says, to whom, and how often."""

from __future__ import annotations

import io
import json

from headwater.server.log_lines import BURST_LINES, INTERVAL_MS, LogLines
from headwater.testing.clock import ManualClock


def lines_of(stream: io.StringIO) -> list[str]:
    return stream.getvalue().splitlines()


def test_off_a_terminal_every_line_is_json_with_an_event_name() -> None:
    stream = io.StringIO()
    LogLines(stream, ManualClock()).say("listening", "it listens\non two lines", address="x:1")
    (line,) = lines_of(stream)
    found = json.loads(line)
    assert found["event"] == "listening"
    assert found["address"] == "x:1"
    assert found["time"].endswith("Z")


def test_on_a_terminal_a_line_is_a_sentence() -> None:
    stream = io.StringIO()
    LogLines(stream, ManualClock(), human=True).say("listening", "it listens", address="x:1")
    assert lines_of(stream) == ["it listens"]


def test_what_a_peer_can_cause_at_will_is_rationed_and_counted() -> None:
    stream, clock = io.StringIO(), ManualClock()
    lines = LogLines(stream, clock)
    for _ in range(1000):
        lines.often("refused", "no")
    assert len(lines_of(stream)) == BURST_LINES
    lines.often("other", "another event has its own ration")
    clock.advance(INTERVAL_MS)
    lines.often("refused", "no")
    last = json.loads(lines_of(stream)[-1])
    assert last["left_out"] == 1000 - BURST_LINES
    assert len(lines_of(stream)) == BURST_LINES + 2


def test_a_fault_of_ours_shows_its_traceback_once() -> None:
    stream = io.StringIO()
    lines = LogLines(stream, ManualClock())
    for _ in range(100):
        try:
            raise ValueError("planted")
        except ValueError as error:
            lines.bug("a place", error)
    assert sum("traceback" in json.loads(line) for line in lines_of(stream)) == 1
    assert len(lines_of(stream)) <= 1 + BURST_LINES


def test_a_stream_that_is_gone_stops_nobody() -> None:
    stream = io.StringIO()
    lines = LogLines(stream, ManualClock())
    stream.close()
    lines.say("listening", "nobody hears this")
    LogLines(None, ManualClock()).say("listening", "nor this")
