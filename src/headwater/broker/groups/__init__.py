"""Classic consumer groups: members, rebalances, committed offsets. ``Groups`` is the coordinator."""

from __future__ import annotations

from headwater.broker.groups.coordinator import Groups

__all__ = ["Groups"]
