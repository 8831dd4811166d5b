"""./hw on machines of many kinds: which Python it takes, what it installs when, what it says when it cannot.

A machine is a PATH of its own: the few tools that hw needs, and a stand-in `python3` (a shell script) that
makes environments and notes what pip was asked to install. The clone holds the real hw, locks and pyproject.
So these tests need no network; .ci/run starts from a fresh clone with the real Python and the real index.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
import zipfile
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).resolve().parent.parent
TOOLS = re.findall(r"\w+", "sh cat cksum readlink ln rm mkdir sed grep tail head id uname sleep env cp")
INTO_CLONE = ["hw", "pyproject.toml", "hatch_build.py", "requirements", "README.md", "LICENSE", "NOTICE"]
# What it answers is what hw asks of a Python; anything else is an error, so that a new question is noticed.
PYTHON = r"""#!/bin/sh
case "$*" in
    *"sys.version_info"*)
        set -- VERSION
        case $1 in 2.*|3.?.*|3.10.*) printf 'old %s %s' "$1" "$0" ;; *) printf 'ok %s %s' "$1" "$0" ;; esac ;;
    "-m venv --without-pip "*) mkdir -p "$4/bin" && cp "$0" "$4/bin/python" && : >"$4/no-pip" ;;
    "-m venv "*)
        mkdir -p "$3/bin" && cp "$0" "$3/bin/python"
        [ -z "${NO_ENSUREPIP:-}" ] || { echo "ensurepip is not available" >&2; exit 1; } ;;
    *"-m pip --version") [ -z "${NO_PIP:-}" ] && [ ! -e "${0%/bin/*}/no-pip" ] ;;
    *"-m pip"*install*)
        printf '%s\n' "$*" >>"$NOTES"
        [ -z "${PIP_SLEEPS:-}" ] || sleep "$PIP_SLEEPS"
        [ -z "${PIP_SAYS:-}" ] || { echo "$PIP_SAYS" >&2; exit 1; } ;;
    "-P -m headwater"*|"-m tests.run"*|"-m bench"*)
        printf 'ran %s in %s' "$*" "$PWD"
        [ -z "${READ_STDIN:-}" ] || cat
        [ -z "${SAY_COMMAND:-}" ] || printf ' by %s' "$HEADWATER_COMMAND" ;;
    *) echo "unexpected: $*" >&2; exit 99 ;;
esac
"""


class Machine:
    """A clone at `root`, a PATH at `bin`, and `notes`: what pip was asked to install."""

    def __init__(self, place: Path, *, python: str | None = "3.12.1", clone: str = "clone") -> None:
        self.bin, self.root, self.notes = place / "bin", place / clone, place / "notes"
        self.bin.mkdir()
        self.root.mkdir(parents=True)
        for tool in TOOLS:
            found = shutil.which(tool)
            if found:
                (self.bin / tool).symlink_to(found)
        for name in INTO_CLONE:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, self.root / name)
        if python:
            self.python("python3", python)

    def python(self, name: str, version: str) -> None:
        path = self.bin / name
        path.write_text(PYTHON.replace("VERSION", version))
        path.chmod(0o755)

    def start(self, *words: str, cwd: Path | None = None, hw: Path | str | None = None, **variables: str):
        environment = {"PATH": str(self.bin), "HOME": "/nonexistent", "NOTES": str(self.notes), **variables}
        return subprocess.Popen(
            [hw or self.root / "hw", *words],
            cwd=cwd or self.root,
            env=environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def hw(self, *words: str, stdin: str = "", **variables) -> tuple[int, str, str]:
        child = self.start(*words, **variables)
        out, err = child.communicate(stdin, timeout=30)
        return child.returncode, out, err

    def installed(self) -> list[str]:
        """What pip was asked for since the last question: the lock's name, or `project`."""
        text = self.notes.read_text() if self.notes.exists() else ""
        self.notes.unlink(missing_ok=True)
        lines = [line for line in text.splitlines() if line]
        return [m[1] if (m := re.search(r"requirements/(\w+)\.lock", line)) else "project" for line in lines]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_the_first_start_installs_the_core_set_and_the_second_nothing(machine: Machine) -> None:
    code, out, err = machine.hw("topics", "list")
    assert (code, out) == (0, f"ran -P -m headwater topics list in {machine.root}")
    assert "3.12.1" in err
    assert machine.installed() == ["core", "project"]
    code, out, err = machine.hw("topics", "list")
    assert (code, err) == (0, "")
    assert machine.installed() == []


