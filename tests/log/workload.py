"""A run over a log with everything that changes it, and the model that says what must be there afterwards.

The journal is one sequence of units; what a power cut leaves is a prefix of it that holds at least every unit
that was acknowledged. The model keeps the units as they were made, the number of those acknowledged, and checks
an opened log against every prefix that is allowed. All chance comes from one seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from headwater.log import Log, LogSettings, Partition, ReadJob, Topic
from headwater.testing.clock import ManualClock
from headwater.testing.faulty_disk import FaultyDisk
from headwater.wire import batch as record_batch

ROOT = "/data"
KB = 1024

Unit = list[tuple[Any, ...]]


def small_settings() -> LogSettings:
    """Everything that happens once in 16 MB happens here every few frames."""
    return LogSettings(
        window_bytes=4 * KB,
        journal_file_bytes=32 * KB,
        first_journal_bytes=16 * KB,
        checkpoint_bytes=48 * KB,
        tail_bytes=3 * KB,
        tail_batches=24,
        handles_max=6,
        retention_check_ms=0,
    )


def open_log(disk: FaultyDisk, clock: ManualClock | None = None, settings: LogSettings | None = None) -> Log:
    return Log.open(disk, ROOT, clock or ManualClock(), settings or small_settings())


def take(read: Any) -> Any:
    """The answer of a read, in whichever way it comes."""
    return read.run() if isinstance(read, ReadJob) else read


class State:
    """What a prefix of the units comes to."""

    def __init__(self) -> None:
        self.names: dict[str, bytes] = {}
        self.parts: dict[tuple[bytes, int], list[int]] = {}  # [log start, log end]
        self.facts: dict[str, Any] = {}

    def apply(self, change: tuple[Any, ...]) -> None:
        kind = change[0]
        if kind == "batch":
            self.parts[change[1], change[2]][1] = change[4]
        elif kind == "start":
            self.parts[change[1], change[2]][0] = change[3]
        elif kind == "fact":
            self.facts[change[1]] = change[2]
        elif kind == "create":
            self.names[change[2]] = change[1]
            for index in range(change[3]):
                self.parts.setdefault((change[1], index), [0, 0])
        elif kind == "delete":
            self.names = {name: ident for name, ident in self.names.items() if ident != change[1]}
            self.parts = {key: value for key, value in self.parts.items() if key[0] != change[1]}

    def matches(self, log: Log) -> bool:
        names = {name: topic.topic_id for name, topic in log.topics.items()}
        parts = {
            (topic.topic_id, p.index): [p.log_start_offset, p.log_end_offset]
            for topic in log.topics.values()
            for p in topic.partitions
        }
        return names == self.names and parts == self.parts and log.facts == self.facts


class Workload:
    def __init__(self, seed: int, disk: FaultyDisk, *, acknowledge_early: bool = False) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        self.clock = ManualClock()
        self.disk = disk
        self.units: list[Unit] = []
        self.acknowledged = 0
        self.acknowledge_early = acknowledge_early  # the planted fault: an answer before the sync
        self.log: Log
        self.steps: list[Callable[[], None]] = []

    def start(self) -> None:
        self.log = open_log(self.disk, self.clock)

    # the run

    def run(self, steps: int) -> None:
        choices: list[tuple[int, Callable[[], None]]] = [
            (30, self.produce), (6, self.transaction), (4, self.end_transactions), (3, self.fact),
            (2, self.delete_records), (1, self.create), (1, self.delete), (1, self.grow), (1, self.configure),
            (2, self.retention), (8, self.read), (24, self.window), (14, self.segments), (1, self.ask_checkpoint),
        ]  # fmt: skip
        bag = [step for weight, step in choices for _ in range(weight)]
        if not self.units:
            self.create()
            self.create()
        for _ in range(steps):
            self.clock.advance(self.chance.randrange(50))
            self.chance.choice(bag)()
        self.log.commit()

    def finish(self) -> None:
        self.log.close()

    def _unit(self, *changes: tuple[Any, ...]) -> None:
        self.units.append(list(changes))
        count = len(self.units)

        def durable() -> None:
            self.acknowledged = max(self.acknowledged, count)

        if self.acknowledge_early:
            durable()
        else:
            self.log.when_durable(durable)

    def _topic(self) -> Topic | None:
        topics = list(self.log.topics.values())
        return self.chance.choice(topics) if topics else None

    def _partition(self) -> Partition | None:
        topic = self._topic()
        return self.chance.choice(topic.partitions) if topic else None

    def _append(self, partition: Partition, **how: Any) -> tuple[Any, ...]:
        count = self.chance.randrange(1, 4)
        value = self.chance.randbytes(self.chance.choice((8, 40, 200, 900)))
        now = self.clock.wall_ms() - self.chance.randrange(200)
        built = memoryview(record_batch.build([(b"key", value)] * count, now_ms=now, **how))
        done = partition.append(built, record_batch.parse_header(built))
        assert not done.duplicate
        key = partition.topic.topic_id
        return "batch", key, partition.index, done.base_offset, done.last_offset + 1, built

    def produce(self) -> None:
        for _ in range(self.chance.randrange(1, 4)):
            partition = self._partition()
            if partition is None:
                return
            if self.chance.random() < 0.5:
                self._unit(self._append(partition))
                continue
            producer = self.chance.randrange(100, 104)
            entry = partition.producers.get(producer)
            if entry is None or entry.txn_first_offset < 0:
                sequence = 0 if entry is None else (entry.last_sequence + 1) & 0x7FFFFFFF
                self._unit(self._append(partition, producer_id=producer, producer_epoch=0, base_sequence=sequence))

    def transaction(self) -> None:
        """One unit with batches of one producer in two partitions."""
        producer = self.chance.randrange(200, 203)
        changes = []
        with self.log.together():
            for partition in dict.fromkeys((self._partition(), self._partition())):
                if partition is None:
                    continue
                entry = partition.producers.get(producer)
                sequence = 0 if entry is None else (entry.last_sequence + 1) & 0x7FFFFFFF
                how = {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequence}
                changes.append(self._append(partition, transactional=True, **how))
        if changes:
            self._unit(*changes)

    def end_transactions(self) -> None:
        """State and markers of every open transaction of one producer: one unit."""
        producer = self.chance.randrange(200, 203)
        commit = self.chance.random() < 0.5
        changes: list[tuple[Any, ...]] = []
        with self.log.together():
            for topic in self.log.topics.values():
                for partition in topic.partitions:
                    if partition.producers.has_open_transaction(producer):
                        done = partition.append_marker(producer, 0, 0, commit)
                        view = partition.tail.views[-1]
                        place = (topic.topic_id, partition.index, done.base_offset, done.last_offset + 1)
                        changes.append(("batch", *place, view))
            value = self.chance.randrange(10**6)
            self.log.set_fact("ended", value)
            changes.append(("fact", "ended", value))
        self._unit(*changes)

    def fact(self) -> None:
        key, value = self.chance.choice("abc"), self.chance.randrange(10**9)
        self.log.set_fact(key, value)
        self._unit(("fact", key, value))

    def create(self) -> None:
        name = self.chance.choice(("alpha", "beta", "gamma"))
        if name in self.log.topics:
            return
        config = {"internal.segment.bytes": "1500", "index.interval.bytes": "300", "retention.ms": "20000"}
        if self.chance.random() < 0.3:
            config["message.timestamp.type"] = "LogAppendTime"
        topic = self.log.create_topic(name, self.chance.randrange(1, 4), config, self.chance.randbytes(16))
        self._unit(("create", topic.topic_id, name, len(topic.partitions)))

    def delete(self) -> None:
        topic = self._topic()
        if topic is not None and self.chance.random() < 0.4:
            self.log.delete_topic(topic)
            self._unit(("delete", topic.topic_id))

    def grow(self) -> None:
        topic = self._topic()
        if topic is not None and len(topic.partitions) < 4:
            self.log.add_partitions(topic, len(topic.partitions) + 1)
            self._unit(("create", topic.topic_id, topic.name, len(topic.partitions)))

    def configure(self) -> None:
        topic = self._topic()
        if topic is not None:
            changed = {"index.interval.bytes": self.chance.choice(("0", "300", "1000"))}
            self.log.set_config(topic, {**topic.config, **changed})
            self._unit(("create", topic.topic_id, topic.name, len(topic.partitions)))

    def delete_records(self) -> None:
        partition = self._partition()
        if partition is None:
            return
        before = partition.log_start_offset
        target = self.chance.choice((-1, self.chance.randint(before, partition.high_watermark)))
        after = partition.delete_records(target)
        if after != before:
            self._unit(("start", partition.topic.topic_id, partition.index, after))

    def retention(self) -> None:
        self.clock.advance(self.chance.choice((0, 5_000, 25_000)))
        starts = {p: p.log_start_offset for t in self.log.topics.values() for p in t.partitions}
        self.log.tick()
        for partition, before in starts.items():
            if partition.log_start_offset != before:
                key = (partition.topic.topic_id, partition.index)
                self._unit(("start", *key, partition.log_start_offset))

    def read(self) -> None:
        """Nothing above the high watermark, nothing but what was written."""
        partition = self._partition()
        if partition is None or partition.log_start_offset == partition.high_watermark:
            return
        self.disk.nowait = self.chance.random() < 0.5
        offset = self.chance.randrange(partition.log_start_offset, partition.high_watermark)
        found = take(partition.read(offset, self.chance.choice((1, 500, 100_000)), 2**62))
        assert found.size > 0
        joined = b"".join(found.pieces)
        batches = {u[3]: u for unit in self.units for u in unit if u[:3] == ("batch", *_key(partition))}
        first = True
        for position, header in record_batch.headers(joined):
            assert header.next_offset <= partition.high_watermark
            assert not first or header.base_offset <= offset <= header.last_offset
            first = False
            assert joined[position : position + header.size] == bytes(batches[header.base_offset][5])

    def window(self) -> None:
        window = self.log.take_window()
        if window is not None:
            self.log.write_window(window)
            self.log.window_durable(window)

    def segments(self) -> None:
        work = self.log.take_segment_work()
        if work is not None:
            self.log.write_segments(work)
            self.log.segments_written(work)

    def ask_checkpoint(self) -> None:
        self.log.want_checkpoint()

    # the checker

    def check(self, log: Log) -> int:
        """The number of units that `log` holds; AssertionError if it is not a prefix that is allowed."""
        assert not log.damage, [str(damage) for damage in log.damage]
        state = State()
        for unit in self.units[: self.acknowledged]:
            for change in unit:
                state.apply(change)
        held = self.acknowledged
        while not state.matches(log):
            assert held < len(self.units), f"seed {self.seed}: no prefix of at least {self.acknowledged} units is there"
            for change in self.units[held]:
                state.apply(change)
            held += 1
        self._check_records(log, held)
        return held

    def _check_records(self, log: Log, held: int) -> None:
        expected: dict[tuple[bytes, int], list[tuple[Any, ...]]] = {}
        for unit in self.units[:held]:
            for change in unit:
                if change[0] == "batch":
                    expected.setdefault((change[1], change[2]), []).append(change)
        for topic in log.topics.values():
            for partition in topic.partitions:
                assert partition.high_watermark == partition.log_end_offset
                made = [b for b in expected.get(_key(partition), []) if b[4] > partition.log_start_offset]
                stored = [bytes(view) for view in partition.batches()]
                assert stored == [bytes(b[5]) for b in made], f"{partition} holds other batches than were written"
                self._check_transactions(partition, expected.get(_key(partition), []))

    def _check_transactions(self, partition: Partition, batches: list[tuple[Any, ...]]) -> None:
        begun: dict[int, int] = {}
        aborted = []
        for change in batches:
            header = record_batch.parse_header(change[5])
            if header.is_control:
                first = begun.pop(header.producer_id)
                abort = record_batch.marker_type(change[5]) == record_batch.ABORT
                if abort and change[3] >= partition.log_start_offset:
                    aborted.append((header.producer_id, first))
            elif header.is_transactional:
                begun.setdefault(header.producer_id, change[3])
        stable = min([partition.high_watermark, *begun.values()])
        assert partition.last_stable_offset == max(stable, partition.log_start_offset)
        found = partition.aborted_transactions(partition.log_start_offset, partition.log_end_offset)
        assert [tuple(f) for f in found] == sorted(aborted, key=lambda pair: pair[1])

    def go_on_with(self, log: Log, disk: FaultyDisk, held: int) -> None:
        """The run continues on what was recovered: the units that are not there were never acknowledged."""
        self.log, self.disk = log, disk
        del self.units[held:]
        self.acknowledged = held


def _key(partition: Partition) -> tuple[bytes, int]:
    return partition.topic.topic_id, partition.index
