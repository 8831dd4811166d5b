"""The runner behind `./hw test`, `./hw peers` and `./hw slow`; CI and a stranger see the same.

`./hw test`   lint (ruff), types (mypy --strict), layers (import-linter), then pytest for each folder
              of tests/ but peers, for wire once more with the pure-Python record reader, and for the
              files beside them.
`./hw peers`  tests/peers: other people's clients and brokers against ours. A peer that is not on this machine
              is skipped by name and counted; where CI is set, that is a failure.
`./hw slow`   the tests marked `slow`; their result rows (`record_property`) go into docs/slow.md.

--only NAME runs one step, --plan lists them, the rest goes to pytest (`./hw test --only wire -k crc`).
Every step's output ends with its seconds. The last line is alone and plain: `N passed, N failed, N skipped`.
Exit code 0: nothing failed and something passed. 1: something failed. 2: usage. It knows no network.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
SLOW_PAGE = ROOT / "docs" / "slow.md"
WORKERS = "2"  # the machines this is meant for have two cores; more processes would only wait for each other
# Folders whose tests measure time or start many processes: side by side they would disturb each other.
ONE_AT_A_TIME = {"demo"}
# What each suite may take; a step that hangs is ended by name, so that the closing line is always printed.
STEP_SECONDS_MAX = {"test": 15 * 60, "peers": 35 * 60, "slow": 12 * 3600}
PATIENT = ["-o", "faulthandler_timeout=3600"]  # the alarm of tests/conftest.py comes first
LINT_IMPORTS = "from importlinter.cli import lint_imports_command; lint_imports_command()"
HELP = "usage: ./hw test|peers|slow [--only NAME] [--plan] [pytest options]\n"


class Tally:
    """What was counted so far. A lint step counts as one."""

    def __init__(self) -> None:
        self.passed = self.failed = self.skipped = 0
        self.reasons: dict[str, int] = {}
        self.failures: list[str] = []
        self.rows: list[tuple[str, str]] = []

    def add_report(self, report: Path) -> None:
        """Counts from pytest's JUnit file: exact also when a worker died in the middle."""
        for case in ET.parse(report).iter("testcase"):
            name = f"{case.get('classname', '')}::{case.get('name', '')}"
            skipped = case.find("skipped")
            self.rows += [(name, f"{p.get('name')} = {p.get('value')}") for p in case.iter("property")]
            if case.find("failure") is not None or case.find("error") is not None:
                self.failed += 1
                self.failures.append(name)
            elif skipped is not None and skipped.get("type") != "pytest.xfail":
                self.skipped += 1
                reason = skipped.get("message") or "no reason given"
                self.reasons[reason] = self.reasons.get(reason, 0) + 1
            else:
                self.passed += 1

    def add_step(self, name: str, ok: bool) -> None:
        if ok:
            self.passed += 1
        else:
            self.failed += 1
            self.failures.append(name)

    @property
    def exit_code(self) -> int:
        return 1 if self.failed or not self.passed else 0

    def closing_line(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


class Step:
    """One command with a name and, if it is pytest, the report it leaves."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        report: Path | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.name = name
        self.command = list(command)
        self.report = report
        self.environment = environment or {}

    def run(self, tally: Tally, seconds_max: float) -> None:
        print(f"== {self.name}", flush=True)
        started = time.monotonic()
        if self.report is not None:
            self.report.unlink(missing_ok=True)
        code = execute(self.command, {**os.environ, **self.environment}, seconds_max)
        counted = self.report is not None and self.report.exists()
        if self.report is not None and counted:
            before = tally.failed
            tally.add_report(self.report)
            # 5: nothing was collected. Any other code without a failed test is pytest's own failure.
            if code not in (0, 5) and tally.failed == before:
                tally.add_step(f"{self.name} (pytest ended with {code})", ok=False)
        else:
            tally.add_step(f"{self.name} (ended with {code})" if code else self.name, ok=code == 0)
        print(f"-- {self.name}: {time.monotonic() - started:.1f} s", flush=True)


def execute(command: Sequence[str], environment: dict[str, str], seconds_max: float) -> int:
    """In a session of its own, so that what it leaves running can be ended with it."""
    child = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, start_new_session=True
    )
    try:
        return child.wait(seconds_max)
    except subprocess.TimeoutExpired:
        print(f"ended after {seconds_max:.0f} s", flush=True)
        return 124
    finally:
        try:
            os.killpg(child.pid, signal.SIGKILL if child.poll() is None else signal.SIGTERM)
        except ProcessLookupError:
            pass
        child.wait()


def tool(module: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", module, *arguments]


def lint_steps() -> list[Step]:
    layers = [sys.executable, "-c", LINT_IMPORTS, "--no-logo", "--no-cache"]
    return [
        Step("ruff", tool("ruff", "check", "--quiet", ".")),
        Step("mypy --strict", tool("mypy", "--no-error-summary")),
        Step("layers", layers, environment={"PYTHONPATH": "src"}),
    ]


def pytest_step(
    name: str,
    targets: Iterable[str],
    options: Sequence[str],
    *,
    workers: str | None = None,
    environment: dict[str, str] | None = None,
) -> Step:
    report = report_of(name)
    report.parent.mkdir(exist_ok=True)
    command = tool("pytest", "-q", f"--junitxml={report}", "-o", "junit_family=xunit1", *targets)
    if workers is not None:
        command += ["-n", workers, "--dist", "load", "--max-worker-restart", "8"]
    return Step(name, [*command, *options], report=report, environment=environment)


def report_of(name: str) -> Path:
    return ROOT / ".pytest_cache" / f"hw-{name.replace(' ', '-').replace('/', '-')}.xml"


def has_tests(folder: Path) -> bool:
    return any(folder.rglob("test_*.py"))


def folders() -> list[Path]:
    found = [path for path in sorted(TESTS.iterdir()) if path.is_dir() and has_tests(path)]
    return [path for path in found if path.name != "peers"]


def quick_steps(options: Sequence[str]) -> list[Step]:
    steps = lint_steps()
    for folder in folders():
        workers = None if folder.name in ONE_AT_A_TIME else WORKERS
        steps.append(pytest_step(folder.name, [f"tests/{folder.name}"], options, workers=workers))
    if has_tests(TESTS / "wire"):
        pure = {"HEADWATER_PURE": "1"}
        steps.append(pytest_step("wire pure", ["tests/wire"], options, workers=WORKERS, environment=pure))
    files = [f"tests/{path.name}" for path in sorted(TESTS.glob("test_*.py"))]
    return [*steps, pytest_step("house", files, options, workers=WORKERS)]


def peer_steps(options: Sequence[str]) -> list[Step]:
    """One process: its tests share one Apache Kafka, which takes seconds to start."""
    return (
        [pytest_step("peers", ["tests/peers"], ["--durations=10", *PATIENT, *options])]
        if has_tests(TESTS / "peers")
        else []
    )


def slow_steps(options: Sequence[str]) -> list[Step]:
    environment = {"HEADWATER_HYPOTHESIS": "slow"}
    with_tests = [folder for folder in [*folders(), TESTS / "peers"] if has_tests(folder)]
    return [
        pytest_step(
            f"slow {folder.name}",
            [f"tests/{folder.name}"],
            ["-m", "slow", *PATIENT, *options],
            environment=environment,
        )
        for folder in with_tests
    ]


STEPS = {"test": quick_steps, "peers": peer_steps, "slow": slow_steps}


def git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def write_slow_page(tally: Tally, minutes: float) -> None:
    """Appends this run; a change that was not committed is marked, because its commit does not show it."""
    commit = git("rev-parse", "--short", "HEAD") or "no commit"
    if git("status", "--porcelain", "--untracked-files=no"):
        commit += " with changes"
    lines = [
        f"\n## {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {commit}\n",
        f"{tally.closing_line()} in {minutes:.1f} minutes, Python {sys.version.split()[0]}\n",
    ]
    if tally.rows:
        lines += ["| test | result |", "|---|---|"]
        lines += [f"| {name.rpartition('::')[2]} | {row} |" for name, row in tally.rows]
    lines += [f"* failed: `{name}`" for name in tally.failures]
    with SLOW_PAGE.open("a", encoding="utf-8") as page:
        page.write("\n".join(lines) + "\n")


def parse(arguments: Sequence[str]) -> tuple[str, list[str], bool, list[str]]:
    """suite, the steps asked for by --only, --plan, and what is left for pytest."""
    suite, only, plan, rest = arguments[0], [], False, []
    words = iter(arguments[1:])
    for word in words:
        if word == "--only":
            only.append(next(words, ""))
        elif word.startswith("--only="):
            only.append(word.removeprefix("--only="))
        elif word == "--plan":
            plan = True
        else:
            rest.append(word)
    return suite, only, plan, rest


def report(tally: Tally, suite: str) -> None:
    print()
    for name in tally.failures:
        print(f"failed: {name}")
    for reason, count in sorted(tally.reasons.items()):
        print(f"skipped {count}: {reason}")
    if suite == "peers" and tally.skipped and os.environ.get("CI"):
        tally.add_step("a peer is missing, and CI is set: nothing may be skipped", ok=False)
        print(f"failed: {tally.failures[-1]}")
    print(tally.closing_line())


def main(arguments: Sequence[str]) -> int:
    if not arguments or arguments[0] not in STEPS or {"-h", "--help"} & set(arguments):
        asked = bool({"-h", "--help"} & set(arguments))
        print(HELP + "\n" + (__doc__ or ""), file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 2
    suite, only, plan, options = parse(arguments)
    steps = [step for step in STEPS[suite](options) if not only or step.name in only]
    if not steps:
        known = ", ".join(step.name for step in STEPS[suite](options)) or "none yet"
        print(f"nothing to run; the steps of {suite} are: {known}", file=sys.stderr)
        return 2
    if plan:
        print("\n".join(step.name for step in steps))
        return 0
    tally, started = Tally(), time.monotonic()
    for step in steps:
        step.run(tally, STEP_SECONDS_MAX[suite])
    report(tally, suite)
    if suite == "peers" and os.environ.get("HEADWATER_WRITE_DOCS"):
        from tests import clients_page

        clients_page.write([report_of("stock_clients"), report_of("peers")], ROOT / "docs" / "clients.md")
    if suite == "slow" and not only and not options:
        write_slow_page(tally, (time.monotonic() - started) / 60)
    return tally.exit_code


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
