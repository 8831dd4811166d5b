"""`headwater demo`: the main promise on one screen, in about a quarter of a minute.

On a terminal a small panel is redrawn in place; in a pipe there are plain lines. Exit code 1 if anything that was
acknowledged is missing, or is there twice.
"""
from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from headwater.cli.options import Seconds, Verb, Whole
from headwater.cli.output import is_terminal

if TYPE_CHECKING:
    from headwater.app.demo import Demo, Result
    from headwater.cli.demo_screen import Screen

EXAMPLES = """
headwater demo
headwater demo --data ./demo-data --keep      keep the log, to look at it afterwards
headwater demo --rate 50000 --seconds 30
"""
FRAME_SECONDS = 0.1
DEAD_SECONDS = 1.5  # how long the broker stays dead: long enough to see the lines fall
ON_THE_WAY_SECONDS = 2.0  # for a moment in which the broker has not answered everything
CATCH_UP_SECONDS = 20.0  # for the last acknowledgements and the group, on a slow machine


@click.command(cls=Verb, examples=EXAMPLES)
@click.option("--seconds", type=Seconds(1, 3600), default=12.0, show_default=True,
              help="How long to write.")
@click.option("--rate", type=Whole(50, 200_000), default=10_000, show_default=True,
              help="Records a second to write, at most.")
@click.option("--data", metavar="DIR", help="Where the log is kept. [default: a temporary directory]")
@click.option("--plant", type=click.Choice(["missing", "duplicate", "order"]), hidden=True)
@click.option("--keep", is_flag=True, help="Do not remove the data at the end.")
def demo(seconds: float, rate: int, data: str | None, plant: str | None, keep: bool) -> int:
    """Kill the broker while clients write, start it again, and count what is there."""
    from headwater.cli.demo_screen import PlainScreen, TerminalScreen

    _refuse_foreign_data(data)
    screen: Screen = TerminalScreen(sys.stdout) if is_terminal(sys.stdout) else PlainScreen(sys.stdout)
    started = time.monotonic()
    from headwater.app.demo import Demo

    running = Demo(data, rate)
    screen.expected = rate
    kept = keep or data is not None
    try:
        screen.begin(running.address, time.monotonic() - started, str(running.data))
        result = _play(running, screen, seconds, plant)
    finally:
        running.close()
        if not kept:
            running.remove_data()
        screen.end()
    screen.result(result, str(running.data) if kept else None)
    return 0 if result.good else 1


def _refuse_foreign_data(data: str | None) -> None:
    """The count would be wrong on a log with other records, and a demo kills its broker: never on real data."""
    import os

    if data is not None and os.path.isdir(data) and os.listdir(data):
        from headwater.core.errors import Conflict

        raise Conflict(
            "run the demo in", place=data, cause="the directory is not empty",
            next_step="Name a new directory, or leave --data out.",
        )


def _play(running: Demo, screen: Screen, seconds: float, plant: str | None) -> Result:
    from headwater.client.record import counted

    running.begin()
    screen.event(f"a client writes {running.rate:,} records/s with acks=all, a group of two reads")
    _watch(running, screen, seconds / 2)
    screen.state = "killed"
    on_the_way = _await_records_on_the_way(running)
    killed = time.monotonic()
    running.kill()
    unanswered = f", with {counted(on_the_way, 'record')} on the way" if on_the_way else ""
    screen.event(f"SIGKILL to the broker{unanswered}", "red")
    _watch(running, screen, min(DEAD_SECONDS, seconds / 4))
    before = time.monotonic()
    running.start_again()
    screen.state = "running"
    screen.pid = running.pid
    screen.event(f"started again on the same data, serving after {time.monotonic() - before:.2f} s", "green")
    _until(lambda: running.ledger.last_acknowledged_at > before, running, screen)
    screen.event(f"the clients went on by themselves, {time.monotonic() - killed:.1f} s after the kill", "green")
    _watch(running, screen, seconds / 2)
    running.stop_writing()
    screen.event("the writer stops, its last acknowledgements come in")
    _until(lambda: not running.writing, running, screen)
    if plant:
        running.plant(plant)
    _until(lambda: not running.lag or plant == "missing", running, screen)
    screen.stopped = True  # a rate that fades out would be read as a rate
    screen.event("reading everything back, comparing ids")
    _frame(running, screen)
    return running.count()


def _await_records_on_the_way(running: Demo) -> int:
    """A kill between two answers would show nothing."""
    deadline = time.monotonic() + ON_THE_WAY_SECONDS
    while not (found := running.on_the_way) and time.monotonic() < deadline:
        time.sleep(0.0005)
    return found


def _until(condition: Callable[[], bool], running: Demo, screen: Screen) -> None:
    deadline = time.monotonic() + CATCH_UP_SECONDS
    while not condition() and time.monotonic() < deadline:
        _frame(running, screen)


def _watch(running: Demo, screen: Screen, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        _frame(running, screen)


def _frame(running: Demo, screen: Screen) -> None:
    time.sleep(FRAME_SECONDS)
    ledger = running.ledger
    screen.frame(ledger.acknowledged, ledger.read, running.lag)