def test_installs_are_by_hashes_and_fetch_no_build_tools_beside_them(
    machine: Machine,
) -> None:
    machine.hw("version")
    lock, project = machine.notes.read_text().splitlines()
    assert "--require-hashes -r" in lock
    assert "--no-deps --no-build-isolation -e" in project


def test_a_second_start_costs_little(machine: Machine) -> None:
    machine.hw("version")
    best = 1.0
    for _ in range(15):
        started = time.perf_counter()
        machine.hw("version")
        best = min(best, time.perf_counter() - started)
    assert best < 0.05  # 8 ms on a quiet machine; the stand-in Python is part of it


@pytest.mark.parametrize(
    ("verb", "sets"),
    [("test", "test"), ("peers", "test"), ("slow", "test"), ("bench", "test"), ("demo", "core")],
)
def test_a_verb_installs_only_the_set_it_needs(machine: Machine, verb: str, sets: str) -> None:
    machine.hw(verb)
    assert machine.installed() == [sets, "project"]


def test_the_test_set_holds_the_core_set_so_nothing_is_installed_twice(machine: Machine) -> None:
    machine.hw("test")
    machine.installed()
    assert machine.hw("version")[2] == ""
    assert machine.installed() == []


def test_the_test_set_is_added_to_an_environment_that_has_the_core_set(machine: Machine) -> None:
    machine.hw("version")
    machine.installed()
    assert "making" not in machine.hw("test")[2]
    assert machine.installed() == ["test", "project"]


@pytest.mark.parametrize(
    "changed", ["requirements/core.lock", "pyproject.toml", "src/headwater/wire/_records.c"]
)
def test_a_changed_lock_project_or_kernel_is_installed_again(machine: Machine, changed: str) -> None:
    (machine.root / "src/headwater/wire").mkdir(parents=True)
    (machine.root / "src/headwater/wire/_records.c").write_text("int one;\n")
    machine.hw("version")
    machine.installed()
    with (machine.root / changed).open("a") as file:
        file.write("\n")
    machine.hw("version")
    assert machine.installed() == ["core", "project"]


def test_a_clone_with_spaces_runs_from_any_directory_and_through_a_link(tmp_path: Path) -> None:
    machine = Machine(tmp_path, clone="my clones/head water")
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()
    (elsewhere / "hw").symlink_to("../my clones/head water/hw")
    code, out, _ = machine.hw("version", cwd=elsewhere, hw=elsewhere / "hw")
    assert (code, out) == (0, f"ran -P -m headwater version in {elsewhere}")
    code, out, _ = machine.hw("test", "--plan", cwd=elsewhere, hw=elsewhere / "hw")
    assert (code, out) == (0, f"ran -m tests.run test --plan in {machine.root}")
    assert not (elsewhere / ".venv").exists()


def test_a_clone_that_was_moved_makes_its_environment_again(machine: Machine, tmp_path: Path) -> None:
    machine.hw("version")
    machine.installed()
    machine.root = machine.root.rename(tmp_path / "moved")
    assert "making" in machine.hw("version")[2]
    assert machine.installed() == ["core", "project"]


def test_words_reach_the_verb_as_they_were_typed_and_so_does_stdin(machine: Machine) -> None:
    code, out, _ = machine.hw("produce", "a topic", "*", stdin="1\n2\n", READ_STDIN="1")
    assert (code, out) == (0, f"ran -P -m headwater produce a topic * in {machine.root}1\n2\n")
    assert machine.installed() == ["core", "project"]  # which read nothing of it


def test_advice_of_headwater_begins_with_what_was_typed(tmp_path: Path) -> None:
    machine = Machine(tmp_path, clone="my clone")
    assert machine.hw("version", SAY_COMMAND="1")[1].endswith(f" by '{machine.root}/hw'")
    assert machine.hw("version", SAY_COMMAND="1", hw="./hw")[1].endswith(" by ./hw")


@pytest.mark.parametrize("words", [[], ["--help"], ["help"]])
def test_help_installs_nothing(machine: Machine, words: list[str]) -> None:
    code, out, err = machine.hw(*words)
    assert (code, err) == (0, "")
    assert "./hw test" in out
    assert machine.installed() == []


