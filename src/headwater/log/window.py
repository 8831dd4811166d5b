"""What the loop hands to the two threads, and what waits to be handed over.

An entry is a tuple whose first two items are what the journal gets (head, body). Of a batch:
(head, body, partition, segment, next offset, size); of any other change: (head, body, None, action), the action
being run on the loop once the change is durable. A list of entries is a group: it goes into one frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.core.disk import Buffer

if TYPE_CHECKING:
    from headwater.log.journal import JournalFile, Placement
    from headwater.log.partition import Partition
    from headwater.log.segment import Segment

Entry = tuple[Any, ...]


class Queue:
    """Entries in order of their making. `changes` counts all that were ever added."""

    __slots__ = ("_group", "_items", "bytes", "changes")

    def __init__(self) -> None:
        self._items: list[Entry | list[Entry]] = []
        self._group: list[Entry] | None = None
        self.bytes = 0
        self.changes = 0

    def __len__(self) -> int:
        return len(self._items)

    def add(self, entry: Entry, size: int) -> None:
        self.changes += 1
        self.bytes += size
        if self._group is None:
            self._items.append(entry)
        else:
            self._group.append(entry)

    def begin_group(self) -> bool:
        """False if there is an outer one, which this one then belongs to."""
        if self._group is not None:
            return False
        self._group = []
        return True

    def end_group(self) -> None:
        group, self._group = self._group, None
        if group:
            self._items.append(group if len(group) > 1 else group[0])

    def take(self, bytes_max: int) -> tuple[list[Entry], int]:
        """(entries of the oldest units, their bytes): at least one unit, about `bytes_max` at most."""
        assert self._group is None, "a window was taken in the middle of together()"
        if self.bytes <= bytes_max:
            count = len(self._items)
        else:
            size = count = 0
            for item in self._items:
                if count and size >= bytes_max:
                    break
                size += entry_bytes(item)
                count += 1
        items, self._items = self._items[:count], self._items[count:]
        entries: list[Entry] = []
        for item in items:
            if type(item) is list:
                entries += item
            else:
                entries.append(item)  # type: ignore[arg-type]
        taken = self.bytes if not self._items else sum(entry_bytes(entry) for entry in entries)
        self.bytes -= taken
        return entries, taken


def entry_bytes(item: Entry | list[Entry]) -> int:
    if type(item) is list:
        return sum(len(entry[0]) + len(entry[1]) for entry in item)
    return len(item[0]) + len(item[1])


class Window:
    """Units that become durable together: one frame. `lines`: of the checkpoint taken just after them."""

    __slots__ = ("entries", "facts", "length", "lines", "parts", "placement")

    def __init__(self, entries: list[Entry], length: int, placement: Placement) -> None:
        self.entries = entries
        self.length = length
        self.placement = placement
        self.parts: list[Buffer] = [part for entry in entries for part in entry[:2]]
        self.lines: list[str] | None = None
        self.facts: dict[str, Any] = {}


class SegmentWork:
    """Operations for the segment thread, and what the loop notes when they are done."""

    __slots__ = ("batches", "bytes", "operations", "segments", "sequence", "spare", "tail")

    def __init__(self) -> None:
        self.operations: list[tuple[Any, ...]] = []
        self.segments: list[tuple[Segment, int]] = []  # and how far its file then goes
        self.tail: list[tuple[Partition, int]] = []  # batches that may leave memory afterwards
        self.bytes = 0
        self.batches = 0
        self.spare: JournalFile | None = None
        self.sequence = -1  # of the checkpoint that this work ends with
