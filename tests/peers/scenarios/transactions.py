"""Transactions: states, fencing, markers, offsets inside a transaction, isolation."""

from __future__ import annotations

from headwater.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from headwater.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from headwater.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from headwater.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from headwater.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from headwater.wire.messages.fetch import FetchResponse
from headwater.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from headwater.wire.messages.list_offsets import ListOffsetsResponse
from headwater.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from headwater.wire.messages.offset_fetch import OffsetFetchResponse
from headwater.wire.messages.produce import ProduceResponse
from headwater.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from tests.peers.prober import Session, scenario
from tests.peers.requests import committed, fetch_from, made, offsets_at, produce_to, records
from tests.peers.scenarios.groups import coordinated

ASKS_MAX = 2000
CONCURRENT, UNSTABLE = 51, 88


class Writer:
    """A transactional producer at the level of requests."""

    def __init__(self, session: Session, word: str) -> None:
        self.session = session
        self.name = coordinated(session, word, kind=1)
        self.number, self.epoch = -1, -1

    def begin(self, **fields: int) -> Writer:
        """InitProducerId, asked again while Apache Kafka still makes its internal topic or ends a transaction."""
        for _ in range(ASKS_MAX):
            answer = self.session.quietly(self.init(**fields), InitProducerIdResponse, 4)
            if answer.error_code not in (14, 15, 16, CONCURRENT):
                break
        self.number, self.epoch = answer.producer_id, answer.producer_epoch
        return self

    def init(self, timeout_ms: int = 60_000, **fields: int) -> InitProducerIdRequest:
        return InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=timeout_ms, **fields)  # type: ignore[arg-type]

    def add(self, topic: str, *partitions: int) -> AddPartitionsToTxnRequest:
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.number,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
        )

    def added(self, topic: str, *partitions: int) -> None:
        for _ in range(ASKS_MAX):
            answer = self.session.quietly(self.add(topic, *partitions), AddPartitionsToTxnResponse, 3)
            rows = answer.results_by_topic_v3_and_below[0].results_by_partition
            if rows[0].partition_error_code != CONCURRENT:
                return

    def writes(
        self, label: str, topic: str, sequence: int, count: int = 1, version: int = 9, partition: int = 0
    ) -> None:
        data = records(
            count,
            producer_id=self.number,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        request = produce_to(topic, data, transactional_id=self.name, partition=partition)
        self.session.ask(label, request, ProduceResponse, version)

    def end(self, commit: bool) -> EndTxnRequest:
        return EndTxnRequest(
            transactional_id=self.name, producer_id=self.number, producer_epoch=self.epoch, committed=commit
        )

    def ends(self, label: str, commit: bool, version: int = 3) -> None:
        """Asked again while Apache Kafka still completes the one before."""
        for _ in range(ASKS_MAX):
            answer = self.session.quietly(self.end(commit), EndTxnResponse, version)
            if answer.error_code != CONCURRENT:
                break
        self.session.note(f"{label} v{version}", self.session.tree(answer))

    def settled(self, topic: str, offset: int) -> None:
        """Waits, unnoted, until everything before the offset is stable: the answer to EndTxn may come earlier."""
        for _ in range(ASKS_MAX):
            answer = self.session.quietly(offsets_at(topic, -1, isolation=1), ListOffsetsResponse, 7)
            if answer.topics[0].partitions[0].offset >= offset:
                return


def topic_of(session: Session, word: str, partitions: int = 1) -> str:
    made(session, word, partitions)
    return session.name(word)


def show(session: Session, label: str, topic: str) -> None:
    for isolation in (0, 1):
        session.ask(
            f"{label}, isolation {isolation}", fetch_from(topic, isolation=isolation), FetchResponse, 11
        )
        session.ask(
            f"{label}, end {isolation}", offsets_at(topic, -1, isolation=isolation), ListOffsetsResponse, 7
        )


@scenario
def a_commit_in_every_version(session: Session) -> None:
    for version in range(4):
        topic, writer = topic_of(session, f"t{version}"), Writer(session, f"c{version}").begin()
        session.ask("add", writer.add(topic, 0), AddPartitionsToTxnResponse, version)
        writer.writes("write", topic, 0, 2)
        show(session, "open", topic)
        writer.ends("commit", True, version)
        writer.settled(topic, 3)
        show(session, "committed", topic)


@scenario
def an_abort(session: Session) -> None:
    topic, writer = topic_of(session, "t"), Writer(session, "a").begin()
    writer.added(topic, 0)
    writer.writes("write", topic, 0, 2)
    writer.ends("abort", False)
    writer.settled(topic, 3)
    show(session, "aborted", topic)


@scenario
def two_transactions_interleaved(session: Session) -> None:
    topic = topic_of(session, "t")
    one, two = Writer(session, "one").begin(), Writer(session, "two").begin()
    one.added(topic, 0)
    two.added(topic, 0)
    one.writes("one", topic, 0)
    two.writes("two", topic, 0)
    one.writes("one more", topic, 1)
    two.ends("two commits", True)
    for _ in range(ASKS_MAX):  # its marker is the fourth record
        if session.quietly(offsets_at(topic, -1), ListOffsetsResponse, 7).topics[0].partitions[0].offset >= 4:
            break
    show(session, "two committed", topic)
    one.ends("one aborts", False)
    one.settled(topic, 5)
    show(session, "one aborted", topic)
    session.ask("from inside", fetch_from(topic, 2, isolation=1), FetchResponse, 11)


@scenario
def ends_that_are_refused(session: Session) -> None:
    topic, writer = topic_of(session, "t"), Writer(session, "w").begin()
    writer.ends("nothing begun, commit", True)
    writer.ends("nothing begun, abort", False)
    writer.added(topic, 0)
    writer.writes("write", topic, 0)
    writer.ends("commit", True)
    writer.settled(topic, 2)
    writer.ends("commit again", True)
    writer.ends("abort after", False)
    writer.number += 1
    for version in range(4):
        writer.ends("other producer", True, version)
    writer.number -= 1
    writer.epoch += 1
    for version in range(4):
        writer.ends("newer epoch", True, version)
    stranger = Writer(session, "stranger")
    stranger.number, stranger.epoch = writer.number, 0
    stranger.ends("unknown id", True)


@scenario
def a_zombie(session: Session) -> None:
    topic, zombie = topic_of(session, "t"), Writer(session, "w").begin()
    zombie.added(topic, 0)
    zombie.writes("zombie writes", topic, 0)
    heir = Writer(session, "w").begin()
    session.note("heir", [heir.number == zombie.number, heir.epoch - zombie.epoch])
    zombie.settled(topic, 2)
    show(session, "zombie aborted", topic)
    zombie.writes("zombie writes on", topic, 1)
    for version in range(4):
        session.ask("zombie adds", zombie.add(topic, 0), AddPartitionsToTxnResponse, version)
        zombie.ends("zombie commits", True, version)
    request = zombie.init(producer_id=zombie.number, producer_epoch=zombie.epoch)
    for version in (3, 4):
        session.ask("zombie begins again", request, InitProducerIdResponse, version)
    heir.added(topic, 0)
    heir.writes("heir writes", topic, 0)
    heir.ends("heir commits", True)
    heir.settled(topic, 4)
    show(session, "heir committed", topic)


@scenario
def a_producer_that_bumps_its_own_epoch(session: Session) -> None:
    writer = Writer(session, "w").begin()
    session.ask(
        "with its epoch",
        writer.init(producer_id=writer.number, producer_epoch=writer.epoch),
        InitProducerIdResponse,
        4,
    )
    session.ask(
        "with it again",
        writer.init(producer_id=writer.number, producer_epoch=writer.epoch),
        InitProducerIdResponse,
        4,
    )
    session.ask(
        "with the next",
        writer.init(producer_id=writer.number, producer_epoch=writer.epoch + 1),
        InitProducerIdResponse,
        4,
    )
    session.ask(
        "with a newer", writer.init(producer_id=writer.number, producer_epoch=99), InitProducerIdResponse, 4
    )
    session.ask(
        "another id", writer.init(producer_id=writer.number + 5, producer_epoch=0), InitProducerIdResponse, 4
    )
    session.ask(
        "no epoch", writer.init(producer_id=writer.number, producer_epoch=-1), InitProducerIdResponse, 4
    )
    session.ask("no id", writer.init(producer_id=-1, producer_epoch=1), InitProducerIdResponse, 4)


@scenario
def timeouts_that_are_refused(session: Session) -> None:
    writer = Writer(session, "w")
    for timeout in (0, -1, 900_001, 900_000, 1):
        session.ask(f"timeout {timeout}", writer.init(timeout), InitProducerIdResponse, 4)


@scenario
def partitions_that_are_refused(session: Session) -> None:
    topic, writer = topic_of(session, "t", 2), Writer(session, "w").begin()
    session.ask("unknown topic", writer.add(session.name("no"), 0), AddPartitionsToTxnResponse, 3)
    session.ask(
        "unknown partition", writer.add(topic, 0, 9), AddPartitionsToTxnResponse, 3, by="partition_index"
    )
    session.ask("right", writer.add(topic, 1), AddPartitionsToTxnResponse, 3)
    session.ask("right again", writer.add(topic, 1), AddPartitionsToTxnResponse, 3)
    writer.writes("not added", topic, 0, version=9)
    writer.writes("not added", topic, 0, version=11)
    writer.writes("added", topic, 0, partition=1)
    writer.ends("commit", True)


@scenario
def partitions_of_strangers(session: Session) -> None:
    topic, writer = topic_of(session, "t"), Writer(session, "w").begin()
    writer.number += 1
    for version in range(4):
        session.ask("other producer", writer.add(topic, 0), AddPartitionsToTxnResponse, version)
    stranger = Writer(session, "stranger")
    stranger.number, stranger.epoch = writer.number, 0
    session.ask("unknown id", stranger.add(topic, 0), AddPartitionsToTxnResponse, 3)


def offsets_in(
    writer: Writer, group: str, topic: str, offset: int, **fields: object
) -> TxnOffsetCommitRequest:
    part = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="m")
    return TxnOffsetCommitRequest(
        transactional_id=writer.name, group_id=group, producer_id=writer.number, producer_epoch=writer.epoch,
        topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[part])], **fields,  # type: ignore[arg-type]
    )  # fmt: skip


