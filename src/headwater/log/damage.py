"""What is known to be wrong in a data directory, and what a start found. Nothing here is ever deleted data."""

from __future__ import annotations

from typing import NamedTuple


class Damage(NamedTuple):
    """`first_offset`..`next_offset` cannot be read (-1, -1: no record is concerned)."""

    file: str
    position: int
    reason: str
    topic: str = ""
    partition: int = -1
    first_offset: int = -1
    next_offset: int = -1

    def __str__(self) -> str:
        text = f"{self.file} at byte {self.position}: {self.reason}"
        if self.topic:
            text += f" ({self.topic}-{self.partition}"
            if self.first_offset >= 0:
                text += f", offsets {self.first_offset} to {self.next_offset - 1}"
            text += ")"
        return text


class RecoveryReport:
    """What Log.open found and did."""

    __slots__ = ("clean", "created", "cut_bytes", "damage", "epoch_bumped", "replayed_frames", "seconds")

    def __init__(self) -> None:
        self.created = False  # the directory was new
        self.clean = True
        self.epoch_bumped = False
        self.replayed_frames = 0
        self.cut_bytes = 0  # of the torn last frame: never acknowledged, kept in quarantine
        self.damage: list[Damage] = []
        self.seconds = 0.0
