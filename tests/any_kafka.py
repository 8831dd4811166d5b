"""The broker that client and command-line tests talk to: ours, or any Kafka named by HEADWATER_TEST_KAFKA.

The same tests run on Apache Kafka: what is asserted here is Kafka's behaviour. Tests that need our own process
(starting, killing, joining it) ask for `ours`.
"""
from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from headwater.client.log import Log

ROOT = Path(__file__).parents[1]
OTHER = os.environ.get("HEADWATER_TEST_KAFKA", "")
ours = pytest.mark.skipif(bool(OTHER), reason="needs our own broker process")
DEADLINE_SECONDS = 30.0
_numbers = itertools.count(1)


class Kafka(NamedTuple):
    """Where it is, and names that nobody else uses."""

    address: str

    def name(self, prefix: str) -> str:
        return f"hwtest-{prefix}-{os.getpid()}-{time.time_ns() // 1_000_000 % 10**9}-{next(_numbers)}"

    def topic(self, prefix: str = "t", partitions: int = 1, **settings: str) -> str:
        name = self.name(prefix)
        with Log(self.address) as log:
            log.topics.create(name, partitions, {key.replace("_", "."): value for key, value in settings.items()})
            wait_for(lambda: log.topics.all().get(name) == partitions)
        return name

    def fill(self, topic: str, values: Sequence[str | bytes], **how: Any) -> None:
        # librdkafka's idempotent producer needs half a second to begin with
        with Log(self.address, options={"enable.idempotence": "false"}) as log:
            for value in values:
                log.append(topic, value, **how)

    def values(self, topic: str, **how: Any) -> list[bytes | None]:
        with Log(self.address) as log:
            return [record.value for record in log.read(topic, until="latest", **how)]


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest) -> Kafka:
    return Kafka(OTHER or request.getfixturevalue("broker").address)


def wait_for(condition: Callable[[], Any], seconds: float = DEADLINE_SECONDS) -> Any:
    """Ask until it is true; a test that waits for something must not sleep for a guessed time."""
    import threading

    pause = threading.Event()
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {condition}"
        pause.wait(0.01)
    return found


class Done(NamedTuple):
    """A command line that has ended."""

    code: int
    out: str
    err: str


def environment(log: str | None = None, **more: str) -> dict[str, str]:
    """A person's environment, whatever the tests run in: PYTHONUNBUFFERED would hide the order of two streams."""
    kept = {
        key: value for key, value in os.environ.items()
        if not key.startswith(("HEADWATER_", "_HEADWATER", "PYTHONUNBUFFERED"))
    }
    kept["PYTHONPATH"] = str(ROOT / "src")
    kept["PYTHONWARNINGS"] = "error::ResourceWarning"
    if log is not None:
        kept["HEADWATER_LOG"] = log
    return {**kept, **more}


def command_line(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "headwater", *arguments]


class Shell:
    """Runs verbs against one log; the working directory has no ./data."""

    def __init__(self, log: str | None, directory: Path) -> None:
        self.log = log
        self.directory = directory

    def __call__(
        self, *arguments: str, stdin: str | bytes = b"", code: int | None = 0, env: dict[str, str] | None = None
    ) -> Done:
        done = subprocess.run(
            command_line(*arguments), input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True, cwd=self.directory, env=environment(self.log, **(env or {})),
            timeout=DEADLINE_SECONDS * 2, check=False,
        )
        found = Done(done.returncode, done.stdout.decode("utf-8", "surrogateescape"), done.stderr.decode())
        assert "Traceback" not in found.err, found.err
        if code is not None:
            assert found.code == code, found
        return found

    def start(self, *arguments: str, **how: Any) -> subprocess.Popen[bytes]:
        how.setdefault("stdin", subprocess.DEVNULL)
        how.setdefault("stdout", subprocess.PIPE)
        how.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen(
            command_line(*arguments), cwd=self.directory, env=environment(self.log, **how.pop("env", {})), **how
        )

    def bash(self, script: str) -> Done:
        """A script in which `headwater` is the command."""
        line = " ".join(command_line())
        done = subprocess.run(
            ["bash", "-c", f'headwater() {{ {line} "$@"; }}\n{script}'], capture_output=True, cwd=self.directory,
            env=environment(self.log), timeout=DEADLINE_SECONDS * 2, check=False,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def shell(kafka: Kafka, tmp_path: Path) -> Shell:
    return Shell(kafka.address, tmp_path)


@pytest.fixture
def no_broker(tmp_path: Path) -> Shell:
    """A command line in a place where nothing runs."""
    return Shell(None, tmp_path)


def free_port() -> int:
    """A port that nothing listens on."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def words(text: str) -> list[list[str]]:
    """A table's lines as cells."""
    return [re.split(r"\s{2,}|\t", line.strip()) for line in text.splitlines() if line.strip()]
