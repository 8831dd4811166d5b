"""The habits of this code as checks: layers, sizes, words, dead modules, links. Limits only go down.

Every check is a function from a tree to findings (`place: what is wrong`). It runs over this repository, and
over a small planted tree where it has to find exactly what was planted, so that none of them is blind.
Exceptions stand in tables here, each with its reason; one that is no longer needed is a finding too.
"""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 60
FUNCTION_LINES_USUAL = 30
SHARE_OF_USUAL = 0.9
# What may be longer, and why. Shrinks, never grows.
LONG_FILES: dict[str, str] = {}
LONG_FUNCTIONS: dict[str, str] = {
    "src/headwater/wire/records.py walk": "the twin's inner loop, written out: 2.2 M records/s, 0.4 with calls",
    "src/headwater/log/topic_config.py _table": "a table: one entry for each of Kafka's topic settings",
}
# Modules that nothing imports by name, and who loads them.
LOADED_OTHERWISE: dict[str, str] = {
    "headwater.__main__": "python -m headwater",
    "headwater.server.__main__": "python -m headwater.server, the child that core.processes starts",
}
PURE = ("wire", "log", "broker")
NOT_IN_PURE = {"asyncio", "socket", "threading", "random"}
STARTS_WITH_BROKER = ("core", "wire", "log", "broker", "server")
SLOW_TO_IMPORT = {
    "argparse",
    "click",
    "confluent_kafka",
    "dataclasses",
    "importlib.metadata",
    "inspect",
    "logging",
}
LIBRARY = ("core", "wire", "log", "broker", "server", "client")
# The message codecs are compiled once per class and version, from our own schema, never from input.
COMPILES_CODE = ("src/headwater/wire/schema.py", "src/headwater/wire/codec.py")
BAD_NAMES = re.compile(r"^_?(utils?|helpers?|managers?|common|misc)(_|$)|_(utils?|helpers?|manager)$")
OPEN_ENDS = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b")
MACHINE_PATHS = re.compile(r"(?<![\w.$}~-])(/work|/root|/home/\w+|/Users/\w+)/\w")
REGISTRIES = re.compile(  # a lock or a build file that names one works on one machine, or trusts it
    r"pypi\.|pythonhosted|npmjs|artifactory|nexus|repo1?\.maven|maven\.org|(?<!emit-)index-url", re.IGNORECASE
)
BINARIES = {".so", ".dylib", ".pyd", ".dll", ".whl", ".jar", ".class", ".zip", ".gz", ".pyc"}
LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)")
NOT_OURS = {".git", ".venv", "build", "dist", "data", "__pycache__", "node_modules"}


