"""What a bench prints: the conditions of the run, and a row for each piece of work against its goal."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple


class Row(NamedTuple):
    """One piece of work: our median, the peer's, their ratio and the goal for it."""

    work: str
    ours: float
    peer: float
    peer_name: str
    unit: str
    goal: float
    at_most: bool = False  # whether the goal is a ceiling
    spread: str = ""

    @property
    def ratio(self) -> float:
        return self.ours / self.peer if self.peer else float("nan")

    @property
    def met(self) -> bool:
        return self.ratio <= self.goal if self.at_most else self.ratio >= self.goal

    def as_dict(self) -> dict[str, Any]:
        named = self._asdict() | {"ratio": round(self.ratio, 3), "met": self.met}
        named["goal"] = f"{'<=' if self.at_most else '>='} {self.goal}"
        return named


def row_of(work: str, ours: list[float], peer: list[float], peer_name: str, unit: str, goal: float,
           at_most: bool = False) -> Row:  # fmt: skip
    """A row from the rounds of both: medians, and the spread of each."""
    spread = f"{min(ours):.3g}-{max(ours):.3g} / {min(peer):.3g}-{max(peer):.3g}"
    return Row(work, statistics.median(ours), statistics.median(peer), peer_name, unit, goal, at_most, spread)


def as_table(rows: list[Row]) -> str:
    lines = [
        "| work | ours | peer | ratio | goal | met | spread (ours / peer) |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        goal = f"{'≤' if row.at_most else '≥'} {row.goal}"
        lines.append(
            f"| {row.work} | {row.ours:.4g} {row.unit} | {row.peer_name} {row.peer:.4g} | {row.ratio:.2f} "
            f"| {goal} | {'yes' if row.met else 'no'} | {row.spread} |"
        )
    return "\n".join(lines)


def conditions() -> str:
    """Machine, versions, commit and what a sync costs here, in one paragraph."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    ).stdout.strip()
    return (
        f"{time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())}, commit {commit or 'unknown'}; "
        f"{os.cpu_count()} cores, Linux {platform.release()}, Python {platform.python_version()}; "
        f"write and fdatasync of 4 KB: median {_sync_ms():.2f} ms; load generators share the cores with the brokers; "
        f"load average at the start {os.getloadavg()[0]:.1f}."
    )


def _sync_ms() -> float:
    times = []
    with tempfile.TemporaryDirectory() as folder:
        handle = os.open(Path(folder) / "probe", os.O_RDWR | os.O_CREAT)
        os.pwrite(handle, bytes(1 << 20), 0)
        os.fsync(handle)
        for number in range(100):
            start = time.perf_counter()
            os.pwrite(handle, bytes(4096), number * 4096)
            os.fdatasync(handle)
            times.append((time.perf_counter() - start) * 1000)
        os.close(handle)
    return statistics.median(times)
