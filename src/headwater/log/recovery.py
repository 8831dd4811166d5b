"""Opening a data directory: believe the checkpoint, replay the journal after it, name what is damaged.

After a clean stop there is nothing to replay and nothing is read but the checkpoint and the sizes of the
files. Otherwise every frame after the checkpoint is applied as its changes were the first time, batches through
Partition.place(), which makes the same positions and the same index entries. Then every partition gets a new
leader epoch, everything is synced, and a new checkpoint stands before the first request is served.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from headwater.core import ids
from headwater.core.disk import Disk, read_file
from headwater.core.errors import HeadwaterError
from headwater.log import checkpoint, data_dir, journal_frame, journal_scan, topic_config
from headwater.log.checkpoint import Checkpoint
from headwater.log.damage import Damage
from headwater.log.journal import Journal, JournalFile
from headwater.log.journal_frame import Entry
from headwater.log.partition import Partition
from headwater.log.repair import Repair
from headwater.log.segment_writer import remove_flat_dir
from headwater.log.settings import LogSettings
from headwater.log.topic import Topic
from headwater.wire import batch as record_batch

if TYPE_CHECKING:
    from headwater.core.clock import Clock
    from headwater.log.log import Log

_FLUSH_BYTES = 8 << 20  # replayed batches in memory before they go to the segments


def open_log(make: type[Log], disk: Disk, root: str, clock: Clock, settings: LogSettings) -> Log:
    root = root.rstrip("/") or "/"
    started = clock.monotonic_ms()
    data_dir.lock(disk, root)
    try:
        cluster_id = data_dir.identify(disk, root)
        if cluster_id is None:
            log = _create(make, disk, root, clock, settings)
        else:
            log = Recovery(make, disk, root, clock, settings, cluster_id).run()
    except OSError as error:
        disk.unlock()
        step = "Nothing was removed. Look at the disk and at the rights of this user, then try again."
        raise HeadwaterError(
            "open the data directory", place=root, cause=error.strerror or error, next_step=step
        ) from error
    except BaseException:
        disk.unlock()
        raise
    log.recovery.seconds = (clock.monotonic_ms() - started) / 1000
    return log


def _create(make: type[Log], disk: Disk, root: str, clock: Clock, settings: LogSettings) -> Log:
    data_dir.create(disk, root)
    log = make(disk, root, clock, settings, ids.to_text(ids.random_id()))
    log.recovery.created = True
    log.journal_key = ids.random_id()
    _start_journal(log, {}, 0, 0)
    log.checkpoint_now()
    data_dir.seal(disk, root, log.cluster_id)
    return log


def _start_journal(log: Log, files: dict[str, int], sequence: int, chain: int) -> list[str]:
    """The journal with the files that are there; paths of those of no use."""
    settings = log.settings
    numbers = [int(path.rsplit("/", 1)[1].split(".")[0]) for path in files]
    log.journal = Journal(
        log.disk,
        f"{log.root}/journal",
        log.journal_key,
        file_bytes=settings.journal_file_bytes,
        sequence=sequence,
        chain=chain,
        next_name=max(numbers, default=-1) + 1,
    )
    log.start_after(sequence)
    useless = []
    for path, size in sorted(files.items(), key=lambda item: -item[1]):
        if size in (settings.journal_file_bytes, settings.first_journal_bytes):
            log.journal.add_free(JournalFile(path, size, exists=True, recyclable=True))
        else:
            useless.append(path)
    if len(files) == len(useless):
        first = log.journal.new_file(settings.first_journal_bytes, recyclable=True)
        log.journal.create(first)
        log.journal.add_free(first)
    return useless


class Recovery:
    """One opening of an existing directory."""

    def __init__(
        self, make: type[Log], disk: Disk, root: str, clock: Clock, settings: LogSettings, cluster_id: str
    ) -> None:
        self._disk = disk
        self._root = root
        self._log = make(disk, root, clock, settings, cluster_id)
        self._report = self._log.recovery
        self._lost_topics: set[bytes] = set()

    def run(self) -> Log:
        log = self._log
        state = self._read_checkpoint()
        self._restore(state)
        clean = data_dir.take_clean_mark(self._disk, self._root, state.sequence)
        folder = f"{self._root}/journal"
        if clean and not journal_scan.begun_after(self._disk, folder, log.journal_key, state.sequence):
            files = {path: self._disk.file_size(path) or 0 for path in journal_scan.journal_paths(self._disk, folder)}
            log.remove_later(_start_journal(log, files, state.sequence, state.chain))
            self._check_files()
            return log
        self._report.clean = False
        self._replay(state, folder)
        return log

    def _read_checkpoint(self) -> Checkpoint:
        """The newer of the two copies that hold."""
        found: list[Checkpoint] = []
        for name in ("checkpoint", "checkpoint.copy"):
            path = f"{self._root}/{name}"
            try:
                found.append(checkpoint.decode(read_file(self._disk, path)))
            except (OSError, ValueError) as error:
                self._report.damage.append(Damage(path, 0, f"{error}; the other copy was used"))
        if not found:
            raise HeadwaterError(
                "open the data directory",
                place=self._root,
                cause="both copies of the checkpoint are damaged or missing",
                next_step=f"Nothing was changed. Restore {self._root}/checkpoint from a backup; the records are in"
                f" {self._root}/log and {self._root}/journal, untouched.",
            )
        return max(found, key=lambda state: state.sequence)

    def _restore(self, state: Checkpoint) -> None:
        log = self._log
        if state.cluster_id != log.cluster_id:
            raise HeadwaterError(
                "open the data directory",
                place=self._root,
                cause=f"version names cluster {log.cluster_id}, the checkpoint names {state.cluster_id}",
                next_step="Nothing was changed. Put back the file that belongs to this directory.",
            )
        log.facts = state.facts
        log.journal_key = state.journal_key
        log.start_after(state.sequence)
        for line, partitions in state.topics:
            topic = self._topic(ids.from_text(line["id"]), line["topic"], line["config"], line["partitions"])
            for fields in partitions:
                topic.partitions[fields[0]].restore(fields)

    def _topic(self, topic_id: bytes, name: str, config: dict[str, str], partitions: int) -> Topic:
        """A topic as a checkpoint or a frame states it: new, or changed."""
        log = self._log
        settings = topic_config.parse(config, log.settings.topic_defaults)
        topic = log.topic_by_id(topic_id)
        if topic is None:
            topic = Topic(name, topic_id, config, settings)
            log.register(topic)
        topic.config, topic.settings = config, settings
        for index in range(len(topic.partitions), partitions):
            topic.partitions.append(Partition(log, topic, index))
        return topic

    # after an unclean stop

    def _replay(self, state: Checkpoint, folder: str) -> None:
        log, report = self._log, self._report
        for topic in log.topics.values():
            for partition in topic.partitions:
                # A topic that the journal deletes further on may have lost its directories already.
                partition.on_disk = partition.on_disk and self._disk.exists(partition.folder)
        log.replaying = True
        found = journal_scan.scan(self._disk, folder, log.journal_key, state.sequence, state.chain)
        repair = Repair(log, found)
        sequence, chain = state.sequence, state.chain
        for number in sorted({*found.frames, *found.missing}):
            frame = found.frames.get(number)
            if frame is None:
                repair.frame_missing(number)
                continue
            content = found.contents[frame.path]
            for entry in journal_frame.entries(content, frame.position, frame.header):
                self._apply(entry, repair, frame.path, frame.position)
            report.replayed_frames += 1
            sequence, chain = number, frame.header.own_chain
            if log.unwritten_bytes > _FLUSH_BYTES:
                log.flush_segments()
        if found.missing:
            repair.take_what_segments_have()
        log.replaying = False
        report.cut_bytes = repair.cut_torn()
        self._finish(found, sequence, chain)

    def _apply(self, entry: Entry, repair: Repair, path: str, position: int) -> None:
        log = self._log
        if entry.kind == journal_frame.FACT:
            content = json.loads(bytes(entry.body))
            log.apply_fact(content["key"], content["value"])
            return
        topic = log.topic_by_id(entry.topic_id)
        if entry.kind == journal_frame.TOPIC:
            content = json.loads(bytes(entry.body))
            self._topic(entry.topic_id, content["topic"], content["config"], content["partitions"])
        elif topic is None or entry.partition >= len(topic.partitions):
            repair.unknown_topic(entry, path, position)
        elif entry.kind == journal_frame.TOPIC_DELETED:
            log.unregister(topic)
            for partition in topic.partitions:
                log.remove_partition(partition)
        elif entry.kind == journal_frame.LOG_START:
            self._move_start(topic.partitions[entry.partition], entry)
        elif entry.kind == journal_frame.BATCH:
            self._batch(topic.partitions[entry.partition], entry, repair)

    def _move_start(self, partition: Partition, entry: Entry) -> None:
        if entry.offset > partition.log_end_offset:
            return  # what it speaks of is missing; the batches that follow name the gap
        if entry.flags & journal_frame.ROLLED:
            partition.roll()
        partition.log_start_offset = max(partition.log_start_offset, entry.offset)
        partition.epochs.cut_before(entry.offset)
        self._log.drop_segments(partition, entry.offset)

    def _batch(self, partition: Partition, entry: Entry, repair: Repair) -> None:
        if entry.offset < partition.log_end_offset:
            return  # the repair found it in the segment already
        if entry.offset > partition.log_end_offset:
            repair.fill_gap(partition, entry.offset)
        replay_batch(self._log, partition, entry.body, bool(entry.flags & journal_frame.ROLLED))

    def _finish(self, found: journal_scan.Scan, sequence: int, chain: int) -> None:
        """New epochs, everything in files, a checkpoint that needs no frame of before."""
        log = self._log
        for topic in log.topics.values():
            for partition in topic.partitions:
                partition.epochs.assign(partition.leader_epoch + 1, partition.log_end_offset)
                partition.line = ""
                if partition.on_disk:
                    for operation in partition.small_files():
                        log.add_operation(operation)
        self._report.epoch_bumped = True
        useless = _start_journal(log, found.files, sequence, chain)
        log.flush_segments()
        self._check_files()
        for topic in log.topics.values():
            for partition in topic.partitions:
                partition.tail.clear()
                if partition.changed and partition.active is not None and partition.active.on_disk:
                    log.add_operation(("trim", partition.active.path, partition.active.size))
        log.forget_tails()
        log.flush_segments()
        log.checkpoint_now()
        log.remove_later(useless)

    # both ways

    def _check_files(self) -> None:
        """Every file is there and as long as the checkpoint says; what is shorter lost acknowledged records."""
        log = self._log
        size_of = self._disk.file_size
        for topic in log.topics.values():
            for partition in topic.partitions:
                if len(partition.bases) > 1 and partition.bases[1] <= partition.log_start_offset:
                    log.drop_segments(partition, partition.log_start_offset)
                for segment in partition.segments:
                    size = size_of(segment.path) if segment.written else segment.written
                    if size is None or size < segment.written:
                        Repair(log, None).segment_short(partition, segment, size)
        self._look_for_others()

    def _look_for_others(self) -> None:
        """Directories in log/ that no topic explains. Those of deleted topics go, anything else stays and is named."""
        log = self._log
        folder = f"{self._root}/log"
        known = {p.folder.rsplit("/", 1)[1] for topic in log.topics.values() for p in topic.partitions}
        for name in self._disk.list(folder):
            if name in known:
                continue
            path = f"{folder}/{name}"
            if name.endswith("-delete"):
                remove_flat_dir(self._disk, path)
            else:
                self._report.damage.append(Damage(path, 0, "no topic explains this; it was left alone"))


def replay_batch(log: Log, partition: Partition, body: memoryview, rolled: bool) -> None:
    """What an append did, for a batch that has its offset already and is durable."""
    header = record_batch.parse_header(body)
    if partition.active is None or (rolled and partition.active.size):
        partition.roll()
    segment = partition.active
    assert segment is not None
    interval = partition.topic.settings.index_interval_bytes
    partition.place(body, header, segment, header.next_offset, header.size, interval)
    partition.high_watermark = partition.log_end_offset
    segment.add_durable(body, header.size)
    log.count_replayed(partition, header.size)


