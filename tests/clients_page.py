"""docs/clients.md from the reports of a run: which unmodified client did what against our broker, and how it ended.

    HEADWATER_WRITE_DOCS=1 ./hw peers

writes it from the report of tests/peers, and of tests/stock_clients where `./hw test` has left one. The rows are
the tests' own names, so the page cannot say more than was run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

HEAD = """# Clients that were run against the broker

Written by `HEADWATER_WRITE_DOCS=1 ./hw peers` from its report and that of `./hw test`: each row is a test that
drives an unmodified client, with the result it had in that run.
"""


class Client(NamedTuple):
    """A client, the module that drives it, and the parameter value that picks it out there."""

    title: str
    module: str
    picked: str = ""


class Ran(NamedTuple):
    module: str
    name: str
    result: str


def clients() -> list[Client]:
    from tests.peers.apache_kafka import RELEASE, RELEASE_IN_SPARK

    java = "Java client {}, through Apache Kafka's own tools"
    return [
        Client(f"confluent-kafka {version('confluent-kafka')} (librdkafka)", "test_librdkafka"),
        Client(f"aiokafka {version('aiokafka')}", "test_aiokafka"),
        Client(java.format(RELEASE), "test_java_clients", RELEASE),
        Client(java.format(RELEASE_IN_SPARK), "test_java_clients", RELEASE_IN_SPARK),
        Client(f"DumpLogSegments {RELEASE}, over the files at rest", "test_dump_log_segments"),
    ]


def read(reports: Iterable[Path]) -> list[Ran]:
    found = []
    for report in reports:
        for case in ET.parse(report).iter("testcase"):
            bad = case.find("failure") is not None or case.find("error") is not None
            result = "failed" if bad else "skipped" if case.find("skipped") is not None else "passed"
            module = str(case.get("classname")).rpartition(".")[2]
            found.append(Ran(module, str(case.get("name")), result))
    return found


def page(every: Sequence[Ran], known: Sequence[Client]) -> str:
    lines = [HEAD]
    for client in known:
        rows = sorted(ran for ran in every if ran.module == client.module and client.picked in ran.name)
        if rows:
            lines += [f"## {client.title}\n", "| what | result |", "|---|---|"]
            lines += [f"| {sentence(ran.name, client.picked)} | {ran.result} |" for ran in rows]
            lines.append("")
    return "\n".join(lines)


def sentence(name: str, picked: str) -> str:
    """`test_records_come_back[gzip]` -> `records come back: gzip`."""
    words, _, parameters = name.removesuffix("]").partition("[")
    rest = parameters.replace(picked, "").strip("-")
    return words.removeprefix("test_").replace("_", " ") + (f": {rest}" if rest else "")


def write(reports: Sequence[Path], to: Path) -> None:
    to.write_text(page(read(report for report in reports if report.exists()), clients()), encoding="utf-8")
