"""Fetch, v4-18: read batches of many partitions, waiting for ``min_bytes`` up to ``max_wait_ms`` after arrival.

* Whole batches from the one that holds the offset; the first of the whole answer is given even if it is larger
  than every limit, so that a reader never stands still. The rest of the partitions is answered without records.
* It is answered at once when enough is there, when a partition has an error or a diverging epoch, when nothing
  is asked for. A partition that does not exist does not end the wait: Apache Kafka's does neither.
* Read committed: below the last stable offset only, with the aborted transactions of what is returned.
* A fetch session is never made (v7): answers carry session id 0, which makes clients ask for everything again,
  and who goes on with a session is told FETCH_SESSION_ID_NOT_FOUND.

A waiting fetch costs nothing until one of its partitions moves; it ends with its connection.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.broker.registry import Context, handles
from headwater.broker.topics import check_leader_epoch
from headwater.broker.waiting import Later, Timer, Waiting
from headwater.log.reads import READ_BYTES_MAX, ReadJob, Slice
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)  # fmt: skip

if TYPE_CHECKING:
    from headwater.broker.state import Broker
    from headwater.log import Partition

READ_COMMITTED = 1
TOPIC_IDS_SINCE = 13
REPLICA_STATE_SINCE = 15
LEADER_HINTS_SINCE = 16
LEADER_ERRORS = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)

_LENGTH = Struct(">i")
_DELTA = Struct(">i")
_OFFSET = Struct(">q")


class Asked(NamedTuple):
    """One partition of a request."""

    topic: str
    topic_id: bytes
    partition: Partition
    ask: FetchPartition


class Missing(NamedTuple):
    topic: str
    topic_id: bytes
    partition: int
    code: ErrorCode


# Which partition, its read, and how much it may bring: None for the first, whose first batch always comes.
Job = tuple[int, "ReadJob[Slice]", "int | None"]


def refused(request: FetchRequest, error: KafkaError) -> FetchResponse:
    """The code stands at the top, and at each partition too: clients of old versions look nowhere else."""
    topics = [
        FetchableTopicResponse(
            topic=topic.topic,
            topic_id=topic.topic_id,
            partitions=[_unread(each.partition, error.code) for each in topic.partitions],
        )
        for topic in request.topics
    ]
    return FetchResponse(error_code=int(error.code), responses=topics)


@handles(FetchRequest, versions=(4, 18), error=refused)
def fetch(broker: Broker, request: FetchRequest, context: Context) -> FetchResponse | Later[FetchResponse]:
    if request.session_epoch > 0:
        return FetchResponse(error_code=int(ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
    if request.isolation_level not in (0, READ_COMMITTED):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return _Fetch(broker, request, context).begin()


class _Fetch:
    """One request until it is answered."""

    __slots__ = (
        "answers", "asked", "broker", "by_partition", "committed", "context", "deadline_ms", "later", "missing",
        "must_answer", "replica_id", "request", "room", "sizes", "timer", "waiting",
    )  # fmt: skip

    def __init__(self, broker: Broker, request: FetchRequest, context: Context) -> None:
        self.broker = broker
        self.request = request
        self.context = context
        self.committed = request.isolation_level == READ_COMMITTED
        self.room = min(request.max_bytes, broker.settings.fetch_max_bytes)
        newer = context.api_version >= REPLICA_STATE_SINCE
        self.replica_id = request.replica_state.replica_id if newer else request.replica_id
        self.deadline_ms = context.arrived_ms + request.max_wait_ms
        self.later: Later[FetchResponse] = Later()
        self.asked, self.missing = _resolved(broker, request, context.api_version)
        self.must_answer = not self.asked or request.max_wait_ms <= 0
        self.answers: list[PartitionData | None] = []
        self.sizes: list[int] = []
        self.by_partition: dict[Partition, int] = {}
        self.waiting: Waiting | None = None
        self.timer: Timer | None = None

    def begin(self) -> FetchResponse | Later[FetchResponse]:
        self.read()
        return self.later

    # ------------------------------------------------------------------- reading

    def read(self) -> None:
        self.answers = [None] * len(self.asked)
        self.sizes = [0] * len(self.asked)
        self._pass(range(len(self.asked)))

    def _pass(self, places: Iterable[int]) -> None:
        """Read these partitions; what must wait for the disk is read by a reader, all in one job.

        A job takes as much room as it may need. Partitions that then find none are looked at again after it.
        """
        jobs: list[Job] = []
        crowded: list[int] = []
        left = max(self.room - sum(self.sizes), 0)
        got_any = any(self.sizes)
        for place in places:
            if jobs and left <= 0:
                crowded.append(place)
                continue
            asked = self.asked[place]
            answer, found = self._read_one(asked, left, got_any)
            self.answers[place] = answer
            if isinstance(found, ReadJob):
                jobs.append((place, found, min(left, asked.ask.partition_max_bytes) if got_any else None))
                got_any = True
                left -= min(max(asked.ask.partition_max_bytes, 1), READ_BYTES_MAX)
            elif found is not None and found.size:
                self._fill(place, found)
                got_any = True
                left -= found.size
            left = max(left, 0)
        if jobs:
            self._read_in_thread(jobs, crowded)
        else:
            self._answer_or_wait()

    def _read_one(
        self, asked: Asked, left: int, got_any: bool
    ) -> tuple[PartitionData, Slice | ReadJob[Slice] | None]:
        partition, ask = asked.partition, asked.ask
        try:
            if partition.deleted:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if self.replica_id >= 0:
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            check_leader_epoch(partition, ask.current_leader_epoch)
            stable = partition.last_stable_offset
            answer = PartitionData(
                partition_index=ask.partition,
                high_watermark=partition.high_watermark,
                last_stable_offset=stable,
                log_start_offset=partition.log_start_offset,
                aborted_transactions=[] if self.committed else None,
                records=b"",
            )
            if ask.last_fetched_epoch >= 0 and _diverges(partition, ask, answer):
                self.must_answer = True
                return answer, None
            limit = stable if self.committed else partition.high_watermark
            most = min(left, ask.partition_max_bytes)
            if ask.partition_max_bytes < 0:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
            if got_any and most <= 0:
                if not partition.log_start_offset <= ask.fetch_offset <= partition.log_end_offset:
                    raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
                return answer, None
            found = partition.read(ask.fetch_offset, most, limit)
            if got_any and isinstance(found, Slice) and found.size > most:
                return answer, None  # one batch larger than what is left: only the first may be that
            return answer, found
        except KafkaError as error:
            self.must_answer = True
            return self._refusal(asked, error.code), None

    def _read_in_thread(self, jobs: list[Job], crowded: list[int]) -> None:
        def run() -> list[Any]:
            results: list[Any] = []
            for _, job, _ in jobs:
                try:
                    results.append(job.run())
                except KafkaError as error:
                    results.append(error)
            return results

        def done(results: Any) -> None:
            if isinstance(results, Exception):
                self.broker.report_bug("Fetch from the disk", results)
                results = [KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)] * len(jobs)
            for (place, _, most), found in zip(jobs, results, strict=True):
                if self.asked[place].partition.deleted:
                    # A new topic of its name has files of the same names: who knows whose were read.
                    found = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                if isinstance(found, KafkaError):
                    self.must_answer = True
                    self.answers[place] = self._refusal(self.asked[place], found.code)
                elif most is None or found.size <= most:
                    self._fill(place, found)
            if crowded:
                self._pass(crowded)
            else:
                self._answer_or_wait()

        self.broker.io(run, done)

    def _fill(self, place: int, found: Slice) -> None:
        answer, asked = self.answers[place], self.asked[place]
        assert answer is not None
        self.sizes[place] = found.size
        answer.records = found.pieces
        if self.committed and found.size:
            start, partition = asked.ask.fetch_offset, asked.partition
            aborted = partition.aborted_transactions(start, answer.last_stable_offset)
            if aborted:
                end = _next_offset(found.pieces[-1])
                answer.aborted_transactions = [
                    AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
                    for each in aborted
                    if each.first_offset < end
                ]

    # ------------------------------------------------------------------- waiting

    def _answer_or_wait(self) -> None:
        broker = self.broker
        if (
            self.must_answer
            or sum(self.sizes) >= self.request.min_bytes
            or broker.clock.monotonic_ms() >= self.deadline_ms
        ):
            self.later.set(self._response())
        elif not self.context.closed:
            self.by_partition = {asked.partition: place for place, asked in enumerate(self.asked)}
            self.waiting = broker.waiters.wait(self.by_partition, self._moved)
            self.timer = broker.timers.at(self.deadline_ms, self._finish)
            self.context.on_close.append(self._stop)

    def _moved(self, partition: Partition) -> None:
        """A high watermark, last stable offset or log start moved, or the partition went: is it enough now?"""
        asked = self.asked[self.by_partition[partition]]
        start = asked.ask.fetch_offset
        limit = partition.last_stable_offset if self.committed else partition.high_watermark
        if partition.deleted or start < partition.log_start_offset:
            self._finish()
        elif start < limit:
            if self.request.min_bytes > 1 and not self._enough(asked, limit):
                return
            self._finish()

    def _enough(self, asked: Asked, limit: int) -> bool:
        try:
            found = asked.partition.read(asked.ask.fetch_offset, asked.ask.partition_max_bytes, limit)
        except KafkaError:
            return True
        if isinstance(found, ReadJob):
            return True
        self.sizes[self.by_partition[asked.partition]] = found.size
        return sum(self.sizes) >= self.request.min_bytes

    def _finish(self) -> None:
        self._stop()
        self.must_answer = True
        self.read()

    def _stop(self) -> None:
        if self.waiting is not None and self.timer is not None:
            self.waiting.cancel()
            self.timer.cancel()
            self.waiting = self.timer = None
            if not self.context.closed:
                self.context.on_close.remove(self._stop)

    # ----------------------------------------------------------------- answering

    def _response(self) -> FetchResponse:
        answers = [answer for answer in self.answers if answer is not None]
        found = [(each.topic, each.topic_id, answer) for each, answer in zip(self.asked, answers, strict=True)]
        found += [(each.topic, each.topic_id, _unread(each.partition, each.code)) for each in self.missing]
        response = FetchResponse(responses=_grouped(found))
        if self.context.api_version >= LEADER_HINTS_SINCE and any(a.error_code in LEADER_ERRORS for a in answers):
            here = self.context
            response.node_endpoints = [
                NodeEndpoint(node_id=self.broker.node_id, host=here.listener_host, port=here.listener_port)
            ]
        return response

    def _refusal(self, asked: Asked, code: ErrorCode) -> PartitionData:
        answer = _unread(asked.ask.partition, code)
        answer.aborted_transactions = None
        if code in LEADER_ERRORS and self.context.api_version >= LEADER_HINTS_SINCE:
            leader = LeaderIdAndEpoch(leader_id=self.broker.node_id, leader_epoch=asked.partition.leader_epoch)
            answer.current_leader = leader
        return answer


def _resolved(broker: Broker, request: FetchRequest, version: int) -> tuple[list[Asked], list[Missing]]:
    """What is asked for, in order. Of a partition that is named twice the last counts, at the first one's place."""
    asked: dict[tuple[str, bytes, int], Asked] = {}
    missing: dict[tuple[str, bytes, int], Missing] = {}
    topics = broker.topics
    for each in request.topics:
        name, topic_id = each.topic, each.topic_id
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if version >= TOPIC_IDS_SINCE:
            topic = topics.by_id(topic_id)
            if topic is None:
                unknown = ErrorCode.UNKNOWN_TOPIC_ID
        else:
            topic = topics.get(name)
        count = 0 if topic is None else len(topic.partitions)
        for ask in each.partitions:
            index = ask.partition
            if topic is not None and 0 <= index < count:
                asked[name, topic_id, index] = Asked(name, topic_id, topic.partitions[index], ask)
            else:
                missing[name, topic_id, index] = Missing(name, topic_id, index, unknown)
    return list(asked.values()), list(missing.values())


