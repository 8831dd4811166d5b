"""A run of the whole broker with everything that changes its log, on a disk whose power may go at any operation.

Clients are generators: each yields the requests that it sends and goes on when all are answered. The scheduler,
and the disk's two writers beside it (a window or a segment write may be in flight while requests are handled),
take turns by a seed. What clients are told goes into `Promises`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from typing import Any, NoReturn

from headwater.broker.config import BrokerSettings
from headwater.broker.state import Broker
from headwater.log import Log, LogSettings
from headwater.testing.clock import ManualClock
from headwater.testing.faulty_disk import FaultyDisk
from headwater.wire import batch as record_batch
from headwater.wire.errors import ErrorCode
from headwater.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from headwater.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from headwater.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from headwater.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from headwater.wire.messages.delete_topics import DeleteTopicsRequest
from headwater.wire.messages.end_txn import EndTxnRequest
from headwater.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from headwater.wire.messages.init_producer_id import InitProducerIdRequest
from headwater.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from headwater.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from headwater.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.broker.conftest import DATA, Client, Pending, World
from tests.broker.members import commit_error, commit_request, join_request
from tests.broker.promises import Owner, Promises, Sequenced, Transaction, group_of, produce

HOME, AGING, PASSING = "home", "aging", "passing"  # never deleted; by age; deleted and made again
PARTITIONS = 3
WINDOW_BYTES = 600  # about two units
Script = Generator[list[tuple[Any, int]], list[Any], None]

SETTINGS = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
}
TOPIC_CONFIG = {"internal.segment.bytes": "2500", "index.interval.bytes": "300"}


def log_settings(window_bytes: int) -> LogSettings:
    """Everything that happens once in 16 MB happens here every few frames; a window holds hardly more than a unit."""
    return LogSettings(
        window_bytes=window_bytes,
        journal_file_bytes=24 << 10,
        first_journal_bytes=12 << 10,
        checkpoint_bytes=32 << 10,
        tail_bytes=3 << 10,
        tail_batches=24,
        handles_max=6,
        retention_check_ms=0,
    )


class Fenced(Exception):
    """The disk failed, and the log with it: nothing will be acknowledged any more."""


class CutWorld(World):
    """A broker over a given disk, with small limits."""

    def __init__(self, disk: FaultyDisk, clock: ManualClock | None = None, window_bytes: int = WINDOW_BYTES) -> None:
        self.settings = BrokerSettings(SETTINGS)
        self.clock = clock or ManualClock(wall_ms=1_700_000_000_000, monotonic_ms=5_000)
        self.disk = disk
        self.bugs = []
        self.window_bytes = window_bytes

    def open(self) -> None:
        self.log = Log.open(self.disk, DATA, self.clock, log_settings(self.window_bytes))
        self.broker = Broker.open(self.log, self.clock, self.settings)
        self.broker.report_bug = lambda where, error: self.bugs.append((where, error))


class Actor:
    """One client with a connection of its own."""

    def __init__(self, client: Client, script: Script) -> None:
        self.client, self.script = client, script
        self.pending: list[Pending] = []
        self.begun = self.over = False

    @property
    def is_ready(self) -> bool:
        return not self.over and all(each.done for each in self.pending)

    def step(self) -> None:
        try:
            if self.begun:
                requests = self.script.send([each.response for each in self.pending])
            else:
                self.begun, requests = True, next(self.script)
        except StopIteration:
            self.over, self.pending = True, []
            return
        self.pending = [self.client.submit(request, version) for request, version in requests]


class Run:
    def __init__(self, seed: int, disk: FaultyDisk, window_bytes: int = WINDOW_BYTES) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        self.promises = Promises(HOME)
        self.world = CutWorld(disk, window_bytes=window_bytes)
        self.count = 0  # makes tags and transaction numbers
        self.actors: list[Actor] = []
        self.refused = 0  # requests, when the disk failed

    def start(self) -> None:
        self.world.open()
        self.begin()

    def begin(self) -> None:
        """Clients connect; what they know is in the promises."""
        self.window: Any = None
        self.work: Any = None
        scripts = [self.topics(), self.trim(), self.member(), self.plain(), self.plain()]
        scripts += [self.reader(), self.reader(), self.reader()]
        scripts += [self.sequenced("a"), self.sequenced("b"), self.transactional("x", bump=False)]
        scripts += [self.transactional("y", bump=True), self.transactional("z", bump=False)]
        self.actors = [Actor(self.world.client(), script) for script in scripts]

    def go_on_with(self, world: CutWorld, promises: Promises) -> None:
        self.world, self.promises = world, promises
        self.begin()

    # the scheduler

    def run(self, steps: int) -> None:
        windows = 16 if self.world.window_bytes > 1 else 150  # of one unit each: they must keep up
        bag = [self.turn] * 60 + [self.journal] * windows + [self.segments] * 14 + [self.tick] * 5 + [self.checkpoint]
        for _ in range(steps):
            self.chance.choice(bag)()
            self.note_epochs()

    def finish(self) -> None:
        """Everything in flight is answered, then a clean stop."""
        while self.window is not None or self.work is not None:
            self.journal_ends()
            self.segments_end()
        self.world.settle()
        for actor in self.actors:
            if actor.begun and actor.is_ready:
                actor.step()  # hears its answers; what it asks now is answered by nobody
        self.world.log.commit()
        self.world.log.close()

    def turn(self) -> None:
        ready = [actor for actor in self.actors if actor.is_ready]
        if ready:
            self.chance.choice(ready).step()
        self.world.clock.advance(self.chance.randrange(20))

    def journal(self) -> None:
        if self.window is not None:
            return self.journal_ends()
        window = self.world.log.take_window()
        if window is not None:
            try:
                self.world.log.write_window(window)
            except OSError as error:
                self.fence(self.world.log.window_failed, window, error)
            self.window = window
            if self.chance.random() < 0.6:
                self.journal_ends()

    def journal_ends(self) -> None:
        window, self.window = self.window, None
        if window is not None:
            self.world.log.window_durable(window)

    def segments(self) -> None:
        if self.work is not None:
            return self.segments_end()
        work = self.world.log.take_segment_work()
        if work is not None:
            try:
                self.world.log.write_segments(work)
            except OSError as error:
                self.fence(self.world.log.segments_failed, work, error)
            self.work = work
            if self.chance.random() < 0.6:
                self.segments_end()

    def segments_end(self) -> None:
        work, self.work = self.work, None
        if work is not None:
            self.world.log.segments_written(work)

    def fence(self, fail: Callable[[Any, OSError], None], what: Any, error: OSError) -> NoReturn:
        """Whoever waits for the disk is told that it failed."""
        waiting = [each for actor in self.actors for each in actor.pending if not each.done]
        fail(what, error)
        answered = [each for each in waiting if each.done]
        self.refused = len(answered)
        for pending in answered:
            # Fields with their default are not shown; only a success has nothing but error codes of 0.
            assert "error_code=" in repr(pending.response), pending.response
        raise Fenced

    def tick(self) -> None:
        world = self.world
        world.clock.advance(self.chance.choice((0, 500, 4_000)))
        world.broker.timers.run_due(world.clock.monotonic_ms())
        world.log.tick()
        aging = world.log.topics.get(AGING)
        for partition in aging.partitions if aging else ():
            place = (partition.topic.topic_id, partition.index)
            self.promises.start_asked[place] = partition.log_start_offset

    def checkpoint(self) -> None:
        self.world.log.want_checkpoint()

    def note_epochs(self) -> None:
        for topic_id, name in self.promises.names.items():
            topic = self.world.log.topics.get(name)
            if topic is not None and topic.topic_id == topic_id:
                for partition in topic.partitions:
                    self.promises.epochs[topic_id, partition.index] = partition.leader_epoch

    # what clients send

    def build(self, kind: str, number: int, **how: Any) -> bytes:
        tag = f"{kind}:{number}".encode()
        size = self.chance.choice((0, 20, 120, 500))
        values = [tag + b"|" + self.chance.randbytes(size) for _ in range(self.chance.randrange(1, 4))]
        now = self.world.clock.wall_ms()
        return bytes(record_batch.build([(b"key", value) for value in values], now_ms=now, **how))

    def number(self) -> int:
        self.count += 1
        return self.count

    def topics(self) -> Script:
        """Makes what is missing; deletes one topic again and again."""
        log = self.world.log
        for name in (HOME, AGING):
            if name not in log.topics:
                yield from self.create(name)
        while True:
            if PASSING not in log.topics:
                yield from self.create(PASSING)
            for _ in range(self.chance.randrange(3, 12)):
                yield []
            topic_id = log.topics[PASSING].topic_id
            self.promises.deletion_asked.add(topic_id)
            (answer,) = yield [(DeleteTopicsRequest(topic_names=[PASSING], timeout_ms=1000), 5)]
            assert answer.responses[0].error_code == 0, answer
            self.promises.deleted.add(topic_id)

    def create(self, name: str) -> Script:
        config = dict(TOPIC_CONFIG)
        if name == AGING:
            config["retention.ms"] = "6000"
        configs = [CreatableTopicConfig(name=key, value=value) for key, value in config.items()]
        topic = CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=-1, configs=configs)
        self.promises.creation_asked.add(name)
        (answer,) = yield [(CreateTopicsRequest(topics=[topic]), 7)]
        assert answer.topics[0].error_code == 0, answer
        self.promises.names[bytes(answer.topics[0].topic_id)] = name

    def some_place(self) -> tuple[str, bytes, int] | None:
        """(topic, its id, partition)"""
        name = self.chance.choice((HOME, AGING, PASSING))
        topic = self.world.log.topics.get(name)
        return None if topic is None else (name, topic.topic_id, self.chance.randrange(PARTITIONS))

    def plain(self) -> Script:
        while True:
            found = self.some_place()
            if found is None:
                yield []
                continue
            name, topic_id, index = found
            batch = self.build("plain", self.number())
            (answer,) = yield [(produce(name, batch, index), 11)]
            (result,) = answer.responses[0].partition_responses
            assert result.error_code == 0, result
            self.promises.acknowledged((topic_id, index), result.base_offset, batch)

    def reader(self) -> Script:
        while True:
            found = self.some_place()
            partition = self.world.broker.partition(found[0], found[2]) if found else None
            if found is None or partition is None or partition.high_watermark == partition.log_start_offset:
                yield []
                continue
            self.world.disk.nowait = self.chance.random() < 0.5
            at = self.chance.randrange(partition.log_start_offset, partition.high_watermark)
            isolation = self.chance.randrange(2)
            ask = FetchPartition(partition=found[2], fetch_offset=at, partition_max_bytes=3000)
            topics = [FetchTopic(topic=found[0], partitions=[ask])]
            (answer,) = yield [(FetchRequest(topics=topics, isolation_level=isolation, max_bytes=1 << 20), 12)]
            (part,) = answer.responses[0].partitions
            assert part.error_code == 0, part
            self.promises.given((found[1], found[2]), part, isolation)

    def trim(self) -> Script:
        """DeleteRecords."""
        while True:
            for _ in range(self.chance.randrange(2, 30)):
                yield []
            index = self.chance.randrange(PARTITIONS)
            partition = self.world.broker.partition(HOME, index)
            if partition is None:
                continue
            target = self.chance.randint(partition.log_start_offset, partition.high_watermark)
            place = (partition.topic.topic_id, index)
            self.promises.start_asked[place] = max(self.promises.start_asked.get(place, 0), target)
            topic = DeleteRecordsTopic(
                name=HOME, partitions=[DeleteRecordsPartition(partition_index=index, offset=target)]
            )
            (answer,) = yield [(DeleteRecordsRequest(topics=[topic], timeout_ms=1000), 2)]
            (result,) = answer.topics[0].partitions
            assert result.error_code == 0 and result.low_watermark >= target, result
            self.promises.start_told[place] = max(self.promises.start_told.get(place, 0), result.low_watermark)

    def until_home(self) -> Script:
        while HOME not in self.world.log.topics:
            yield []

    def sequenced(self, name: str) -> Script:
        """An idempotent producer with several requests in flight."""
        yield from self.until_home()
        producer = self.promises.sequenced.get(name)
        if producer is None:
            (answer,) = yield [(InitProducerIdRequest(transactional_id=None), 4)]
            assert answer.error_code == 0
            self.promises.new_producer_id(answer.producer_id)
            producer = self.promises.sequenced[name] = Sequenced(answer.producer_id, answer.producer_epoch)
        while True:
            index = self.chance.randrange(PARTITIONS)
            batches = []
            for _ in range(self.chance.randrange(1, 4)):
                sequence = producer.next.get(index, 0)
                how = {"producer_id": producer.producer_id, "producer_epoch": producer.epoch}
                batch = self.build(name, self.number(), base_sequence=sequence, **how)
                producer.next[index] = sequence + record_batch.parse_header(batch).record_count
                batches.append(batch)
            producer.unanswered = [(index, batch) for batch in batches]
            twice = [*batches, batches[-1]] if self.chance.random() < 0.3 else batches
            answers = yield [(produce(HOME, batch, index), 11) for batch in twice]
            for batch, answer in zip(twice, answers, strict=True):
                (result,) = answer.responses[0].partition_responses
                assert result.error_code == 0, result
                place = (self.world.log.topics[HOME].topic_id, index)
                self.promises.sequence_answered(producer, place, batch, result.base_offset)
            producer.unanswered = []

    def member(self) -> Script:
        """One member of a group: joins, commits, looks at what is committed."""
        yield from self.until_home()
        if self.promises.member is None:
            yield from self.join(f"group-{self.number()}")
        assert self.promises.member is not None
        group, member_id, generation = self.promises.member
        while True:
            index = self.chance.randrange(PARTITIONS)
            key = (group, index)
            value = self.promises.offset_asked.get(key, -1) + 1
            self.promises.offset_asked[key] = value
            identity = {"generation_id_or_member_epoch": generation, "member_id": member_id}
            (answer,) = yield [(commit_request(group, {(HOME, index): value}, **identity), 8)]
            assert commit_error(answer) == ErrorCode.NONE, commit_error(answer)
            self.promises.offset_told[key] = value
            if self.chance.random() < 0.5:
                yield from self.look(group, identity)

    def look(self, group: str, identity: dict[str, Any]) -> Script:
        """Somebody looks while a commit is in flight: only what is durable is told."""
        index = self.chance.randrange(PARTITIONS)
        key = (group, index)
        value = self.promises.offset_asked[key] = self.promises.offset_asked.get(key, -1) + 1
        asked = OffsetFetchRequestTopics(name=HOME, partition_indexes=[index])
        fetch = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=[asked])])
        first = self.world.client("writer").submit(commit_request(group, {(HOME, index): value}, **identity), 8)
        second = self.world.client("viewer").submit(fetch, 8)
        while not second.done:
            yield []
        part = second.response.groups[0].topics[0].partitions[0]
        assert part.error_code == 0
        self.promises.offset_told[key] = max(self.promises.offset_told.get(key, -1), part.committed_offset)
        while not first.done:
            yield []
        assert commit_error(first.response) == ErrorCode.NONE
        self.promises.offset_told[key] = value

    def join(self, group: str) -> Script:
        times: dict[str, Any] = {"session_timeout_ms": 1_800_000, "rebalance_timeout_ms": 1_800_000}
        (answer,) = yield [(join_request(group, **times), 5)]
        assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
        member_id = answer.member_id
        (answer,) = yield [(join_request(group, member_id, **times), 5)]
        assert answer.error_code == 0, answer
        generation = answer.generation_id
        plan = [SyncGroupRequestAssignment(member_id=member_id, assignment=b"everything")]
        request = SyncGroupRequest(
            group_id=group, generation_id=generation, member_id=member_id, assignments=plan
        )
        (answer,) = yield [(request, 3)]
        assert answer.error_code == 0, answer
        self.promises.member = (group, member_id, generation)

    def transactional(self, name: str, *, bump: bool) -> Script:
        yield from self.until_home()
        owner = self.promises.owners.get(name)
        if owner is None:
            owner = self.promises.owners[name] = Owner(bump)
        if owner.producer_id < 0:
            yield from self.own(name, owner)
        while True:
            yield from self.transaction(name, owner)
            if self.chance.random() < 0.1:
                yield from self.own(name, owner)

    def own(self, name: str, owner: Owner) -> Script:
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=900_000)
        while True:
            (answer,) = yield [(request, 4)]
            if answer.error_code != ErrorCode.CONCURRENT_TRANSACTIONS:
                break
        assert answer.error_code == 0, answer
        if owner.producer_id < 0:
            self.promises.new_producer_id(answer.producer_id)
        owner.producer_id, owner.epoch, owner.next = answer.producer_id, answer.producer_epoch, {}

    def transaction(self, name: str, owner: Owner) -> Script:
        transaction = Transaction(name, self.number())
        self.promises.transactions[transaction.number] = transaction
        indexes = self.chance.sample(range(PARTITIONS), self.chance.randrange(1, PARTITIONS + 1))
        me = {"transactional_id": name, "producer_id": owner.producer_id, "producer_epoch": owner.epoch}
        if not owner.bump:
            old: dict[str, Any] = {f"v3_and_below_{key}": value for key, value in me.items()}
            topics = [AddPartitionsToTxnTopic(name=HOME, partitions=indexes)]
            (answer,) = yield [(AddPartitionsToTxnRequest(v3_and_below_topics=topics, **old), 3)]
            results = answer.results_by_topic_v3_and_below[0].results_by_partition
            assert not any(each.partition_error_code for each in results), results
        requests, counts = [], {}
        for index in indexes:
            sequence = owner.next.get(index, 0)
            how = {"producer_id": owner.producer_id, "producer_epoch": owner.epoch, "transactional": True}
            batch = self.build("txn", transaction.number, base_sequence=sequence, **how)
            counts[index] = record_batch.parse_header(batch).record_count
            owner.next[index] = sequence + counts[index]
            version = 12 if owner.bump else 11
            requests.append((produce(HOME, batch, index, transactional_id=name), version))
        answers = yield requests
        for index, answer in zip(indexes, answers, strict=True):
            (result,) = answer.responses[0].partition_responses
            assert result.error_code == 0, result
            transaction.offsets[index] = result.base_offset + counts[index] - 1
        if self.chance.random() < 0.6:
            yield from self.offset_in(transaction, owner, me)
        if self.chance.random() > 0.1:  # else it is left open, and fenced or forgotten
            yield from self.end(transaction, owner, me)
        else:
            yield from self.own(name, owner)
            transaction.outcome = "aborted"

    def offset_in(self, transaction: Transaction, owner: Owner, me: dict[str, Any]) -> Script:
        group = group_of(transaction.owner)
        if not owner.bump:
            (answer,) = yield [(AddOffsetsToTxnRequest(group_id=group, **me), 3)]
            assert answer.error_code == 0, answer
        part = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=transaction.number)
        topics = [TxnOffsetCommitRequestTopic(name=HOME, partitions=[part])]
        (answer,) = yield [(TxnOffsetCommitRequest(group_id=group, topics=topics, **me), 5 if owner.bump else 3)]
        assert commit_error(answer) == ErrorCode.NONE, commit_error(answer)
        transaction.group_offset = True

    def end(self, transaction: Transaction, owner: Owner, me: dict[str, Any]) -> Script:
        commit = self.chance.random() < 0.7
        transaction.outcome = "commit?" if commit else "abort?"
        request = (EndTxnRequest(committed=commit, **me), 5 if owner.bump else 3)
        answers = yield [request] * self.chance.choice((1, 1, 1, 2))
        for answer in answers:
            assert answer.error_code == 0, answer
        transaction.outcome = "committed" if commit else "aborted"
        if owner.bump:
            owner.producer_id, owner.epoch, owner.next = answers[0].producer_id, answers[0].producer_epoch, {}
