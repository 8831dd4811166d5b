"""Every console block and every Python block of docs/guide and of README.md is run against a real broker.

A line that begins with `$ ` is a command, what follows it is what it has to print (stdout and stderr together). Each
file gets an empty directory and a broker of its own; `headwater broker … &` in the text is that broker.
"""
from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.any_kafka import ROOT, command_line, environment, ours

pytestmark = ours
GUIDE = sorted((ROOT / "docs/guide").glob("*.md"))
SECONDS = 60


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def steps(block: str) -> Iterator[tuple[str, str]]:
    """Commands with what they have to print."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


class Session:
    """One reader of one page: a directory, and a shell that knows the command."""

    def __init__(self, directory: Path, address: str) -> None:
        self.directory = directory
        self.address = address
        (directory / "data").mkdir(exist_ok=True)

    def run(self, command: str) -> str:
        headwater = " ".join(command_line())
        script = f'headwater() {{ {headwater} "$@"; }}\n{command.replace("127.0.0.1:9092", self.address)}'
        done = subprocess.run(
            ["bash", "-c", script], cwd=self.directory, env=environment(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS, check=False,
        )
        assert done.returncode == 0, (command, done.stdout)
        return done.stdout


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    from headwater.core.processes import start_broker

    with start_broker(tmp_path / "data", settings={"group.initial.rebalance.delay.ms": "0"}) as broker:
        yield Session(tmp_path, broker.address)


@pytest.mark.parametrize("page", GUIDE, ids=lambda page: page.name)
def test_the_commands_of_a_page_print_what_it_says(page: Path, session: Session) -> None:
    for block in blocks(page.read_text(), "console"):
        for command, expected in steps(block):
            if command.startswith("headwater broker") and command.endswith("&"):
                assert expected.strip() == ""
                continue  # the session's own broker, on a free port
            found = session.run(command)
            # the first record of a topic is announced; the pages say so once, in words
            found = "".join(line for line in found.splitlines(True) if "is not there yet" not in line)
            assert found == expected.replace("127.0.0.1:9092", session.address), f"{page.name}: {command}"


def test_the_python_of_getting_started_runs(session: Session) -> None:
    session.run("headwater produce orders --key 7 first")
    for block in blocks((ROOT / "docs/guide/getting-started.md").read_text(), "python"):
        run_python(session, block)


def run_python(session: Session, block: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", block], cwd=session.directory, env=environment(), capture_output=True, text=True,
        timeout=SECONDS, check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert done.stderr == ""


def test_the_lines_of_the_readme_run(session: Session, tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text()
    programs = blocks(text, "python")
    assert len(programs) == 3
    for block in programs:
        if "def test_" not in block:
            run_python(session, block)
    (verbs,) = [block for block in blocks(text, "sh") if "produce t" in block]
    for line in verbs.splitlines():
        command = line.partition("  #")[0].replace("./hw ", "headwater ")
        # it waits for more, and the page says so
        found = session.run(f"{command} --exit-at-end" if " consume " in command else command)
        assert found or "groups" in command, line
    (example,) = [block for block in programs if "def test_" in block]
    (tmp_path / "test_page.py").write_text(f"import confluent_kafka\n\n{example}")
    assert " passed" in run_pytest(tmp_path)


@pytest.mark.parametrize("page", GUIDE, ids=lambda page: page.name)
def test_a_page_says_first_what_the_command_is_called_in_a_clone(page: Path) -> None:
    assert "`./hw`" in "".join(page.read_text().splitlines(True)[:4])
    assert f"docs/guide/{page.name}" in (ROOT / "README.md").read_text()


def test_the_tests_of_the_testing_page_run(tmp_path: Path) -> None:
    tests: list[str] = []
    for block in blocks((ROOT / "docs/guide/testing.md").read_text(), "python"):
        target = tmp_path / "conftest.py" if "@pytest.fixture" in block else None
        if target is not None:
            # automatic topics are off in the example, which the other examples rely on
            target.write_text(block.replace(', "auto.create.topics.enable": "false"', ""))
        else:
            tests.append(block)
    (tmp_path / "test_page.py").write_text("\n\n".join(tests))
    assert f"{sum(block.count('def test_') for block in tests)} passed" in run_pytest(tmp_path)


def run_pytest(directory: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "headwater.testing.pytest_plugin", "-p", "no:cacheprovider"],
        cwd=directory, env=environment(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"), capture_output=True, text=True,
        timeout=SECONDS, check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
