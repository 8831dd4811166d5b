"""Log position: one place in one partition's history, comparable only where that is meaningful.

    text form  hw1:<cluster id>:<topic id>:<partition>:<leader epoch>:<offset>
    example    hw1:abcdefghijklmnopqrstuv:ABCDEFGHIJKLMNOPQRSTUV:3:0:42

A text is a position iff it has exactly these six fields; the topic id is in Kafka's text form, the cluster id
what the cluster says (letters, digits, ".", "_", "-"); the numbers are decimal without sign, blanks or leading
zeros and fit int32, int32, int64; leader epoch alone may be -1 for "not known". `offset` is that of the next
record to read. docs/formats/position.md is normative.
"""

from __future__ import annotations

from typing import NamedTuple

from headwater.core import ids

_FORM = "hw1"
_CLUSTER_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_INT32_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1


class Position(NamedTuple):
    cluster_id: str
    topic_id: bytes
    partition: int
    leader_epoch: int
    offset: int

    def __str__(self) -> str:
        topic = ids.to_text(self.topic_id)
        return f"{_FORM}:{self.cluster_id}:{topic}:{self.partition}:{self.leader_epoch}:{self.offset}"

    @classmethod
    def parse(cls, text: str) -> Position:
        """ValueError names what is wrong."""
        fields = text.split(":")
        if len(fields) != 6 or fields[0] != _FORM:
            raise ValueError(f"not a log position (hw1:cluster:topic:partition:epoch:offset): {text!r}")
        if not fields[1] or not _CLUSTER_CHARACTERS.issuperset(fields[1]):
            raise ValueError(f"not a cluster id: {fields[1]!r}")
        topic_id = ids.from_text(fields[2])
        epoch = -1 if fields[4] == "-1" else _number(fields[4], _INT32_MAX)
        return cls(fields[1], topic_id, _number(fields[3], _INT32_MAX), epoch, _number(fields[5], _INT64_MAX))

    def same_history(self, other: Position) -> bool:
        """Whether offsets of the two may be compared: the same partition of the same topic of the same cluster."""
        return self[:3] == other[:3]

    def is_reached_by(self, other: Position) -> bool:
        """Whether somebody who stands at `other` has seen everything before this position."""
        if not self.same_history(other):
            raise ValueError(f"positions of different partitions cannot be compared: {self} and {other}")
        return other.offset >= self.offset


def _number(text: str, most: int) -> int:
    if not (text.isascii() and text.isdigit()) or (text[0] == "0" and text != "0") or int(text) > most:
        raise ValueError(f"not a number of a log position: {text!r}")
    return int(text)