def test_an_old_python_is_one_line_with_what_to_type(tmp_path: Path) -> None:
    code, out, err = Machine(tmp_path, python="3.9.2").hw("demo")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "3.11 or newer" in err and "3.9.2" in err and "Type: " in err


def test_no_python_is_one_line_with_what_to_type(tmp_path: Path) -> None:
    code, out, err = Machine(tmp_path, python=None).hw("demo")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "none on PATH" in err and "Type: " in err


def test_a_newer_python_beside_an_old_python3_is_taken(tmp_path: Path) -> None:
    machine = Machine(tmp_path, python="3.9.2")
    machine.python("python3.13", "3.13.5")
    code, _, err = machine.hw("version")
    assert code == 0 and "python3.13 (3.13.5)" in err


def test_a_python_without_ensurepip_uses_the_pip_that_is_there(machine: Machine) -> None:
    code, _, err = machine.hw("version", NO_ENSUREPIP="1")
    assert code == 0, err
    assert "--python" in machine.notes.read_text().splitlines()[0]
    assert machine.hw("version", NO_ENSUREPIP="1")[2] == ""


def test_neither_venv_nor_pip_nor_uv_is_one_line_with_what_to_type_and_leaves_nothing(
    machine: Machine,
) -> None:
    (machine.bin / "id").unlink()
    (machine.bin / "id").write_text("#!/bin/sh\necho 1000\n")  # an ordinary user, so apt is not for us
    (machine.bin / "id").chmod(0o755)
    code, _, err = machine.hw("version", NO_ENSUREPIP="1", NO_PIP="1")
    assert code == 2 and "Type: " in err.splitlines()[-1]
    assert not (machine.root / ".venv").exists()
    code, _, err = machine.hw("version")  # it was installed meanwhile
    assert code == 0, err


def test_a_half_made_environment_is_made_again(machine: Machine) -> None:
    (machine.root / ".venv/bin").mkdir(parents=True)
    (machine.root / ".venv/pyvenv.cfg").write_text("home = /usr/bin\n")
    assert machine.hw("version")[0] == 0
    assert machine.installed() == ["core", "project"]


def test_an_install_that_was_killed_is_done_again_from_nothing(machine: Machine) -> None:
    child = machine.start("version", PIP_SLEEPS="30")
    deadline = time.monotonic() + 20
    while not machine.notes.exists() and time.monotonic() < deadline:
        os.sched_yield()
    for process in [*psutil.Process(child.pid).children(recursive=True), child]:
        process.kill()
    child.communicate()
    assert (machine.root / ".venv/.hw-changing").exists()
    machine.installed()
    code, _, err = machine.hw("version")  # the lock of the dead is broken too
    assert code == 0 and "making" in err
    assert machine.installed() == ["core", "project"]


def test_starts_at_the_same_time_install_once(machine: Machine) -> None:
    starts = [machine.start("version", PIP_SLEEPS="0.3") for _ in range(4)]
    results = [(child.communicate()[0], child.returncode) for child in starts]
    assert results == [(f"ran -P -m headwater version in {machine.root}", 0)] * 4
    assert machine.installed() == ["core", "project"]
    assert not os.path.lexists(machine.root / ".venv.lock")


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        (
            "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.",
            "not the one the lock names",
        ),
        (
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
            "disk is full",
        ),
        (
            "ERROR: Could not find a version that satisfies click (Temporary failure in name resolution)",
            "network",
        ),
        ("something nobody thought of", ".venv.log"),
    ],
)
def test_a_failed_install_says_the_reason_and_the_next_step(machine: Machine, said: str, advice: str) -> None:
    code, out, err = machine.hw("version", PIP_SAYS=said)
    assert (code, out) == (1, "")
    assert said in err and advice in err.splitlines()[-1]
    machine.installed()
    code, _, err = machine.hw("version")
    assert code == 0 and "making" not in err  # pip undoes what it could not finish
    assert machine.installed() == ["core", "project"]