@scenario
def offsets_inside_a_transaction(session: Session) -> None:
    topic, group = topic_of(session, "t"), coordinated(session, "g")
    writer = Writer(session, "w").begin()
    for number, commit in enumerate((True, False, True)):
        for _ in range(ASKS_MAX):
            request = AddOffsetsToTxnRequest(transactional_id=writer.name, producer_id=writer.number,
                                             producer_epoch=writer.epoch, group_id=group)  # fmt: skip
            answer = session.quietly(request, AddOffsetsToTxnResponse, 3)
            if answer.error_code != CONCURRENT:
                break
        session.note("added", answer.error_code)
        session.ask(
            "commit offsets", offsets_in(writer, group, topic, 10 + number), TxnOffsetCommitResponse, 3
        )
        session.ask("pending", committed(group, topic, 0), OffsetFetchResponse, 7)
        session.ask("pending, stable", committed(group, topic, 0, stable=True), OffsetFetchResponse, 7)
        writer.ends(f"commit {commit}", commit)
        for _ in range(ASKS_MAX):
            stable = session.quietly(committed(group, topic, 0, stable=True), OffsetFetchResponse, 7)
            if stable.topics[0].partitions[0].error_code != UNSTABLE:
                break
        session.ask("after", committed(group, topic, 0), OffsetFetchResponse, 7)