class Tree:
    """The files of one repository: what git knows or would take, else everything that is not a cache."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @cached_property
    def files(self) -> list[str]:
        if (self.root / ".git").exists():
            command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
            try:
                done = subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=True)
            except (OSError, subprocess.CalledProcessError):
                pass
            else:
                names = {name for name in done.stdout.split("\0") if name}
                return sorted(name for name in names if (self.root / name).is_file())
        paths = (path.relative_to(self.root) for path in self.root.rglob("*") if path.is_file())
        ours = (path for path in paths if not any(p in NOT_OURS or p.endswith("_cache") for p in path.parts))
        return sorted(path.as_posix() for path in ours if path.suffix != ".so")

    def text(self, name: str) -> str:
        return (self.root / name).read_text(encoding="utf-8", errors="replace")

    @cached_property
    def python(self) -> dict[str, ast.Module]:
        return {name: ast.parse(self.text(name), name) for name in self.files if name.endswith(".py")}

    def layers(self, *names: str) -> Iterator[tuple[str, ast.Module]]:
        prefixes = tuple(f"src/headwater/{name}/" for name in names)
        return ((name, tree) for name, tree in self.python.items() if name.startswith(prefixes))


Check = Callable[[Tree], list[str]]


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, dotted name); `from a import b` gives `a` and `a.b`, because b may be a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.lineno, node.module
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def top_level_imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from imports(node)


def calls(tree: ast.AST) -> Iterator[tuple[ast.Call, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield node, ast.unparse(node.func)


def functions(tree: ast.AST) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, int]]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node, (node.end_lineno or node.lineno) - node.lineno + 1


def pure_layers(tree: Tree) -> list[str]:
    return [
        f"{name}:{line}: imports {module}"
        for name, parsed in tree.layers(*PURE)
        for line, module in imports(parsed)
        if module in NOT_IN_PURE
    ]


def quick_start(tree: Tree) -> list[str]:
    """The whole broker process listens after 0.15 s; each of these costs 5 to 40 ms of it."""
    return [
        f"{name}:{line}: imports {module} at start"
        for name, parsed in tree.layers(*STARTS_WITH_BROKER)
        for line, module in top_level_imports(parsed)
        if module in SLOW_TO_IMPORT
    ]


def spark_alone(tree: Tree) -> list[str]:
    allowed = ("src/headwater/spark/", "src/headwater/testing/spark", "src/pyspark_headwater/")
    return [
        f"{name}:{line}: imports pyspark"
        for name, parsed in tree.python.items()
        if name.startswith("src/") and not name.startswith(allowed)
        for line, module in imports(parsed)
        if module.partition(".")[0] == "pyspark"
    ]


def beyond(sizes: dict[str, int], limit: int, allowed: dict[str, str]) -> list[str]:
    long = [
        f"{name}: {lines} lines" for name, lines in sizes.items() if lines > limit and name not in allowed
    ]
    return long + [
        f"{name}: needs no exception any more" for name in allowed if sizes.get(name, limit + 1) <= limit
    ]


def file_sizes(tree: Tree) -> list[str]:
    lengths = {name: tree.text(name).count("\n") for name in tree.python if "/messages/" not in name}
    return beyond(lengths, FILE_LINES_MAX, LONG_FILES)


def function_sizes(tree: Tree) -> list[str]:
    sizes = {
        f"{name} {node.name}": lines
        for name, parsed in tree.python.items()
        for node, lines in functions(parsed)
    }
    return beyond(sizes, FUNCTION_LINES_MAX, LONG_FUNCTIONS)


def usual_functions(tree: Tree) -> list[str]:
    sizes = [
        lines
        for name, parsed in tree.python.items()
        if name.startswith("src/")
        for _, lines in functions(parsed)
    ]
    usual = sum(lines <= FUNCTION_LINES_USUAL for lines in sizes)
    if usual >= SHARE_OF_USUAL * len(sizes):
        return []
    return [
        f"src: {usual} of {len(sizes)} functions have <= {FUNCTION_LINES_USUAL} lines; nine in ten should"
    ]


def file_contracts(tree: Tree) -> list[str]:
    return [
        f"{name}: does not open with its contract"
        for name, parsed in tree.python.items()
        if parsed.body and not ast.get_docstring(parsed)
    ]


def open_ends(tree: Tree) -> list[str]:
    return [
        f"{name}:{number}: {match[0]}"
        for name in tree.files
        for number, line in enumerate(tree.text(name).splitlines(), 1)
        if (match := OPEN_ENDS.search(line))
    ]


def module_names(tree: Tree) -> list[str]:
    names = {name: [*Path(name).parts[:-1], Path(name).stem] for name in tree.python}
    return [
        f"{name}: says nothing about what is in it"
        for name, parts in names.items()
        if any(BAD_NAMES.search(part) for part in parts)
    ]


def sleeps_in_tests(tree: Tree) -> list[str]:
    found = []
    for name, parsed in tree.python.items():
        if not name.startswith("tests/"):
            continue
        for call, function in calls(parsed):
            zero = bool(call.args) and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0
            if function in ("time.sleep", "sleep") or (function == "asyncio.sleep" and not zero):
                found.append(f"{name}:{call.lineno}: sleeps; wait for a condition with a deadline")
    return found


def prints_in_library(tree: Tree) -> list[str]:
    return [
        f"{name}:{call.lineno}: prints"
        for name, parsed in tree.layers(*LIBRARY)
        for call, function in calls(parsed)
        if function == "print"
    ]


def compiled_code(tree: Tree) -> list[str]:
    return [
        f"{name}:{call.lineno}: {function}"
        for name, parsed in tree.python.items()
        if name.startswith("src/") and name not in COMPILES_CODE
        for call, function in calls(parsed)
        if function in ("eval", "exec")
    ]


def module_of(name: str) -> str:
    return name.removeprefix("src/").removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def dead_modules(tree: Tree) -> list[str]:
    """Named by an import, by a whole string (lazy verbs, `-m`), or by pyproject's entry points."""
    sources = {
        module_of(name): parsed for name, parsed in tree.python.items() if name.startswith("src/headwater/")
    }
    tests = [parsed for name, parsed in tree.python.items() if name.startswith(("tests/", "bench/"))]
    project = tomllib.loads(tree.text("pyproject.toml"))["project"] if "pyproject.toml" in tree.files else {}
    points = [project.get("scripts", {}), *project.get("entry-points", {}).values()]
    used = {target.partition(":")[0] for table in points for target in table.values()} | set(LOADED_OTHERWISE)
    for module, parsed in sources.items():
        used |= named_in(parsed) - {module}
    in_tests: set[str] = set().union(*map(named_in, tests))
    found = []
    for module in sources:
        known = used | in_tests if module.startswith("headwater.testing") else used
        package = any(other.startswith(module + ".") for other in sources)
        leaf = module.rpartition(".")[2]
        if not package and module not in known and leaf not in known and module != "headwater":
            found.append(f"{module}: nobody imports it")
    return found


