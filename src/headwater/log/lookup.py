"""Looking things up by time, by transaction, from start to end; and rebuilding an index that is damaged.

Semantics of Kafka's ListOffsets: by timestamp, the first record that is not older; max timestamp, the first
record that has it. The loop picks the segment; if records must be read from files, that is a ReadJob.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from headwater.log import offset_index, time_index, txn_index
from headwater.log.damage import Damage
from headwater.log.producer_state import ProducerStates
from headwater.log.reads import (
    READ_BYTES_MAX,
    Batches,
    Blocking,
    Corrupt,
    ReadJob,
    corrupt,
    read_blocking,
    unreadable,
)
from headwater.log.txn_index import AbortedTransaction
from headwater.wire import batch as record_batch
from headwater.wire.errors import KafkaError

if TYPE_CHECKING:
    from headwater.log.partition import Partition
    from headwater.log.segment import Segment
    from headwater.log.segment_index import Index


class TimeAnswer(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


class Scan:
    """The batches from an offset on, as they are now: made on the loop, run anywhere."""

    def __init__(self, partition: Partition, from_offset: int) -> None:
        self._partition = partition
        self._from = from_offset
        self._limit = partition.high_watermark
        tail = partition.tail
        start = tail.start()
        self._tail = tail.from_offset(0) if start >= 0 else []
        self._files_end = start if start >= 0 else self._limit  # from here on memory has it
        first = partition.segment_of(from_offset).base_offset if partition.segments else 0
        self._segments = [s for s in partition.segments if first <= s.base_offset < self._files_end]

    @property
    def in_memory(self) -> bool:
        return self._from >= self._files_end

    def batches(self) -> Iterator[memoryview]:
        for segment in self._segments:
            yield from self._from_file(segment)
        for view in self._tail:
            header = record_batch.parse_header(view)
            if header.base_offset >= self._limit:
                return
            if header.next_offset > self._from:
                yield view

    def _from_file(self, segment: Segment) -> Iterator[memoryview]:
        partition = self._partition
        try:
            with Blocking(partition, segment) as source:
                start = max(self._from, segment.base_offset)
                position, last_offset = segment.position_before(source.index(segment.offsets), start)
                batches = Batches(partition, segment, source, position)
                batches.fill(READ_BYTES_MAX)
                batches.start_at(last_offset, segment.base_offset)
                batches.skip_to(start)
                for view in batches:
                    if batches.expected > self._files_end:
                        return
                    yield view
        except Corrupt as error:
            raise corrupt(partition, segment, error) from error
        except OSError as error:
            raise unreadable(partition, segment, error) from error


Find = Callable[[], TimeAnswer | None]


def _now_or_later(scan: Scan, find: Find) -> TimeAnswer | ReadJob[TimeAnswer | None] | None:
    return find() if scan.in_memory else ReadJob(find)


def offset_by_time(
    partition: Partition, timestamp: int, limit_offset: int
) -> TimeAnswer | ReadJob[TimeAnswer | None] | None:
    start = partition.log_start_offset
    chosen = None
    for place, segment in enumerate(partition.segments):
        ends = partition.bases[place + 1] if place + 1 < len(partition.bases) else partition.log_end_offset
        if ends > start and segment.max_timestamp >= timestamp:
            chosen = segment
            break
    if chosen is None:
        return None
    segment = chosen
    scan = Scan(partition, max(start, segment.base_offset))

    def find() -> TimeAnswer | None:
        nonlocal scan
        if not scan.in_memory:
            prefix = partition.load_index(segment, segment.times)
            scan._from = max(scan._from, segment.offset_before(prefix, timestamp))
        for view in scan.batches():
            answer = _first_in(view, timestamp, start)
            if answer is not None:
                return answer if answer.offset < limit_offset else None
        return None

    return _now_or_later(scan, find)


def _first_in(view: memoryview, timestamp: int, start: int) -> TimeAnswer | None:
    header = record_batch.parse_header(view)
    if header.max_timestamp < timestamp:
        return None
    found = record_batch.first_at_or_after(view, timestamp)
    if found is not None and found[1] < start:  # the log start is inside this batch
        younger = (r for r in record_batch.records(view) if r.offset >= start and r.timestamp >= timestamp)
        record = next(younger, None)
        found = None if record is None else (record.timestamp, record.offset)
    return None if found is None else TimeAnswer(*found, header.partition_leader_epoch)


def max_timestamp(partition: Partition, limit_offset: int) -> TimeAnswer | ReadJob[TimeAnswer | None] | None:
    best = None
    for segment in partition.segments:
        if best is None or segment.max_timestamp > best.max_timestamp:
            best = segment
    if best is None or best.max_timestamp < 0:
        return None
    scan = Scan(partition, max(best.max_timestamp_offset, partition.log_start_offset))

    def find() -> TimeAnswer | None:
        for view in scan.batches():
            found = record_batch.max_timestamp_record(view)
            if found is None or found[1] >= limit_offset:
                return None
            return TimeAnswer(*found, record_batch.parse_header(view).partition_leader_epoch)
        return None

    return _now_or_later(scan, find)


def aborted_transactions(partition: Partition, from_offset: int, to_offset: int) -> list[AbortedTransaction]:
    """Reads transaction indexes of older segments when they are first needed: a few hundred bytes each, rarely any."""
    found: list[AbortedTransaction] = []
    if not partition.segments:
        return found
    first = partition.segments.index(partition.segment_of(from_offset))
    for segment in partition.segments[first:]:
        index = segment.aborted
        if not index.size:
            continue
        prefix = partition.load_index(segment, index) if index.base else b""
        for content in (prefix, index.data):
            for entry in txn_index.entries(content):
                if entry.last_offset >= from_offset and entry.first_offset < to_offset:
                    found.append(AbortedTransaction(entry.producer_id, entry.first_offset))
                if entry.last_stable_offset >= to_offset:
                    return sorted(found, key=_first_offset)
    return sorted(found, key=_first_offset)


def _first_offset(transaction: AbortedTransaction) -> int:
    return transaction.first_offset


def rebuild(partition: Partition, segment: Segment, index: Index) -> bytes:
    """The entries of a damaged index file, made again from the segment. The damaged file is put aside.

    A transaction index is made from what the segment itself holds: a transaction that began before it is
    found by its marker all the same, from the segments before.
    """
    reason = "the index is damaged or missing; it was made again from the segment"
    place = Damage(segment.stem + index.suffix, 0, reason, partition.topic.name, partition.index)
    partition.note_damage(place)
    content = _entries_again(partition, segment, index)
    index.prefix = content
    partition._log.rewrite_index(partition, segment, index, content)
    return content


def _entries_again(partition: Partition, segment: Segment, index: Index) -> bytes:
    if index is segment.aborted:
        return _aborted_again(partition, segment)[: index.base]
    interval = partition.topic.settings.index_interval_bytes
    offsets, times = bytearray(), bytearray()

    def walk(source: Blocking) -> None:
        since, position, greatest, at, noted = 0, 0, -1, segment.base_offset, -1
        batches = Batches(partition, segment, source, 0)
        batches.fill(READ_BYTES_MAX)
        for view in batches:
            header = record_batch.parse_header(view)
            if header.max_timestamp > greatest:
                greatest, at = header.max_timestamp, header.last_offset
            if since > interval:
                offsets.extend(offset_index.pack(header.last_offset - segment.base_offset, position))
                if greatest > noted:
                    times.extend(time_index.pack(greatest, at - segment.base_offset))
                    noted = greatest
                since = 0
            since += header.size
            position += header.size
        if segment.sealed and greatest > noted:
            times.extend(time_index.pack(greatest, at - segment.base_offset))

    read_blocking(partition, segment, walk)
    content = bytes(offsets if index is segment.offsets else times)
    return content[: index.base] if not segment.sealed else content


def _aborted_again(partition: Partition, segment: Segment) -> bytes:
    """Replays producer ids and markers from the log's start: rare, and the only way that needs no other file."""
    states = ProducerStates()
    content = bytearray()
    end = segment.base_offset
    place = partition.segments.index(segment)
    stop = partition.bases[place + 1] if place + 1 < len(partition.bases) else partition.high_watermark
    try:
        for view in partition.batches():
            header = record_batch.parse_header(view)
            if header.base_offset >= stop:
                break
            if header.producer_id < 0:
                continue
            if not header.is_control:
                states.record(header, header.base_offset)
                continue
            commit = record_batch.marker_type(view) == record_batch.COMMIT
            made = states.record_marker(
                header.producer_id, header.producer_epoch, 0, header.base_offset, header.max_timestamp, commit
            )
            if header.base_offset >= end:
                content += made
    except KafkaError:
        pass  # the log itself is damaged before this segment: what could be found is better than nothing
    return bytes(content)
