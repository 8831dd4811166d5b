"""What is done about damage found at a start: name it, keep the bytes, go on with everything else.

Batches reach a segment only after their frame is durable, so whatever valid and contiguous batches a segment
holds beyond the checkpoint had been acknowledged: they fill what a damaged frame of the journal leaves open.
Where they do not reach, the partition has a hole: its offsets are never given to anything else, and reading
them is an error, not an end. Nothing is deleted; what cannot stay where it is goes to quarantine/.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.core import ids
from headwater.core.disk import Disk, read_file
from headwater.log import journal_frame
from headwater.log.damage import Damage
from headwater.log.journal_frame import ALIGNMENT, Entry
from headwater.log.journal_scan import Found, Scan
from headwater.log.partition import Hole, Partition
from headwater.log.segment import Segment
from headwater.log.segment_writer import belongs_to, quarantine
from headwater.log.topic import Topic
from headwater.log.topic_config import parse
from headwater.wire import batch as record_batch

if TYPE_CHECKING:
    from headwater.log.log import Log


class Repair:
    def __init__(self, log: Log, found: Scan | None) -> None:
        self._log = log
        self._disk: Disk = log.disk
        self._found = found
        self._kept: set[tuple[str, int]] = set()

    # the journal

    def frame_missing(self, number: int) -> None:
        assert self._found is not None
        path, position, reason = self._found.missing[number]
        self._log.note_damage(Damage(path or f"{self._log.root}/journal", position, reason))
        if path:
            self._keep_bytes(f"frame-{number}", path, position, ALIGNMENT)

    def unknown_topic(self, entry: Entry, path: str, position: int) -> None:
        """An entry of a topic whose creation was lost: the directory may still tell its name."""
        if entry.kind != journal_frame.BATCH or self._adopt(entry):
            return
        text = ids.to_text(entry.topic_id)
        reason = f"records of topic {text}, partition {entry.partition}, whose creation was lost; kept in quarantine"
        self._log.note_damage(Damage(path, position, reason, "", -1, entry.offset, entry.next_offset))
        self._write_quarantine(f"batch-{text}-{entry.partition}-{entry.offset}", bytes(entry.body))

    def _adopt(self, entry: Entry) -> bool:
        text = ids.to_text(entry.topic_id)
        folder = f"{self._log.root}/log"
        for name in self._disk.list(folder):
            path = f"{folder}/{name}"
            if belongs_to(self._disk, path) == text:
                topic_name = name.rsplit("-", 1)[0]
                topic = self._log.topic_by_id(entry.topic_id) or self._lost_topic(topic_name, entry.topic_id, path)
                for index in range(len(topic.partitions), entry.partition + 1):
                    topic.partitions.append(Partition(self._log, topic, index))
                return False
        return False

    def _lost_topic(self, name: str, topic_id: bytes, path: str) -> Topic:
        topic = Topic(name, topic_id, {}, parse({}, self._log.settings.topic_defaults))
        self._log.register(topic)
        self._log.note_damage(Damage(path, 0, "the topic's creation was lost; its settings are the defaults now", name))
        return topic

    def fill_gap(self, partition: Partition, next_offset: int) -> None:
        """The journal goes on at `next_offset`: what comes before is in the segment, or lost."""
        self._take_from_segment(partition, next_offset)
        if partition.log_end_offset < next_offset:
            path = partition.active.path if partition.active else partition.folder
            position = partition.active.size if partition.active else 0
            self._open_hole(partition, next_offset, path, position, "the journal and the segment lost these records")

    def take_what_segments_have(self) -> None:
        """The lost frames may have been the last ones of a partition; its segment knows."""
        for topic in self._log.topics.values():
            for partition in topic.partitions:
                self._take_from_segment(partition, None)

    def _take_from_segment(self, partition: Partition, limit: int | None) -> None:
        """Valid batches that continue the log, in the active segment's file or in the next one."""
        from headwater.log.recovery import replay_batch

        while limit is None or partition.log_end_offset < limit:
            active = partition.active
            view, rolled = None, False
            if active is not None:
                view = self._batch_at(partition, active.path, active.size)
            if view is None:
                path = f"{partition.folder}/{partition.log_end_offset:020d}.log"
                if active is None or (active.size and path != active.path):
                    view, rolled = self._batch_at(partition, path, 0), True
            if view is None:
                return
            replay_batch(self._log, partition, view, rolled)

    def _batch_at(self, partition: Partition, path: str, position: int) -> memoryview | None:
        """The batch with the partition's next offset, if it stands there whole."""
        size = self._disk.file_size(path)
        if size is None or size - position < record_batch.HEADER_BYTES:
            return None
        handle = self._disk.open(path)
        try:
            header = record_batch.parse_header(self._disk.read(handle, position, record_batch.HEADER_BYTES))
            if header.base_offset != partition.log_end_offset or header.magic != record_batch.MAGIC:
                return None
            if not record_batch.HEADER_BYTES <= header.size <= size - position or header.last_offset_delta < 0:
                return None
            view = memoryview(self._disk.read(handle, position, header.size))
        finally:
            self._disk.close(handle)
        if header.partition_leader_epoch != partition.leader_epoch:
            return None
        return view if record_batch.is_intact(view, header) else None

    def cut_torn(self) -> int:
        """Bytes of the last, torn frame, which go to quarantine."""
        assert self._found is not None
        torn = self._found.torn
        if torn is None:
            return 0
        size = torn.header.span if isinstance(torn, Found) else ALIGNMENT
        content = self._found.contents[torn.path][torn.position : torn.position + size]
        return self._keep_bytes("torn", torn.path, torn.position, len(content))

    def _keep_bytes(self, label: str, path: str, position: int, size: int) -> int:
        assert self._found is not None
        content = self._found.contents.get(path)
        kept = bytes(content[position : position + size]) if content is not None else b""
        if kept.strip(b"\0"):
            name = path.rsplit("/", 1)[1].split(".")[0]
            self._write_quarantine(f"journal-{name}-{position}.{label}", kept)
        return len(kept)

    def _write_quarantine(self, name: str, content: bytes) -> None:
        folder = f"{self._log.root}/quarantine"
        self._disk.make_dir(folder)
        self._disk.sync_dir(self._log.root)
        handle = self._disk.open(f"{folder}/{name}", create=True, write=True)
        try:
            self._disk.truncate(handle, 0)
            self._disk.write(handle, 0, [content])
            self._disk.sync(handle)
        finally:
            self._disk.close(handle)
        self._disk.sync_dir(folder)

    # the segments

    def segment_short(self, partition: Partition, segment: Segment, size: int | None) -> None:
        """A file that ends before its time. What it still holds stays readable; the rest is a hole."""
        place = partition.segments.index(segment)
        ends = partition.bases[place + 1] if place + 1 < len(partition.bases) else partition.log_end_offset
        readable, position = self._walk(segment, size or 0)
        reason = "the file is missing" if size is None else f"the file has {size} of {segment.written} bytes"
        damage = Damage(segment.path, position, reason, partition.topic.name, partition.index, readable, ends)
        self._log.note_damage(damage)
        partition.holes.append(Hole(readable, ends, damage))
        partition.line = ""
        segment.size = segment.taken = segment.written = position
        segment.offsets.cut_at_position(position)
        segment.forget_state()
        if segment is partition.active:
            self._new_segment(partition)

    def _walk(self, segment: Segment, size: int) -> tuple[int, int]:
        """(offset after the last whole batch, where it ends)."""
        offset, position = segment.base_offset, 0
        if not size:
            return offset, position
        content = memoryview(read_file(self._disk, segment.path))
        for at, header in record_batch.headers(content):
            if header.base_offset != offset or not record_batch.is_intact(content[at : at + header.size], header):
                break
            offset, position = header.next_offset, at + header.size
        return offset, position

    def _open_hole(self, partition: Partition, next_offset: int, path: str, position: int, reason: str) -> None:
        first = partition.log_end_offset
        damage = Damage(path, position, reason, partition.topic.name, partition.index, first, next_offset)
        self._log.note_damage(damage)
        partition.holes.append(Hole(first, next_offset, damage))
        partition.log_end_offset = partition.high_watermark = next_offset
        self._new_segment(partition)

    def _new_segment(self, partition: Partition) -> None:
        """The partition goes on behind the hole, in a file of its own."""
        if partition.active is not None:
            partition.active.seal(None)
        segment = Segment(partition.folder, partition.log_end_offset, self._log.clock.wall_ms())
        if self._disk.file_size(segment.path) is not None and segment.path not in [s.path for s in partition.segments]:
            quarantine(self._disk, segment.path, f"{self._log.root}/quarantine")
        if partition.active is not None and partition.active.base_offset == segment.base_offset:
            partition.segments.pop()
            partition.bases.pop()
        partition.add_segment(segment)
        partition.line = ""
