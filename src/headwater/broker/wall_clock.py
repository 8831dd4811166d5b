"""Whether the wall clock may decide what is removed. Not after a jump: log/retention.py has the rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.log import Log


def is_believed(log: Log) -> bool:
    log.tick()  # somebody may have set the clock since the last one
    return not log.retention.held