def _diverges(partition: Partition, ask: FetchPartition, answer: PartitionData) -> bool:
    """Whether the reader's last epoch ended before its position: then it is told where, and gets no records."""
    epoch, end = partition.end_offset_for_epoch(ask.last_fetched_epoch)
    if end < 0:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch >= ask.last_fetched_epoch and end >= ask.fetch_offset:
        return False
    answer.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end)
    return True


def _unread(index: int, code: ErrorCode) -> PartitionData:
    return PartitionData(
        partition_index=index, error_code=int(code), high_watermark=-1, aborted_transactions=[], records=b""
    )


def _grouped(found: Iterable[tuple[str, bytes, PartitionData]]) -> list[FetchableTopicResponse]:
    """Neighbours of one topic in one entry; a topic may have several, as with Kafka."""
    responses: list[FetchableTopicResponse] = []
    last: tuple[str, bytes] | None = None
    for name, topic_id, answer in found:
        if (name, topic_id) != last:
            last = name, topic_id
            responses.append(FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=[]))
        responses[-1].partitions.append(answer)
    return responses


def _next_offset(piece: memoryview) -> int:
    """The offset after the last batch of a piece."""
    position = 0
    while True:
        size = _LENGTH.unpack_from(piece, position + 8)[0] + 12
        if position + size >= len(piece):
            base: int = _OFFSET.unpack_from(piece, position)[0]
            delta: int = _DELTA.unpack_from(piece, position + 23)[0]
            return base + delta + 1
        position += size