def named_in(parsed: ast.Module) -> set[str]:
    strings = {
        node.value
        for node in ast.walk(parsed)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return {module for _, module in imports(parsed)} | {
        text.partition(":")[0] for text in strings if len(text) < 80
    }


def this_machine(tree: Tree) -> list[str]:
    return [
        f"{name}:{number}: {match[0]}"
        for name in tree.files
        if name != "LICENSE"
        for number, line in enumerate(tree.text(name).splitlines(), 1)
        if (match := MACHINE_PATHS.search(line) or REGISTRIES.search(line)) and "(?<!emit-)" not in line
    ]


def binaries(tree: Tree) -> list[str]:
    return [
        f"{name}: binary"
        for name in tree.files
        if Path(name).suffix in BINARIES or b"\0" in (tree.root / name).read_bytes()[:8000]
    ]


def broken_links(tree: Tree) -> list[str]:
    found = []
    for name in tree.files:
        if not name.endswith(".md"):
            continue
        for target in LINK.findall(re.sub(r"```.*?```", "", tree.text(name), flags=re.DOTALL)):
            path = target.partition("#")[0]
            elsewhere = not path or "://" in path or path.startswith("mailto:")
            if not elsewhere and not ((tree.root / name).parent / path).exists():
                found.append(f"{name}: {target} is not there")
    return found


# check, and what a tree with its fault looks like: file -> text
LONG = "def f():\n" + "    x = 1\n" * 61
PLANTS: list[tuple[Check, dict[str, str]]] = [
    (pure_layers, {"src/headwater/log/a.py": '"""A."""\nimport asyncio\n'}),
    (quick_start, {"src/headwater/core/a.py": '"""A."""\nfrom dataclasses import dataclass\n'}),
    (spark_alone, {"src/headwater/client/a.py": '"""A."""\ndef f():\n    import pyspark.sql\n'}),
    (file_sizes, {"src/headwater/log/a.py": '"""A."""\n' + "x = 1\n" * FILE_LINES_MAX}),
    (function_sizes, {"tests/a.py": LONG}),
    (usual_functions, {"src/headwater/log/a.py": LONG}),
    (file_contracts, {"src/headwater/log/a.py": "x = 1\n"}),
    (open_ends, {"docs/a.md": "Here is a TO" + "DO.\n"}),
    (module_names, {"src/headwater/log/string_utils.py": '"""A."""\n'}),
    (sleeps_in_tests, {"tests/test_a.py": '"""A."""\nimport time\ntime.sleep(1)\n'}),
    (prints_in_library, {"src/headwater/server/a.py": '"""A."""\nprint(1)\n'}),
    (compiled_code, {"src/headwater/log/a.py": '"""A."""\neval("1")\n'}),
    (dead_modules, {"src/headwater/log/orphan.py": '"""A."""\n'}),
    (this_machine, {"docs/a.md": "see /ro" + "ot/notes\n"}),
    (binaries, {"src/headwater/a.txt": "a\0b"}),
    (broken_links, {"docs/a.md": "[b](b.md)\n"}),
]


@pytest.mark.parametrize("check", [check for check, _ in PLANTS], ids=lambda check: check.__name__)
def test_this_repository_keeps(check: Check) -> None:
    found = check(Tree(ROOT))
    assert not found, "\n".join(found)


@pytest.mark.parametrize(("check", "plant"), PLANTS, ids=lambda value: getattr(value, "__name__", ""))
def test_each_check_finds_what_is_planted_and_nothing_in_a_clean_tree(
    check: Check, plant: dict[str, str], tmp_path: Path
) -> None:
    clean = {
        "src/headwater/__init__.py": '"""The facade."""\nfrom headwater.log import journal\n',
        "src/headwater/log/__init__.py": '"""The log."""\n',
        "src/headwater/log/journal.py": '"""The journal."""\ndef f():\n    return 1\n',
        "README.md": "[the log](src/headwater/log)\n",
    }
    for name, text in clean.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert check(Tree(tmp_path)) == []
    for name, text in plant.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    findings = check(Tree(tmp_path))
    assert len(findings) == 1, findings


def test_every_exception_of_the_size_limits_has_a_reason() -> None:
    for table in (LONG_FILES, LONG_FUNCTIONS, LOADED_OTHERWISE):
        assert all(len(reason.split()) >= 3 for reason in table.values()), table
