"""Writes requirements/*.lock from pyproject.toml: one per set, with hashes and without any host name.

`python tools/lock.py` keeps what still fits; `python tools/lock.py --upgrade` takes the newest of everything.
It needs `uv`, which is a developer's tool: users and ./hw need only pip. Every set but the first is resolved
under the first one's versions, so that adding a set to an environment never changes what is there.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SETS = {"core": ["build"], "test": ["build", "test"]}  # set -> groups beside the package's own needs
HEAD = "# Made by tools/lock.py from pyproject.toml; do not edit. One for every Python and system.\n"


def command(uv: str, name: str, options: list[str]) -> list[str]:
    base = [uv, "pip", "compile", "pyproject.toml", "--universal", "--generate-hashes", "--no-header"]
    base += ["--no-annotate", "--no-emit-index-url", "--no-emit-find-links", "--quiet"]
    base += ["--python-version", "3.11"]
    for group in SETS[name]:
        base += ["--group", group]
    if name != "core":
        base += ["--constraint", "requirements/core.lock"]
    return [*base, *options, "--output-file", f"requirements/{name}.lock"]


def main(options: list[str]) -> int:
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is None:
        print("tools/lock.py needs uv. Type: pip install uv", file=sys.stderr)
        return 2
    for name in SETS:
        lock = ROOT / "requirements" / f"{name}.lock"
        subprocess.run(command(uv, name, options), cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        text = lock.read_text().removeprefix(HEAD)
        if "://" in text:
            print(f"{lock.name} would hold a host name; not written", file=sys.stderr)
            lock.unlink()
            return 1
        lock.write_text(HEAD + text)
        print(f"{lock.name}: {text.count('==')} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
