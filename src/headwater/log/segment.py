"""One segment of a partition: where its bytes stand, when it is full, what its three indexes say.

The loop owns it. Positions and index entries are decided on append; `unwritten` holds what is durable in the
journal and not yet in the file, and take_writes() turns it into operations for the segment thread. Files are
<base offset, 20 digits>.log, .index, .timeindex, .txnindex, .snapshot, all in Kafka's formats.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from headwater.core.disk import Buffer
from headwater.log import offset_index, time_index, txn_index
from headwater.log.segment_index import Index
from headwater.log.topic_config import INT32_MAX, TopicSettings

HINTS_MAX = 16  # readers that go forward each remember where their next batch begins
SUFFIXES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")


class State(NamedTuple):
    """A segment as a checkpoint states it: three times bytes and CRC-32C of an index."""

    base_offset: int
    size: int
    created_ms: int
    rolling_timestamp: int
    max_timestamp: int
    max_timestamp_offset: int
    bytes_since_index: int
    last_time_entry: int
    offsets_bytes: int
    offsets_sum: int
    times_bytes: int
    times_sum: int
    aborted_bytes: int
    aborted_sum: int


class Segment:
    __slots__ = (
        "_state",
        "aborted",
        "base_offset",
        "bytes_since_index",
        "created_ms",
        "finished",
        "folder",
        "hints",
        "last_time_entry",
        "max_timestamp",
        "max_timestamp_offset",
        "offsets",
        "on_disk",
        "rolling_timestamp",
        "sealed",
        "size",
        "snapshot",
        "taken",
        "times",
        "unwritten",
        "unwritten_bytes",
        "written",
    )

    def __init__(self, folder: str, base_offset: int, created_ms: int) -> None:
        self.folder = folder
        self.base_offset = base_offset
        self.created_ms = created_ms
        self.size = 0  # appended
        self.taken = 0  # handed to the segment thread
        self.written = 0  # in the file
        self.on_disk = False  # the files exist, or are about to
        self.sealed = False
        self.finished = False  # the operations that complete it were handed over
        self.snapshot: bytes | None = None  # producer state at the end, written when the segment is complete
        self.unwritten: list[Buffer] = []
        self.unwritten_bytes = 0
        self.rolling_timestamp = -1  # of the first batch: the age of the segment counts from it
        self.max_timestamp = -1
        self.max_timestamp_offset = base_offset
        self.bytes_since_index = 0
        self.last_time_entry = -1
        self.offsets = Index(".index")
        self.times = Index(".timeindex")
        self.aborted = Index(".txnindex")
        self.hints: dict[int, int] = {}  # offset -> position, noted by readers
        self._state = ""

    @property
    def stem(self) -> str:
        return f"{self.folder}/{self.base_offset:020d}"

    @property
    def path(self) -> str:
        return self.stem + ".log"

    def paths(self) -> list[str]:
        return [self.stem + suffix for suffix in SUFFIXES]

    # append

    def must_roll(self, settings: TopicSettings, size: int, last_offset: int, timestamp: int, now_ms: int) -> bool:
        """Kafka's LogSegment.shouldRoll."""
        mine = self.size
        if mine == 0:
            return False
        if mine > settings.segment_bytes - size or last_offset - self.base_offset > INT32_MAX:
            return True
        first = self.rolling_timestamp
        waited = timestamp - first if first >= 0 else now_ms - self.created_ms
        return waited > settings.segment_ms or self._indexes_full(settings.index_bytes_max)

    def _indexes_full(self, most: int) -> bool:
        offsets = self.offsets.size // offset_index.ENTRY_BYTES
        times = self.times.size // time_index.ENTRY_BYTES
        # Kafka keeps one place of the time index for the entry that closes it.
        return offsets >= most // offset_index.ENTRY_BYTES or times >= most // time_index.ENTRY_BYTES - 1

    def place(self, last_offset: int, size: int, timestamp: int, interval: int) -> None:
        """A batch is appended; index entries come as Kafka's LogSegment.append makes them."""
        position = self.size
        if position == 0:
            self.rolling_timestamp = timestamp
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
            self.max_timestamp_offset = last_offset
        if self.bytes_since_index > interval:
            self.offsets.data += offset_index.pack(last_offset - self.base_offset, position)
            self.add_time_entry()
            self.bytes_since_index = 0
        self.bytes_since_index += size
        self.size = position + size

    def add_time_entry(self) -> None:
        if self.max_timestamp > self.last_time_entry:
            relative = self.max_timestamp_offset - self.base_offset
            self.times.data += time_index.pack(self.max_timestamp, relative)
            self.last_time_entry = self.max_timestamp

    def seal(self, snapshot: bytes | None) -> None:
        """No further append. The last time index entry tells retention how old the segment is."""
        self.add_time_entry()
        self.sealed = True
        self.snapshot = snapshot

    # what the segment thread gets

    def add_durable(self, batch: Buffer, size: int) -> None:
        self.unwritten.append(batch)
        self.unwritten_bytes += size

    def take_writes(self, durable_offset: int, next_base: int) -> list[tuple[Any, ...]]:
        """Operations that bring the files up to what is durable, and no further; `next_base`: of the next segment."""
        operations: list[tuple[Any, ...]] = []
        if not self.on_disk:
            self.on_disk = True
            operations += [("create", self.stem + suffix) for suffix in SUFFIXES[:3]]
        if self.unwritten:
            operations.append(("write", self.path, self.taken, self.unwritten))
            self.taken += self.unwritten_bytes
            self.unwritten = []
            self.unwritten_bytes = 0
        complete = self.sealed and self.taken == self.size
        for index, end in self._index_ends(complete, durable_offset):
            found = index.take(end)
            if found is not None:
                operations.append(("write", self.stem + index.suffix, found[0], [found[1]]))
        if complete:
            self.finished = True
            operations.append(("trim", self.path, self.size))
            if self.snapshot is not None:
                operations.append(("file", f"{self.folder}/{next_base:020d}.snapshot", self.snapshot))
                self.snapshot = None
        return operations

    def _index_ends(self, complete: bool, durable_offset: int) -> list[tuple[Index, int]]:
        """How far each index goes: an entry is written only after the batch that it names."""
        offsets, times, aborted = self.offsets, self.times, self.aborted
        if complete:
            return [(offsets, offsets.size), (times, times.size), (aborted, aborted.size)]
        found = []
        if offsets.taken < offsets.size:
            start = offsets.taken - offsets.base
            found.append((offsets, offset_index.bytes_before_position(offsets.data, self.taken, start)))
        if times.taken < times.size:
            start = times.taken - times.base
            relative = durable_offset - self.base_offset
            found.append((times, time_index.bytes_before_offset(times.data, relative, start)))
        if aborted.taken < aborted.size:
            start = aborted.taken - aborted.base
            found.append((aborted, txn_index.bytes_before_offset(aborted.data, durable_offset, start)))
        return [(index, index.base + end) for index, end in found]

    def is_complete(self) -> bool:
        return self.finished and self.written == self.size

    def rest_on_disk(self) -> None:
        """A complete segment: its indexes need no memory until somebody reads it."""
        for index in (self.offsets, self.times, self.aborted):
            if index.taken == index.size and index.data:
                index.rest_on_disk()

    # checkpoint

    def state(self) -> str:
        """A JSON list of State's fields. Of a complete segment it never changes."""
        if self._state:
            return self._state
        offsets, times, aborted = self.offsets, self.times, self.aborted
        fields = State(
            self.base_offset, self.size, self.created_ms, self.rolling_timestamp, self.max_timestamp,
            self.max_timestamp_offset, self.bytes_since_index, self.last_time_entry,
            offsets.size, offsets.checksum(), times.size, times.checksum(), aborted.size, aborted.checksum(),
        )  # fmt: skip
        text = "[" + ",".join(map(str, fields)) + "]"
        if self.sealed:
            self._state = text
        return text

    def forget_state(self) -> None:
        self._state = ""

    @classmethod
    def restore(cls, folder: str, fields: list[int]) -> Segment:
        state = State(*fields)
        segment = cls(folder, state.base_offset, state.created_ms)
        segment.size = segment.taken = segment.written = state.size
        segment.on_disk = True
        segment.rolling_timestamp = state.rolling_timestamp
        segment.max_timestamp = state.max_timestamp
        segment.max_timestamp_offset = state.max_timestamp_offset
        segment.bytes_since_index = state.bytes_since_index
        segment.last_time_entry = state.last_time_entry
        segment.offsets = Index(".index", state.offsets_bytes, state.offsets_sum)
        segment.times = Index(".timeindex", state.times_bytes, state.times_sum)
        segment.aborted = Index(".txnindex", state.aborted_bytes, state.aborted_sum)
        return segment

    # lookup; `prefix` is what Index.load() gave

    def position_before(self, prefix: bytes, offset: int) -> tuple[int, int]:
        """(where the batch of `offset`, or one before it, begins; that batch's last offset, -1 if not known)."""
        relative = offset - self.base_offset
        entry = offset_index.lookup(self.offsets.data, relative) or offset_index.lookup(prefix, relative)
        return (0, -1) if entry is None else (entry[1], self.base_offset + entry[0])

    def offset_before(self, prefix: bytes, timestamp: int) -> int:
        """An offset before which no record is as young as `timestamp`."""
        data = self.times.data
        if data and time_index.unpack_from(data)[0] <= timestamp:
            return self.base_offset + time_index.lookup(data, timestamp)
        return self.base_offset + time_index.lookup(prefix, timestamp)

    def hint(self, offset: int, position: int) -> None:
        hints = self.hints
        if len(hints) >= HINTS_MAX:
            try:
                hints.pop(next(iter(hints)), None)
            except (StopIteration, RuntimeError):  # another reader's thread did it
                pass
        hints[offset] = position
