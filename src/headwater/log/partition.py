"""One partition: offsets, appends, reads. Kafka's nouns and Kafka's rules; the high watermark is the durable end.

Everything here runs on the loop, except what a ReadJob does. append() decides everything (offset, segment,
position, index entries, producer state) and writes nothing: the log puts what it decided into the journal, and
only then does the high watermark move. A batch is kept by reference from the socket to the segment file.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.core.ids import to_text
from headwater.log import journal_frame, lookup
from headwater.log.damage import Damage
from headwater.log.leader_epoch_cache import LeaderEpochCache
from headwater.log.producer_state import ProducerEntry, ProducerStates
from headwater.log.reads import (
    EMPTY,
    Corrupt,
    Now,
    ReadJob,
    Slice,
    WouldBlock,
    corrupt,
    read_blocking,
    read_slice,
)
from headwater.log.segment import Segment
from headwater.log.segment_index import Index
from headwater.log.tail import Tail
from headwater.log.txn_index import AbortedTransaction
from headwater.wire import batch as record_batch
from headwater.wire.batch import BatchHeader
from headwater.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from headwater.core.disk import Disk
    from headwater.log.log import Log
    from headwater.log.topic import Topic

_stamp_offset = Struct(">q").pack_into
_stamp_epoch = Struct(">i").pack_into
_pack_head = journal_frame.pack_head
_BATCH = journal_frame.BATCH


class Appended(NamedTuple):
    base_offset: int
    last_offset: int
    log_append_time_ms: int  # -1 unless the topic stamps LogAppendTime; of a duplicate, as Kafka: its timestamp
    log_start_offset: int
    duplicate: bool


class Hole(NamedTuple):
    """Offsets that were acknowledged and cannot be read any more."""

    first_offset: int
    next_offset: int
    damage: Damage


class Partition:
    __slots__ = (
        "_log", "active", "bases", "changed", "deleted", "disk", "epochs", "folder", "high_watermark", "holes",
        "index", "key", "line", "log_end_offset", "log_start_offset", "on_disk", "producers", "removed", "segments",
        "tail", "topic",
    )  # fmt: skip

    def __init__(self, log: Log, topic: Topic, index: int) -> None:
        self._log = log
        self.disk: Disk = log.disk
        self.topic = topic
        self.index = index
        self.key = topic.topic_id
        self.folder = f"{log.root}/log/{topic.name}-{index}"
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.high_watermark = 0
        self.epochs = LeaderEpochCache([(0, 0)])
        self.producers = ProducerStates()
        self.segments: list[Segment] = []
        self.bases: list[int] = []  # base offsets of `segments`
        self.active: Segment | None = None
        self.tail = Tail()
        self.holes: list[Hole] = []
        self.deleted = False
        self.removed = False  # deleted, and durably so
        self.on_disk = False  # the directory exists, or is about to
        self.changed = False  # since the log was opened
        self.line = ""  # what the checkpoint says of it, while nothing changes

    def __repr__(self) -> str:
        return f"Partition({self.topic.name}-{self.index}, {self.log_start_offset}..{self.log_end_offset})"

    @property
    def leader_epoch(self) -> int:
        return self.epochs.entries[-1][0]

    @property
    def last_stable_offset(self) -> int:
        """Never before the log start, as in Kafka: what an open transaction wrote there is gone."""
        return max(self.producers.last_stable_offset(self.high_watermark), self.log_start_offset)

    @property
    def damage(self) -> list[Damage]:
        return [hole.damage for hole in self.holes]

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return sum(segment.size for segment in self.segments)

    # append

    def append(self, batch: memoryview, header: BatchHeader) -> Appended:
        """A client's batch, checked by wire.batch.check(); a repetition is answered with the first one's offsets."""
        if header.producer_id >= 0:
            earlier = self.producers.check(header)
            if earlier is not None:
                start = self.log_start_offset
                return Appended(earlier.first_offset, earlier.last_offset, earlier.timestamp, start, True)
        return self._append(batch, header)

    def append_records(
        self,
        records: Sequence[tuple[bytes | None, bytes | None]],
        *,
        producer_id: int = -1,
        producer_epoch: int = -1,
        transactional: bool = False,
    ) -> Appended:
        """A coordinator's batch: with a producer id it has an epoch but, as in Kafka, no sequence is checked."""
        if producer_id >= 0:
            self.producers.check_epoch(producer_id, producer_epoch)
        built = record_batch.build(
            records,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=0 if producer_id >= 0 else -1,
            transactional=transactional,
            now_ms=self._log.clock.wall_ms(),
        )
        view = memoryview(built)
        return self._append(view, record_batch.parse_header(view))

    def append_marker(self, producer_id: int, producer_epoch: int, coordinator_epoch: int, commit: bool) -> Appended:
        """The end of a transaction in this partition."""
        self.producers.check_marker(producer_id, producer_epoch, coordinator_epoch)
        now = self._log.clock.wall_ms()
        view = memoryview(record_batch.end_marker(commit, producer_id, producer_epoch, coordinator_epoch, now))
        return self._append(view, record_batch.parse_header(view))

    def _append(self, batch: memoryview, header: BatchHeader) -> Appended:
        log = self._log
        if log.fenced is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, log.fenced)
        if self.deleted:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        settings = self.topic.settings
        append_time = -1
        if settings.log_append_time:
            append_time = log.clock.wall_ms()
            record_batch.stamp_log_append_time(batch, append_time)
            header.max_timestamp = append_time
            header.attributes |= record_batch.LOG_APPEND_TIME
        base = self.log_end_offset
        epoch = self.epochs.entries[-1][0]
        _stamp_offset(batch, 0, base)
        _stamp_epoch(batch, 12, epoch)
        size = header.batch_length + 12
        next_offset = base + header.last_offset_delta + 1
        segment = self.active
        if segment is None or segment.must_roll(
            settings, size, next_offset - 1, header.max_timestamp, log.now_ms
        ):
            segment = self.roll()
        flags = journal_frame.ROLLED if segment.size == 0 else 0
        self.place(batch, header, segment, next_offset, size, settings.index_interval_bytes)
        head = _pack_head(_BATCH, flags, size, self.key, self.index, base, next_offset)
        log.enqueue_batch((head, batch, self, segment, next_offset, size), size)
        return Appended(base, next_offset - 1, append_time, self.log_start_offset, False)

    def place(  # every append goes through here, and every batch of a replay
        self, batch: memoryview, header: BatchHeader, segment: Segment, next_offset: int, size: int, interval: int
    ) -> None:
        """Everything in memory that an append changes; recovery replays batches through it."""
        base = self.log_end_offset
        if header.producer_id >= 0:
            if header.attributes & record_batch.CONTROL:
                self._record_marker(batch, header, segment)
            else:
                self.producers.record(header, base)
        segment.place(next_offset - 1, size, header.max_timestamp, interval)
        tail = self.tail
        tail.offsets.append(base)
        tail.views.append(batch)
        self.log_end_offset = next_offset
        self.line = ""

    def _record_marker(self, batch: memoryview, header: BatchHeader, segment: Segment) -> None:
        marker = record_batch.marker_type(batch)
        record = next(record_batch.records(batch))
        coordinator_epoch = int.from_bytes((record.value or b"")[2:6], "big", signed=True)
        entry = self.producers.record_marker(
            header.producer_id,
            header.producer_epoch,
            coordinator_epoch,
            self.log_end_offset,
            header.max_timestamp,
            marker == record_batch.COMMIT,
        )
        if entry:
            segment.aborted.data += entry

    def roll(self) -> Segment:
        """A new active segment at the log's end."""
        base = self.log_end_offset
        if self.active is not None:
            if self.active.size == 0:
                return self.active
            self.active.seal(self.producers.snapshot())
        segment = Segment(self.folder, base, self._log.clock.wall_ms())
        self.add_segment(segment)
        return segment

    def add_segment(self, segment: Segment) -> None:
        self.segments.append(segment)
        self.bases.append(segment.base_offset)
        self.active = segment

    # read

    def read(self, offset: int, max_bytes: int, limit_offset: int) -> Slice | ReadJob[Slice]:
        """Whole batches from the one that holds `offset`, one at least, none at or above `limit_offset`."""
        if offset < self.log_start_offset or offset > self.log_end_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        limit = min(limit_offset, self.high_watermark)
        if self.holes:
            limit = min(limit, self._before_hole(offset))
        if offset >= limit:
            return EMPTY
        tail = self.tail
        start = tail.start()
        if 0 <= start <= offset:
            return Slice(*tail.read(offset, max_bytes, limit))
        segment = self.segment_of(offset)
        try:
            now = Now(self.disk, self._log.read_handle(segment.path))
            return read_slice(self, segment, now, offset, max_bytes, limit)
        except WouldBlock:
            pass
        except Corrupt as error:
            raise corrupt(self, segment, error) from error
        except OSError:
            pass  # the job meets it again and names it

        def run() -> Slice:
            return read_blocking(
                self, segment, lambda source: read_slice(self, segment, source, offset, max_bytes, limit)
            )

        return ReadJob(run)

    def _before_hole(self, offset: int) -> int:
        """Where the next hole begins; KafkaError if `offset` is in one."""
        for hole in self.holes:
            if hole.first_offset <= offset < hole.next_offset:
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(hole.damage))
            if hole.first_offset > offset:
                return hole.first_offset
        return self.log_end_offset

    def segment_of(self, offset: int) -> Segment:
        return self.segments[max(bisect_right(self.bases, offset) - 1, 0)]

    def batches(self, from_offset: int | None = None) -> Iterator[memoryview]:
        """Every durable batch, waiting for the disk where needed (starts, tools). KafkaError at a damaged one."""
        start = self.log_start_offset if from_offset is None else max(from_offset, self.log_start_offset)
        return lookup.Scan(self, start).batches()

    def offset_by_time(
        self, timestamp: int, limit_offset: int
    ) -> lookup.TimeAnswer | ReadJob[lookup.TimeAnswer | None] | None:
        """The first record that is not older, None if there is none below `limit_offset`."""
        return lookup.offset_by_time(self, timestamp, min(limit_offset, self.high_watermark))

    def max_timestamp(self, limit_offset: int) -> lookup.TimeAnswer | ReadJob[lookup.TimeAnswer | None] | None:
        """The (first) record with the greatest timestamp."""
        return lookup.max_timestamp(self, min(limit_offset, self.high_watermark))

    def aborted_transactions(self, from_offset: int, to_offset: int) -> list[AbortedTransaction]:
        """Those with records in the range, sorted by first offset: what a read_committed consumer must skip."""
        return lookup.aborted_transactions(self, from_offset, to_offset)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Kafka's OffsetForLeaderEpoch; nothing above the high watermark is told."""
        return self.epochs.end_offset_for(epoch, self.high_watermark)

    def load_index(self, segment: Segment, index: Index) -> bytes:
        """The part of an index that an earlier run wrote; a damaged one is rebuilt and named."""
        content = index.prefix
        if content is None:
            content = index.load(self.disk, segment.stem + index.suffix)
            if content is None:
                content = lookup.rebuild(self, segment, index)
            self._log.note_loaded(index)
        return content

    # files

    def take_writes(self) -> tuple[list[tuple[Any, ...]], list[Segment], int]:
        """(operations for what is durable, the segments they concern, batches in them)."""
        operations: list[tuple[Any, ...]] = []
        self.changed = True
        if not self.on_disk:
            self.on_disk = True
            identity = to_text(self.topic.topic_id)
            operations.append(("dir", self.folder, identity))
            operations += self.small_files()
        touched: list[Segment] = []
        batches = 0
        place = len(self.segments)
        while place and not self.segments[place - 1].is_complete():
            place -= 1
        for number in range(place, len(self.segments)):
            segment = self.segments[number]
            batches += len(segment.unwritten)
            ends = self.bases[number + 1] if number + 1 < len(self.bases) else self.log_end_offset
            operations += segment.take_writes(self.high_watermark, ends)
            touched.append(segment)
        return operations, touched, batches

    def small_files(self) -> list[tuple[Any, ...]]:
        """What Kafka wants to find in the directory beside the segments."""
        metadata = f"version: 0\ntopic_id: {to_text(self.topic.topic_id)}\n".encode()
        return [("file", f"{self.folder}/partition.metadata", metadata), self.epochs_file()]

    def epochs_file(self) -> tuple[Any, ...]:
        return "file", f"{self.folder}/leader-epoch-checkpoint", self.epochs.to_file()

    def drop_segments(self, start: int) -> list[Segment]:
        """Take those out that lie before `start`, a durable log start; the active one stays."""
        gone = 0
        while gone + 1 < len(self.segments) and self.bases[gone + 1] <= start:
            gone += 1
        dropped = self.segments[:gone]
        del self.segments[:gone], self.bases[:gone]
        self.holes = [hole for hole in self.holes if hole.next_offset > start]
        return dropped

    def state(self) -> str:
        """The line of the checkpoint: docs/formats/data-directory.md."""
        if not self.line:
            epochs = ",".join([f"[{epoch},{start}]" for epoch, start in self.epochs.entries])
            segments = ",".join([segment.state() for segment in self.segments if segment.size or segment.base_offset])
            producers = json.dumps(self.producers.to_json(), separators=(",", ":")) if len(self.producers) else "[]"
            holes = json.dumps([[h.first_offset, h.next_offset, list(h.damage)] for h in self.holes])
            offsets = f"{self.log_start_offset},{self.log_end_offset}"
            self.line = f"[{self.index},{offsets},[{epochs}],[{segments}],{producers},{holes}]"
        return self.line

    def restore(self, fields: list[Any]) -> None:
        """What state() said."""
        _, self.log_start_offset, self.log_end_offset, epochs, segments, producers, holes = fields
        self.high_watermark = self.log_end_offset
        self.on_disk = bool(segments)
        self.epochs = LeaderEpochCache([(epoch, start) for epoch, start in epochs])
        for state in segments:
            self.add_segment(Segment.restore(self.folder, state))
        for segment in self.segments[:-1]:
            segment.sealed = segment.finished = True
        self.producers = ProducerStates([ProducerEntry.from_json(entry) for entry in producers])
        self.holes = [Hole(first, after, Damage(*damage)) for first, after, damage in holes]

    # change

    def delete_records(self, before_offset: int) -> int:
        """Move the log start; -1 means the high watermark. The new log start. KafkaError OFFSET_OUT_OF_RANGE."""
        target = self.high_watermark if before_offset == -1 else before_offset
        if target < 0 or target > self.high_watermark:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {target} is not below {self.high_watermark}")
        if target > self.log_start_offset:
            self._log.move_log_start(self, target)
        return self.log_start_offset

    def note_damage(self, damage: Damage) -> None:
        self._log.note_damage(damage)
