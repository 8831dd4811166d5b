"""The checkpoint: what the segments are known to hold, so that only what came later is looked at.

    line 1   headwater checkpoint 1
    line 2   {"sequence", "chain", "journal_key", "cluster_id", "wall_ms", "facts"}
    a line   {"topic", "id", "config", "partitions": how many}                                for each topic
    a line   [index, log start, end, [[epoch, start], …], [segment, …], [producer, …], [hole, …]]
                                                                                 for each of its partitions
    last     sum <CRC-32C of everything before, 8 hex digits>

It is valid iff the last line is there and right. All frames up to `sequence` are complete and synced in the
segments. Two copies are kept, written one after the other; the one with the higher sequence counts.
docs/formats/data-directory.md is normative.
"""

from __future__ import annotations

import json
from typing import Any

from headwater.wire.crc import crc32c

TITLE = "headwater checkpoint 1"


def encode(head: dict[str, Any], topic_lines: list[str]) -> bytes:
    body = "\n".join([TITLE, json.dumps(head, separators=(",", ":")), *topic_lines, ""]).encode()
    return body + b"sum %08x\n" % crc32c(body)


class Checkpoint:
    """A parsed one. `topics`: (topic line, its partition lines)."""

    __slots__ = ("chain", "cluster_id", "facts", "journal_key", "sequence", "topics", "wall_ms")

    def __init__(self, head: dict[str, Any], topics: list[tuple[dict[str, Any], list[list[Any]]]]) -> None:
        self.sequence: int = head["sequence"]
        self.chain: int = head["chain"]
        self.journal_key = bytes.fromhex(head["journal_key"])
        self.cluster_id: str = head["cluster_id"]
        self.wall_ms: int = head["wall_ms"]
        self.facts: dict[str, Any] = head["facts"]
        self.topics = topics


def decode(content: bytes) -> Checkpoint:
    """ValueError if it is not valid."""
    body, mark, last = content.rpartition(b"sum ")
    if not mark or last != b"%08x\n" % crc32c(body):
        raise ValueError("the checksum of the checkpoint is wrong")
    lines = body.decode().split("\n")
    if lines[0] != TITLE:
        raise ValueError(f"this is not a checkpoint that this version reads: {lines[0][:60]!r}")
    # One parse of all lines: a call for each costs more than its content.
    parsed = json.loads("[" + ",".join(lines[1:-1]) + "]")
    topics: list[tuple[dict[str, Any], list[list[Any]]]] = []
    for line in parsed[1:]:
        if isinstance(line, dict):
            topics.append((line, []))
        else:
            topics[-1][1].append(line)
    return Checkpoint(parsed[0], topics)