def test_the_users_pip_settings_for_installing_elsewhere_do_not_disturb(machine: Machine) -> None:
    machine.python("python3", "3.12.1")
    text = (
        (machine.bin / "python3")
        .read_text()
        .replace("printf '%s\\n' \"$*\"", 'env >>"$NOTES.env"; printf \'%s\\n\' "$*"')
    )
    (machine.bin / "python3").write_text(text)
    variables = {
        "PIP_USER": "1",
        "PIP_TARGET": "/x",
        "PIP_REQUIRE_HASHES": "1",
        "PYTHONHOME": "/y",
        "HOME": "",
    }
    assert machine.hw("version", PIP_FIND_LINKS="/wheels", **variables)[0] == 0
    seen = Path(f"{machine.notes}.env").read_text()
    assert "PIP_FIND_LINKS=/wheels" in seen  # where packages come from stays the user's
    for gone in ("PIP_USER=1", "PIP_TARGET", "PIP_REQUIRE_HASHES=1", "PYTHONHOME", "HOME="):
        assert f"\n{gone}" not in f"\n{seen}"


def test_hw_is_plain_posix_sh() -> None:
    text = (ROOT / "hw").read_text()
    assert text.startswith("#!/bin/sh\n")
    for word in (
        r"\[\[",
        r"\blocal\b",
        r"\bfunction\b",
        r"<<<",
        r"\$'",
        r"\bsource\b",
        r"=~",
        r"\barray\b",
        r"&>",
    ):
        assert not re.search(word, re.sub(r"(?m)#.*$", "", text)), word
    assert os.access(ROOT / "hw", os.X_OK)


def pins(name: str) -> dict[str, str]:
    text = (ROOT / "requirements" / f"{name}.lock").read_text()
    return dict(re.findall(r"(?m)^([a-z0-9.-]+)==([^ \\]+)", text))


@pytest.mark.parametrize("name", ["core", "test"])
def test_a_lock_has_a_hash_for_every_package_and_names_no_host(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.lock").read_text()
    entries = re.split(r"(?m)^(?=[a-z])", text)[1:]
    assert len(entries) == len(pins(name)) > 5
    assert all("--hash=sha256:" in entry for entry in entries)
    assert "://" not in text


def test_the_locks_hold_what_pyproject_asks_for_and_agree_with_each_other() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = project["dependency-groups"]
    asked = {"core": project["project"]["dependencies"] + groups["build"], "test": groups["test"]}
    for name, requirements in asked.items():
        assert {re.split(r"[ <>=!~;\[]", one)[0] for one in requirements} <= pins(name).keys()
    assert pins("core").items() <= pins("test").items()
    assert len(project["project"]["dependencies"]) <= 8


def build_wheel(place: Path, **variables: str) -> tuple[str, set[str], str]:
    """Name, files and what was said when the project is built in a copy."""
    source = place / "source"
    ignored = shutil.ignore_patterns(".*", "__pycache__", "*.so", "dist", "data", "tests", "bench", "docs")
    shutil.copytree(ROOT, source, ignore=ignored)
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place / "dist")],
        cwd=source,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not list(source.rglob("*.so"))
    (wheel,) = (place / "dist").glob("*.whl")
    return wheel.name, set(zipfile.ZipFile(wheel).namelist()), done.stderr


needs_kernel = pytest.mark.skipif(
    not (ROOT / "src/headwater/wire/_records.c").exists(), reason="the C kernel is not in this tree"
)


@needs_kernel
@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"CC": "/nonexistent/cc"}, "/nonexistent/cc"),
        ({"CC": "false"}, "the compiler failed"),
        ({"CC": "true"}, "loading it failed"),
        ({"HEADWATER_KERNEL": "off"}, "HEADWATER_KERNEL=off"),
    ],
)
def test_without_a_compiler_the_wheel_is_pure_and_the_build_says_why_in_one_line(
    tmp_path: Path, variables: dict[str, str], reason: str
) -> None:
    name, files, said = build_wheel(tmp_path, **variables)
    assert name.endswith("-py3-none-any.whl")
    assert not any(file.endswith((".so", ".c")) for file in files)
    (line,) = [line for line in said.splitlines() if line.startswith("headwater:")]
    assert reason in line and "twin" in line


@needs_kernel
@pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="no C compiler here")
def test_with_a_compiler_the_wheel_carries_the_kernel_for_every_python_from_3_11(
    tmp_path: Path,
) -> None:
    name, files, _ = build_wheel(tmp_path, HEADWATER_KERNEL="required")
    assert "-cp311-abi3-" in name
    assert "headwater/wire/_records.abi3.so" in files


