"""The reader pool and the pulse, on a real loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headwater.broker.waiting import Timers
from headwater.core.clock import SystemClock
from headwater.server.loops import new_loop
from headwater.server.pulse import Pulse
from headwater.server.reader_pool import THREADS, ReaderPool


def no_bug(where: str, error: BaseException) -> None:
    raise AssertionError(where) from error


@pytest.fixture(params=["uvloop", "asyncio"])
def loop(request: pytest.FixtureRequest) -> Iterator[asyncio.AbstractEventLoop]:
    made = new_loop(request.param)
    yield made
    made.close()


def run(loop: asyncio.AbstractEventLoop, begin: Callable[[asyncio.Future[Any]], None]) -> Any:
    async def main() -> Any:
        future: asyncio.Future[Any] = loop.create_future()
        begin(future)
        return await asyncio.wait_for(future, 10)

    return loop.run_until_complete(main())


def test_a_job_runs_elsewhere_and_its_result_comes_back_to_the_loop(loop: asyncio.AbstractEventLoop) -> None:
    pool = ReaderPool(loop, no_bug, lambda: None)
    seen: list[int] = []

    def begin(future: asyncio.Future[Any]) -> None:
        def done(result: int) -> None:
            seen.append(threading.get_ident())
            future.set_result(result)

        pool.run(threading.get_ident, done)

    worker = run(loop, begin)
    assert seen == [threading.get_ident()]
    assert worker != threading.get_ident()
    assert pool.at_work == 0
    pool.stop()


def test_an_exception_of_a_job_is_its_result(loop: asyncio.AbstractEventLoop) -> None:
    pool = ReaderPool(loop, no_bug, lambda: None)
    error = run(loop, lambda future: pool.run(lambda: {}["x"], future.set_result))
    assert isinstance(error, KeyError)
    pool.stop()


def test_a_blocked_job_does_not_hold_up_the_others(loop: asyncio.AbstractEventLoop) -> None:
    pool = ReaderPool(loop, no_bug, lambda: None)
    gate = threading.Event()
    finished: list[Any] = []

    def begin(future: asyncio.Future[Any]) -> None:
        for _ in range(THREADS - 1):
            pool.run(lambda: gate.wait(10), finished.append)
        pool.run(lambda: "quick", future.set_result)

    assert run(loop, begin) == "quick"
    assert finished == []
    gate.set()
    pool.stop()


def test_timers_of_the_broker_ring_in_their_order_and_a_nearer_one_moves_the_alarm(
    loop: asyncio.AbstractEventLoop,
) -> None:
    clock, timers = SystemClock(), Timers()
    pulse = Pulse(loop, timers, clock, no_bug)
    rang: list[tuple[str, bool]] = []

    def begin(future: asyncio.Future[Any]) -> None:
        now = clock.monotonic_ms()

        def ring(name: str, due: int) -> None:
            rang.append((name, clock.monotonic_ms() >= due))
            if len(rang) == 3:
                future.set_result(None)

        timers.at(now + 60, lambda: ring("late", now + 60))
        pulse.moved()
        timers.at(now + 20, lambda: ring("early", now + 20))
        timers.at(now + 5, lambda: ring("never", now)).cancel()
        pulse.moved()
        loop.call_soon(lambda: timers.at(now + 1, lambda: ring("now", now + 1)))
        loop.call_soon(pulse.moved)

    run(loop, begin)
    assert rang == [("now", True), ("early", True), ("late", True)]
    pulse.stop()


def test_a_turn_with_many_requests_commits_once(loop: asyncio.AbstractEventLoop) -> None:
    pulse = Pulse(loop, Timers(), SystemClock(), no_bug)
    commits: list[int] = []
    pulse.commit = lambda: commits.append(1)

    def begin(future: asyncio.Future[Any]) -> None:
        for _ in range(100):
            pulse.moved()
        loop.call_later(0.01, future.set_result, None)

    run(loop, begin)
    assert commits == [1]
