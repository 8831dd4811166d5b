"""At which offset each leader epoch began. A consumer finds out from this that a log was cut.

File form (Kafka's leader-epoch-checkpoint): a line "0", a line with the count, a line "epoch offset" for each.
"""

from __future__ import annotations


class LeaderEpochCache:
    """Epochs and their start offsets, both strictly ascending."""

    __slots__ = ("entries",)

    def __init__(self, entries: list[tuple[int, int]] | None = None) -> None:
        self.entries = entries if entries is not None else []

    def assign(self, epoch: int, start_offset: int) -> None:
        """A new epoch begins; epochs in which nothing was written give way."""
        kept = [entry for entry in self.entries if entry[0] < epoch and entry[1] < start_offset]
        self.entries = [*kept, (epoch, start_offset)]

    def latest(self) -> int:
        return self.entries[-1][0] if self.entries else -1

    def end_offset_for(self, epoch: int, end_offset: int) -> tuple[int, int]:
        """Kafka's OffsetForLeaderEpoch: (the greatest epoch <= `epoch`, where it ended), (-1, -1) if unknown."""
        if epoch < 0 or not self.entries or epoch > self.entries[-1][0]:
            return -1, -1
        if epoch == self.entries[-1][0]:
            return epoch, end_offset
        above = next(index for index, entry in enumerate(self.entries) if entry[0] > epoch)
        known = self.entries[above - 1][0] if above else epoch
        return known, self.entries[above][1]

    def epoch_at(self, offset: int) -> int:
        """The epoch in which the record at `offset` was written; -1 if that is before the first one."""
        entries = self.entries
        if entries and entries[-1][1] <= offset:
            return entries[-1][0]
        found = -1
        for epoch, start in entries:
            if start > offset:
                break
            found = epoch
        return found

    def cut_before(self, log_start_offset: int) -> bool:
        """Forget what ended before the log's start; the epoch at the start begins there. True if anything changed."""
        inside = sum(1 for entry in self.entries if entry[1] <= log_start_offset)
        if not inside or (inside == 1 and self.entries[0][1] == log_start_offset):
            return False
        self.entries = [(self.entries[inside - 1][0], log_start_offset), *self.entries[inside:]]
        return True

    def to_file(self) -> bytes:
        lines = [f"{epoch} {offset}\n" for epoch, offset in self.entries]
        return f"0\n{len(lines)}\n{''.join(lines)}".encode()
