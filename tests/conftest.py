"""What every test gets: the shipped plugin (fixture `broker`), a time limit, hypothesis profiles.

`slow` tests stay out unless asked for.

A test has TEST_SECONDS; `@pytest.mark.timeout(90)` gives one more. The limit is an alarm signal in the main
thread, so a test that hangs fails by name with its traceback and the others go on.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from types import FrameType

import hypothesis
import pytest

TEST_SECONDS = 60  # the slowest honest test of the quick suites takes a few seconds
PEER_SECONDS = 600  # the first of them fetches Apache Kafka and starts it
SLOW_SECONDS = 3600
AGAIN_SECONDS = 20  # an event loop may have logged the first alarm and gone on
PLUGIN = "headwater.testing.pytest_plugin"

# What the shell that started the tests happens to set must not change what they see.
for name in ("HEADWATER_COMMAND", "HEADWATER_LOG", "PYTHONUNBUFFERED"):
    os.environ.pop(name, None)

hypothesis.settings.register_profile("quick", deadline=None, max_examples=60, derandomize=True)
hypothesis.settings.register_profile("slow", deadline=None, max_examples=5_000)
hypothesis.settings.load_profile(os.environ.get("HEADWATER_HYPOTHESIS", "quick"))


class TestTimeout(BaseException):
    """The test used up its time; the traceback shows where it stood. No `except Exception` swallows it."""

    __test__ = False


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--plant", metavar="NAME", help="a fault to plant: the checker that knows it must then fail")


@pytest.fixture
def plant(request: pytest.FixtureRequest) -> str:
    """The fault that `--plant NAME` asks for; a checker plants it if it knows the name."""
    return str(request.config.getoption("--plant") or "")


def pytest_configure(config: pytest.Config) -> None:
    """An installed headwater brings its plugin by entry point; a bare checkout loads the same module here."""
    plugins = config.pluginmanager
    if not plugins.has_plugin("headwater") and not plugins.has_plugin(PLUGIN):
        try:
            module = __import__(PLUGIN, fromlist=["*"])
        except ModuleNotFoundError as missing:
            if missing.name is None or not PLUGIN.startswith(missing.name):
                raise
        else:
            plugins.register(module, "headwater")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """`slow` tests run only where `-m` asks for them or where they are named on the command line."""
    if config.option.markexpr or any("::" in argument for argument in config.args):
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    if slow:
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in set(slow)]


def _seconds(item: pytest.Item) -> float:
    marker = item.get_closest_marker("timeout")
    if marker is not None:
        return float(marker.args[0])
    if item.get_closest_marker("slow"):
        return SLOW_SECONDS
    return PEER_SECONDS if "peers" in item.path.parts else TEST_SECONDS


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    if not hasattr(signal, "SIGALRM"):
        return (yield)
    seconds = _seconds(item)

    def too_long(_signal: int, _frame: FrameType | None) -> None:
        raise TestTimeout(f"{item.nodeid} took longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_SECONDS)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
