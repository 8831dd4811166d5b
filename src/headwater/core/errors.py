"""Errors for people: what was being done, where, why it failed, and what to do next.

A command line shows str(error) and ends with `exit_code`; nobody shows a traceback for one of these.
"""

from __future__ import annotations


class HeadwaterError(Exception):
    """`operation` ("open the data directory"), `place` (a path or address), `cause`, `next_step` (what to type)."""

    exit_code = 1

    def __init__(self, operation: str, *, place: str = "", cause: object = "", next_step: str = "") -> None:
        super().__init__(operation)
        self.operation = operation
        self.place = place
        self.cause = cause
        self.next_step = next_step

    def __str__(self) -> str:
        text = f"cannot {self.operation}"
        if self.place:
            text += f" {self.place}"
        if cause := str(self.cause).strip():
            text += f": {cause}"
        if text[-1] not in ".!?":
            text += "."
        return f"{text} {self.next_step}".rstrip()

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (type(self), self.operation, self.place, str(self.cause), self.next_step)


def _restore(kind: type[HeadwaterError], operation: str, place: str, cause: str, step: str) -> HeadwaterError:
    return kind(operation, place=place, cause=cause, next_step=step)


class UsageError(HeadwaterError):
    """The caller asked for something that makes no sense."""

    exit_code = 2


class NotFound(HeadwaterError):
    """The topic, group or file is not there."""

    exit_code = 3


class Conflict(HeadwaterError):
    """It exists already, or somebody else holds it."""

    exit_code = 4


class Denied(HeadwaterError):
    """Not allowed."""

    exit_code = 5


class Unavailable(HeadwaterError):
    """Nobody answers there, or it cannot serve now."""

    exit_code = 6
