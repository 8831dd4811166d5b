"""The command line: one file per verb, loaded only when it is typed."""
from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """The command `headwater`; the exit code says what happened (docs/guide/exit-codes.md)."""
    from headwater.cli.root import run

    return run(arguments)