@scenario
def offsets_that_are_refused(session: Session) -> None:
    topic, group = topic_of(session, "t"), coordinated(session, "g")
    writer = Writer(session, "w").begin()
    for version in range(5):
        request = offsets_in(writer, group, topic, 5)
        session.ask("without a transaction", request, TxnOffsetCommitResponse, version)
    session.ask(
        "unknown member",
        offsets_in(writer, group, topic, 5, member_id="nobody", generation_id=3),
        TxnOffsetCommitResponse,
        3,
    )
    session.ask("unknown topic", offsets_in(writer, group, session.name("no"), 5), TxnOffsetCommitResponse, 3)
    writer.number += 1
    session.ask("other producer", offsets_in(writer, group, topic, 5), TxnOffsetCommitResponse, 3)
    for version in range(5):
        request = AddOffsetsToTxnRequest(
            transactional_id=writer.name, producer_id=writer.number, producer_epoch=0, group_id=group
        )
        session.ask("add of another", request, AddOffsetsToTxnResponse, version)


@scenario
def what_is_described(session: Session) -> None:
    topic, writer = topic_of(session, "t"), Writer(session, "w").begin()
    ids = DescribeTransactionsRequest(transactional_ids=[writer.name, session.name("none"), ""])
    session.ask("empty", ids, DescribeTransactionsResponse, 0)
    writer.added(topic, 0)
    session.ask("ongoing", ids, DescribeTransactionsResponse, 0)
    writer.writes("write", topic, 0)
    asked = DescribeProducersRequest(
        topics=[
            TopicRequest(name=topic, partition_indexes=[0, 9]),
            TopicRequest(name=session.name("no"), partition_indexes=[0]),
        ]
    )
    session.ask("producers", asked, DescribeProducersResponse, 0)
    for version in (0, 1):
        answer = session.quietly(
            ListTransactionsRequest(state_filters=["Ongoing", "NoSuch"]), ListTransactionsResponse, version
        )
        mine = [session.tree(row) for row in answer.transaction_states if row.transactional_id == writer.name]
        session.note(f"listed v{version}", [answer.error_code, answer.unknown_state_filters, mine])
    writer.ends("commit", True)
    writer.settled(topic, 2)
    session.ask("producers after", asked, DescribeProducersResponse, 0)
