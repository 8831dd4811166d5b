"""docs/reliability.md names tests; each of them exists, and the slow ones are marked so."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reliability.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)?::(test_\w+)`")


def named_in(page: str) -> list[tuple[str, str, bool]]:
    """(file, test, whether it stands in the column of slow counts); a name without a file is of the one before."""
    found = []
    for line in page.splitlines():
        file = ""
        cells = line.split("|")
        for place, cell in enumerate(cells):
            for match in NAMED.finditer(cell):
                file = match.group(1) or file
                found.append((file, match.group(2), place == len(cells) - 2))
    return found


def stored_in(path: Path) -> dict[str, bool]:
    """Every test of a file, and whether it is only run when slow ones are asked for."""
    functions = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)]
    return {
        node.name: any(ast.unparse(each) == "pytest.mark.slow" for each in node.decorator_list)
        for node in functions
        if node.name.startswith("test_")
    }


def mistakes(page: str) -> list[str]:
    wrong = []
    for file, name, in_slow_column in named_in(page):
        path = ROOT / file
        there = stored_in(path) if file and path.is_file() else {}
        if name not in there:
            wrong.append(f"{file}::{name} does not exist")
        elif there[name] != in_slow_column:
            wrong.append(f"{file}::{name} stands in the wrong column")
    return wrong


def test_every_test_that_the_page_names_exists_and_runs_where_it_says() -> None:
    page = PAGE.read_text()
    assert mistakes(page) == []
    assert len(named_in(page)) > 25


def test_a_name_that_does_not_exist_is_noticed() -> None:
    here = "tests/test_reliability_page.py"
    assert mistakes(f"| a | b | `{here}::test_gone` | 1 | |") == [f"{here}::test_gone does not exist"]
    name = "test_a_name_that_does_not_exist_is_noticed"
    assert mistakes(f"| a | `{here}::{name}` | 1 | |") == []
    assert mistakes(f"| a | 1 | `{here}::{name}` |") == [f"{here}::{name} stands in the wrong column"]