RUN_TESTS = {
    "tests/good/test_good.py": "def test_one(): pass\ndef test_two(): pass\n",
    "tests/bad/test_bad.py": "def test_one(): assert 0\n",
    "tests/skips/test_skips.py": "import pytest\ndef test_one(): pytest.skip('no kafka here')\n",
    "tests/breaks/test_breaks.py": "import nothing_of_this_name\n",
    "tests/dies/test_dies.py": "import os\ndef test_one(): os._exit(3)\n",
    "tests/peers/test_away.py": "import pytest\n@pytest.mark.skip(reason='no java')\ndef test_one(): pass\n"
    "def test_two(): pass\n",
}


@pytest.mark.parametrize(
    ("suite", "only", "ci", "closing", "code"),
    [
        ("test", "good", "", "2 passed, 0 failed, 0 skipped", 0),
        ("test", "bad", "", "0 passed, 1 failed, 0 skipped", 1),
        ("test", "skips", "", "0 passed, 0 failed, 1 skipped", 1),
        ("test", "breaks", "", "0 passed, 1 failed, 0 skipped", 1),
        ("test", "dies", "", "0 passed, 1 failed, 0 skipped", 1),
        ("peers", "peers", "", "1 passed, 0 failed, 1 skipped", 0),
        ("peers", "peers", "true", "1 passed, 1 failed, 1 skipped", 1),
    ],
)
def test_the_runner_counts_and_its_last_line_and_exit_code_say_so(
    tmp_path: Path, suite: str, only: str, ci: str, closing: str, code: int
) -> None:
    for name, text in {**RUN_TESTS, "tests/__init__.py": "", "pyproject.toml": ""}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    shutil.copy(ROOT / "tests/run.py", tmp_path / "tests/run.py")
    environment = {**os.environ, "CI": ci}
    for name in ("PYTEST_ADDOPTS", "HEADWATER_WRITE_DOCS"):
        environment.pop(name, None)
    for name in [name for name in environment if name.startswith("PYTEST_")]:
        del environment[name]
    done = subprocess.run(
        [sys.executable, "-m", "tests.run", suite, "--only", only],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[-1] == closing, done.stdout + done.stderr
    assert done.returncode == code
    assert f"-- {only}: " in done.stdout


FAKE_HW = """#!/bin/sh
[ "$CI" = true ] || exit 9
cat
case $1 in
    test) echo "noise"; echo "{test}"; exit {code} ;;
    peers) echo "5 passed, 0 failed, 0 skipped" ;;
    demo) echo "{demo}" ;;
esac
"""


@pytest.mark.parametrize(
    ("test", "code", "demo", "closing", "exit_code"),
    [
        ("7 passed, 0 failed, 1 skipped", 0, "acknowledged 9, present 9", "13 passed, 0 failed, 1 skipped", 0),
        ("7 passed, 2 failed, 0 skipped", 1, "acknowledged 9, present 9", "13 passed, 2 failed, 0 skipped", 1),
        ("7 passed, 0 failed, 0 skipped", 1, "acknowledged 9, present 9", "13 passed, 1 failed, 0 skipped", 1),
        ("no closing line", 2, "acknowledged 9, present 9", "6 passed, 1 failed, 0 skipped", 1),
        ("7 passed, 0 failed, 0 skipped", 0, "acknowledged 9, present 8", "12 passed, 1 failed, 0 skipped", 1),
        ("7 passed, 0 failed, 0 skipped", 0, "acknowledged 9, present 90", "12 passed, 1 failed, 0 skipped", 1),
    ],
)
def test_ci_adds_up_its_parts_and_fails_when_one_does(
    tmp_path: Path, test: str, code: int, demo: str, closing: str, exit_code: int
) -> None:
    for name in ("tests/peers/test_a.py", "src/headwater/cli/demo.py", ".ci/run"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci/run")
    (tmp_path / "hw").write_text(FAKE_HW.format(test=test, code=code, demo=demo))
    (tmp_path / "hw").chmod(0o755)
    done = subprocess.run([tmp_path / ".ci/run"], capture_output=True, text=True, check=False, cwd="/")
    assert done.stdout.splitlines()[-1] == closing, done.stdout + done.stderr
    assert done.returncode == exit_code
