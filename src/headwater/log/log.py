"""The log as a whole: topics and facts, one queue of changes, the stages that make them durable, the fence.

A change is in memory at once. It is durable when the frame with it is synced; only then do high watermarks
move and callbacks run. After the first error of a write or sync nothing is ever acknowledged again: `fenced`
says why, and only a restart, which believes the disk alone, ends it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from headwater.core import ids
from headwater.log import journal_frame, topic_config
from headwater.log.damage import Damage, RecoveryReport
from headwater.log.journal import Journal
from headwater.log.partition import Partition
from headwater.log.retention import Retention
from headwater.log.segment_writer import FILE_NAME_MAX, SegmentWriter
from headwater.log.settings import LogSettings
from headwater.log.topic import Topic
from headwater.log.window import Queue, SegmentWork, Window
from headwater.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from headwater.core.clock import Clock
    from headwater.core.disk import Disk, Handle
    from headwater.log.segment import Segment
    from headwater.log.segment_index import Index

_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_NAME_MAX = 249  # Kafka's: with "-<partition>" and a suffix it is still a file name
_EVICTED_AT_ONCE = 8  # batches: memory stays full, and a loop does not run for each batch
_HEAD_BYTES = journal_frame.HEAD_BYTES
# Times window_bytes: a checkpoint waits for a queue no longer than this, unless it has waited for as much journal
# again; under a load that never lets the queue get short the journal would grow without end.
_CHECKPOINT_WINDOW_MAX = 8


class Log:
    def __init__(self, disk: Disk, root: str, clock: Clock, settings: LogSettings, cluster_id: str) -> None:
        """Of an opened directory: use Log.open()."""
        self.disk = disk
        self.root = root
        self.clock = clock
        self.settings = settings
        self.cluster_id = cluster_id
        self.recovery = RecoveryReport()
        self.damage: list[Damage] = self.recovery.damage  # grows when reads find more
        self.topics: dict[str, Topic] = {}
        self.facts: dict[str, Any] = {}
        self.fenced: str | None = None
        self.on_fence: Callable[[str], None] | None = None
        self.on_advance: Callable[[Partition], None] | None = None
        self.now_ms = clock.wall_ms()
        self.journal: Journal
        self.journal_key = b""
        self.unwritten_bytes = 0  # appended, not yet in segments: what the server holds its sockets by
        self.retention = Retention(self)
        self.replaying = False
        self._by_id: dict[bytes, Topic] = {}
        self._queue = Queue()
        self._window: Window | None = None
        self._work: SegmentWork | None = None
        self._durable_changes = 0
        self._durable_sequence = 0
        self._callbacks: deque[tuple[int, Callable[[], None]]] = deque()
        self._dirty: dict[Partition, None] = {}
        self._operations: list[tuple[Any, ...]] = []  # for the next segment work, before its writes
        self._checkpoint: tuple[dict[str, Any], list[str]] | None = None
        self._checkpoint_at = 0  # journal bytes at the last one
        self._checkpoint_wanted = False
        self._tail_bytes = 0
        self._tail_batches = 0
        self._tail_works: deque[tuple[Partition, int]] = deque()  # batches that may leave memory, oldest first
        self._handles: dict[str, Handle] = {}  # for reading, in order of last use
        self._loaded: deque[Index] = deque()
        self._bad_indexes: deque[tuple[Partition, Segment, Index, bytes]] = deque()
        self.writer = SegmentWriter(disk, root, settings.handles_max)

    @classmethod
    def open(cls, disk: Disk, root: str, clock: Clock, settings: LogSettings | None = None) -> Log:
        """Lock the directory and recover what was durable. HeadwaterError says what is wrong and what to type."""
        from headwater.log.recovery import open_log

        return open_log(cls, disk, root, clock, settings or LogSettings())

    # changes

    def topic_by_id(self, topic_id: bytes) -> Topic | None:
        return self._by_id.get(topic_id)

    def create_topic(
        self, name: str, partitions: int, config: dict[str, str], topic_id: bytes | None = None
    ) -> Topic:
        self._check_open()
        if name in self.topics:
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        if not 0 < len(name) <= _NAME_MAX or name in (".", "..") or not _NAME_CHARACTERS.issuperset(name):
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"not a topic name: {name[:60]!r}")
        if partitions < 1:
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"{partitions} partitions")
        settings = topic_config.parse(config, self.settings.topic_defaults)
        topic = Topic(name, topic_id or ids.random_id(), dict(config), settings)
        topic.partitions = [Partition(self, topic, index) for index in range(partitions)]
        self.register(topic)
        self._topic_changed(topic)
        return topic

    def register(self, topic: Topic) -> None:
        """[recovery too] The topic is one of ours."""
        self.topics[topic.name] = topic
        self._by_id[topic.topic_id] = topic

    def unregister(self, topic: Topic) -> None:
        del self.topics[topic.name], self._by_id[topic.topic_id]
        topic.deleted = True
        for partition in topic.partitions:
            partition.deleted = True

    def delete_topic(self, topic: Topic) -> None:
        self._check_open()
        self.unregister(topic)
        head = journal_frame.pack_head(journal_frame.TOPIC_DELETED, 0, 0, topic.topic_id, -1, -1, -1)

        def durable() -> None:
            for partition in topic.partitions:
                self.remove_partition(partition)
                if self.on_advance is not None:
                    self.on_advance(partition)

        self._queue.add((head, b"", None, durable), _HEAD_BYTES)

    def remove_partition(self, partition: Partition) -> None:
        """[recovery too] Its directory gets the name by which Kafka marks what is being deleted, then goes.

        A replay meets directories that the run before had made, or moved already: both operations look first.
        """
        partition.removed = True
        self._dirty.pop(partition, None)
        for segment in partition.segments:
            self._forget_unwritten(partition, segment)
        if partition.on_disk or self.replaying:
            away = f"{self.root}/log/{_deleted_name(partition)}"
            self._operations += [("move_dir", partition.folder, away), ("remove_dir", away)]

    def add_partitions(self, topic: Topic, count: int) -> None:
        """So that there are `count` of them."""
        self._check_open()
        have = len(topic.partitions)
        if count <= have:
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"the topic has {have} partitions already")
        topic.partitions += [Partition(self, topic, index) for index in range(have, count)]
        self._topic_changed(topic)

    def set_config(self, topic: Topic, config: dict[str, str]) -> None:
        """All overrides of the topic."""
        self._check_open()
        topic.settings = topic_config.parse(config, self.settings.topic_defaults)
        topic.config = dict(config)
        self._topic_changed(topic)

    def _topic_changed(self, topic: Topic) -> None:
        content = {"topic": topic.name, "config": topic.config, "partitions": len(topic.partitions)}
        head, body = journal_frame.json_entry(journal_frame.TOPIC, topic.topic_id, content)
        self._queue.add((head, body, None, _nothing), _HEAD_BYTES + len(body))

    def set_fact(self, key: str, value: Any) -> None:
        """A small JSON value of the broker's; None removes it."""
        self._check_open()
        head, body = journal_frame.fact_entry(key, value)
        self.apply_fact(key, value)
        self._queue.add((head, body, None, _nothing), _HEAD_BYTES + len(body))

    def apply_fact(self, key: str, value: Any) -> None:
        if value is None:
            self.facts.pop(key, None)
        else:
            self.facts[key] = value

    def move_log_start(self, partition: Partition, offset: int, *, rolled: bool = False) -> None:
        """What lies before goes: from sight now, from the disk when that is durable."""
        self._check_open()
        partition.log_start_offset = offset
        partition.epochs.cut_before(offset)
        partition.line = ""
        flags = journal_frame.ROLLED if rolled else 0
        topic_id = partition.topic.topic_id
        head = journal_frame.pack_head(journal_frame.LOG_START, flags, 0, topic_id, partition.index, offset, -1)

        def durable() -> None:
            if not partition.deleted:
                self.drop_segments(partition, offset)
                if self.on_advance is not None:
                    self.on_advance(partition)

        self._queue.add((head, b"", None, durable), _HEAD_BYTES)

    def drop_segments(self, partition: Partition, start: int) -> None:
        """[recovery too] `start` is durable: the log start in memory may be further on and come to nothing."""
        for segment in partition.drop_segments(start):
            self._forget_unwritten(partition, segment)
            self._operations += [("unlink", path) for path in segment.paths()]
        partition.line = ""
        if partition.on_disk:
            self._operations.append(partition.epochs_file())
        self._dirty[partition] = None

    def _forget_unwritten(self, partition: Partition, segment: Segment) -> None:
        """Of a segment that is gone: what was not written never will be."""
        self.forget_handle(segment.path)
        self.unwritten_bytes -= segment.unwritten_bytes
        self._tail_works.append((partition, len(segment.unwritten)))
        segment.unwritten = []
        segment.unwritten_bytes = 0

    @contextmanager
    def together(self) -> Iterator[None]:
        """Everything changed inside is one unit: in one frame, recovered all or not at all."""
        outermost = self._queue.begin_group()
        try:
            yield
        finally:
            if outermost:
                self._queue.end_group()

    def when_durable(self, callback: Callable[[], None]) -> None:
        """`callback` runs once everything changed so far is durable: at once, if it is. After a fence, never."""
        if self._durable_changes == self._queue.changes:
            callback()
        else:
            self._callbacks.append((self._queue.changes, callback))

    def enqueue_batch(self, entry: tuple[Any, ...], size: int) -> None:
        """[Partition] An appended batch."""
        self._queue.add(entry, size + _HEAD_BYTES)
        self.unwritten_bytes += size
        self._tail_bytes += size
        self._tail_batches += 1

    def _check_open(self) -> None:
        if self.fenced is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self.fenced)

    # the journal's stages

    @property
    def has_pending(self) -> bool:
        """Whether anything waits to become durable."""
        return self._window is not None or len(self._queue) > 0

    def take_window(self) -> Window | None:
        """[loop] The oldest units; None if there are none, or a window is in flight."""
        if self._window is not None or self.fenced is not None or not len(self._queue):
            return None
        bytes_max = self.settings.window_bytes
        wanted = self._checkpoint_wanted and self._checkpoint is None
        overdue = self.journal.bytes_written - self._checkpoint_at >= 2 * self.settings.checkpoint_bytes
        if wanted and (overdue or self._queue.bytes <= bytes_max * _CHECKPOINT_WINDOW_MAX):
            bytes_max = self._queue.bytes  # a checkpoint is taken when nothing is left behind this window
        entries, length = self._queue.take(bytes_max)
        window = Window(entries, length, self.journal.reserve(length))
        if wanted and not len(self._queue):
            window.lines = self.checkpoint_lines()
            window.facts = dict(self.facts)
            self._checkpoint_wanted = False
            self._checkpoint_at = self.journal.bytes_written
        self._window = window
        return window

    def write_window(self, window: Window) -> None:
        """[journal thread] One write, one sync."""
        self.journal.write(window.placement, len(window.entries), window.parts, window.length)

    def window_durable(self, window: Window) -> None:
        """[loop] High watermarks move; then callbacks run and waiting readers wake, whatever one of them raises."""
        self._window = None
        self._durable_sequence = window.placement.sequence
        self._durable_changes += len(window.entries)
        touched: dict[Partition, None] = {}
        for entry in window.entries:
            partition = entry[2]
            if partition is None:
                entry[3]()
            else:
                partition.high_watermark = entry[4]
                segment = entry[3]
                segment.unwritten.append(entry[1])
                segment.unwritten_bytes += entry[5]
                touched[partition] = None
        for partition in touched:
            if not partition.removed:
                self._dirty[partition] = None
        if window.lines is not None:
            self._checkpoint = (self._checkpoint_head(window.facts), window.lines)
        elif self.journal.bytes_written - self._checkpoint_at >= self.settings.checkpoint_bytes:
            self._checkpoint_wanted = True
        self._tell(touched)

    def _tell(self, touched: Iterable[Partition]) -> None:
        """Everybody is told, also when one raises; the first fault is raised at the end."""
        fault: Exception | None = None
        waiting = self._callbacks
        while waiting and waiting[0][0] <= self._durable_changes:
            try:
                waiting.popleft()[1]()
            except Exception as error:
                fault = fault or error
        if self.on_advance is not None:
            for partition in touched:
                self.on_advance(partition)
        if fault is not None:
            raise fault

    def window_failed(self, window: Window, error: BaseException) -> None:
        """[loop] The end of acknowledging."""
        self._window = None
        self._fence(f"the journal could not be written: {_reason(error)}")

    def _fence(self, reason: str) -> None:
        if self.fenced is not None:
            return
        self.fenced = f"{reason}. Nothing is acknowledged any more; look at the disk, then restart the broker."
        self._callbacks.clear()
        if self.on_fence is not None:
            self.on_fence(self.fenced)

    # the segments' stages

    def take_segment_work(self) -> SegmentWork | None:
        """[loop] Everything durable that is not in segments yet; None if there is nothing, or work is in flight."""
        if self._work is not None or self.fenced is not None:
            return None
        work = SegmentWork()
        self._take_bad_indexes(work)
        work.operations += self._operations
        self._operations = []
        for partition in self._dirty:
            self._take_partition(work, partition)
        self._dirty = {}
        if not self.replaying and self.journal.spare_wanted():
            work.spare = self.journal.new_file(self.settings.journal_file_bytes, recyclable=True)
            work.operations.append(("ready", self.journal, work.spare))
        if self._checkpoint is not None:
            head, lines = self._checkpoint
            work.operations.append(("checkpoint", head, lines))
            work.sequence = head["sequence"]
        if not work.operations:
            return None
        self._work = work
        return work

    def _take_partition(self, work: SegmentWork, partition: Partition) -> None:
        # Of a deleted topic too, until the deletion is durable: a checkpoint from before may speak of these files.
        operations, segments, batches = partition.take_writes()
        work.operations += operations
        for segment in segments:
            work.segments.append((segment, segment.taken))
            work.bytes += segment.taken - segment.written
        if batches:
            work.tail.append((partition, batches))

    def write_segments(self, work: SegmentWork) -> None:
        """[segment thread] Writes, and with a checkpoint syncs. Raises OSError."""
        self.writer.run(work.operations)

    def segments_written(self, work: SegmentWork) -> None:
        """[loop] Memory and journal files that are not needed any more are let go."""
        self._work = None
        for segment, written in work.segments:
            segment.written = written
            if segment.is_complete():
                segment.rest_on_disk()
        self.unwritten_bytes -= work.bytes
        if work.tail:
            self._tail_works += work.tail
            self._evict()
        if work.spare is not None:
            self.journal.add_free(work.spare)
        if work.sequence >= 0:
            self._checkpoint = None
            self._operations += [("unlink", path) for path in self.journal.release(work.sequence)]

    def segments_failed(self, work: SegmentWork, error: BaseException) -> None:
        """[loop] What the journal holds is safe there until the restart."""
        self._work = None
        self._fence(f"the segments could not be written: {_reason(error)}")

    def _evict(self) -> None:
        """The oldest batches leave memory, once they are in files and memory is full."""
        works = self._tail_works
        settings = self.settings
        while works and (self._tail_bytes > settings.tail_bytes or self._tail_batches > settings.tail_batches):
            partition, batches = works.popleft()
            some = min(batches, _EVICTED_AT_ONCE)
            if some < batches:
                works.appendleft((partition, batches - some))
            self._tail_bytes -= partition.tail.drop(some)
            self._tail_batches -= some

    def commit(self) -> None:
        """All stages at once, as often as it takes. KafkaError KAFKA_STORAGE_ERROR after an error of the disk."""
        while True:
            window = self.take_window()
            if window is not None:
                try:
                    self.write_window(window)
                except OSError as error:
                    self.window_failed(window, error)
                    break
                self.window_durable(window)
                continue
            work = self.take_segment_work()
            if work is None:
                break
            try:
                self.write_segments(work)
            except OSError as error:
                self.segments_failed(work, error)
                break
            self.segments_written(work)
        self._check_open()

    # checkpoints

    def want_checkpoint(self) -> None:
        """With the next window, or now if there is nothing in flight."""
        if self._checkpoint is not None:
            return
        if self._window is None and not len(self._queue):
            self._checkpoint = (self._checkpoint_head(self.facts), self.checkpoint_lines())
            self._checkpoint_at = self.journal.bytes_written
        else:
            self._checkpoint_wanted = True

    # what recovery needs of the stages

    def start_after(self, sequence: int) -> None:
        self._durable_sequence = sequence

    def count_replayed(self, partition: Partition, size: int) -> None:
        self.unwritten_bytes += size
        self._tail_bytes += size
        self._tail_batches += 1
        self._dirty[partition] = None

    def add_operation(self, operation: tuple[Any, ...]) -> None:
        self._operations.append(operation)

    def remove_later(self, paths: list[str]) -> None:
        self._operations += [("unlink", path) for path in paths]

    def flush_segments(self) -> None:
        """[nothing in flight] Everything durable goes to the segments now."""
        work = self.take_segment_work()
        if work is not None:
            self.write_segments(work)
            self.segments_written(work)

    def forget_tails(self) -> None:
        self._tail_bytes = self._tail_batches = 0
        self._tail_works.clear()

    def checkpoint_now(self) -> int:
        """[nothing in flight] Sync and write it; its sequence."""
        head = self._checkpoint_head(self.facts)
        self.writer.run([("checkpoint", head, self.checkpoint_lines())])
        self._checkpoint_at = self.journal.bytes_written
        return int(head["sequence"])

    def checkpoint_lines(self) -> list[str]:
        """[loop] Of the state as it is at this moment."""
        lines: list[str] = []
        for topic in self.topics.values():
            lines.append(
                journal_frame.to_json(
                    {
                        "topic": topic.name,
                        "id": ids.to_text(topic.topic_id),
                        "config": topic.config,
                        "partitions": len(topic.partitions),
                    }
                )
            )
            lines += [partition.state() for partition in topic.partitions]
        return lines

    def _checkpoint_head(self, facts: dict[str, Any]) -> dict[str, Any]:
        return {
            "sequence": self._durable_sequence,
            "chain": self.journal.chain,
            "journal_key": self.journal_key.hex(),
            "cluster_id": self.cluster_id,
            "wall_ms": self.clock.wall_ms(),
            "facts": dict(facts),
        }

    # reading

    def read_handle(self, path: str) -> Handle:
        """[loop] A handle that stays open until others were used more recently."""
        handle = self._handles.pop(path, None)
        if handle is None:
            while len(self._handles) >= self.settings.handles_max:
                self.disk.close(self._handles.pop(next(iter(self._handles))))
            handle = self.disk.open(path)
        self._handles[path] = handle
        return handle

    def forget_handle(self, path: str) -> None:
        handle = self._handles.pop(path, None)
        if handle is not None:
            self.disk.close(handle)

    def note_damage(self, damage: Damage) -> None:
        """[any thread]"""
        if damage not in self.damage:
            self.damage.append(damage)

    def note_loaded(self, index: Index) -> None:
        """[any thread] The index takes memory from now on."""
        self._loaded.append(index)

    def rewrite_index(self, partition: Partition, segment: Segment, index: Index, content: bytes) -> None:
        """[any thread] The file is damaged; `content` is what belongs in it."""
        self._bad_indexes.append((partition, segment, index, content))

    def _take_bad_indexes(self, work: SegmentWork) -> None:
        while self._bad_indexes:
            partition, segment, index, content = self._bad_indexes.popleft()
            if partition.removed or segment not in partition.segments or not index.base:
                continue
            work.operations.append(("quarantine", segment.stem + index.suffix, f"{self.root}/quarantine"))
            index.replace(content + index.data)
            segment.forget_state()
            partition.line = ""
            place = partition.segments.index(segment)
            ends = partition.bases[place + 1] if place + 1 < len(partition.bases) else partition.log_end_offset
            work.operations += segment.take_writes(partition.high_watermark, ends)
            work.segments.append((segment, segment.taken))
            work.bytes += segment.taken - segment.written

    def _trim_indexes(self) -> None:
        """Indexes that readers loaded give their memory back, oldest first."""
        size = sum(len(index.prefix or b"") for index in self._loaded)
        while self._loaded and size > self.settings.index_memory_bytes:
            index = self._loaded.popleft()
            size -= len(index.prefix or b"")
            if index.base:
                index.prefix = None

    def verify(self) -> list[Damage]:
        """The deep check of everything in files: all of it is read. For tools and tests; commit first."""
        from headwater.log.verify import verify

        return verify(self)

    # time

    def tick(self) -> None:
        """[loop] Every second or so."""
        self.now_ms = self.clock.wall_ms()
        self._trim_indexes()
        if self.fenced is None:
            self.retention.tick()

    def close(self) -> None:
        """A clean stop: everything in Kafka's files, synced, and said so. After a fence, only the lock is given up."""
        from headwater.log.shutdown import close_cleanly

        try:
            if self.fenced is None:
                close_cleanly(self)
        finally:
            self.writer.close()
            self.journal.close()
            for path in list(self._handles):
                self.forget_handle(path)
            self.disk.unlock()


def _nothing() -> None:
    pass


def _deleted_name(partition: Partition) -> str:
    """Kafka's UnifiedLog.logDeleteDirName: the topic's name is cut where the whole would be too long for a file."""
    suffix = f"-{partition.index}.{partition.topic.topic_id.hex()}-delete"
    return partition.topic.name[: FILE_NAME_MAX - len(suffix)] + suffix


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


