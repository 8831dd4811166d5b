"""`./hw bench NAME [--json] [--quick]`: runs one bench. Each bench is a module of this package with `run(quick)`."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

from bench.report import Row, as_table, conditions

BENCHES = {"log": "the broker against Apache Kafka, as it comes and with a flush before each acknowledgement"}
USAGE = "usage: ./hw bench NAME [--json] [--quick]\n" + "".join(
    f"  {name}  {what}\n" for name, what in BENCHES.items()
)


def main(arguments: list[str]) -> int:
    names = [word for word in arguments if not word.startswith("-")]
    unknown = set(arguments) - set(names) - {"--json", "--quick"}
    if len(names) != 1 or names[0] not in BENCHES or unknown:
        sys.stderr.write(USAGE)
        return 0 if arguments == ["--help"] else 2
    quick = "--quick" in arguments
    rows: list[Row] = importlib.import_module(f"bench.{names[0]}").run(quick=quick)
    if "--json" in arguments:
        for row in rows:
            print(json.dumps(row.as_dict()))
        return 0
    text = f"## {names[0]}{' (quick)' if quick else ''}\n\n{conditions()}\n\n{as_table(rows)}\n"
    print(text)
    if not quick:
        with Path(__file__).with_name("results.md").open("a") as results:
            results.write("\n" + text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
