"""Produce, v3-13 (0-2 are advertised, or older librdkafka gives up compression): append a batch to each partition.

acks=1 and acks=all both wait until the batches are durable; acks=0 has no answer, and an error closes the connection.
v8 names the records at fault, v12 may add partitions to a transaction, v13 names topics by id.

A request does little per partition: look up, check, append. Errors of Apache Kafka that it finds before its log
come after the others in the answer, with log start offset -1; those of its log have the log start offset.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any

from headwater.broker.registry import Context, handles
from headwater.broker.waiting import Later
from headwater.wire.batch import MAGIC, BatchHeader, InvalidRecords, check
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)  # fmt: skip

if TYPE_CHECKING:
    from headwater.broker.state import Broker
    from headwater.log import Partition, Topic

ADMIN_CLIENT = "__admin_client"  # Kafka lets a client of this name write to internal topics
TRANSACTIONAL = 0x10
LENGTH_MIN = 14  # what the oldest record format would need
ERRORS_SHOWN = 3  # in Kafka's sentence about bad records; the list has all of them
ZSTD, ZSTD_SINCE = 4, 7
PINNED_MAX = 8  # times its own size: what a batch in memory may keep of the request that it came in

# What Kafka answers without a log start offset: the batch never came near the log.
NOT_IN_LOG = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.INVALID_TOPIC_EXCEPTION,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
)


class EarlyError(KafkaError):
    """Found before the log was asked; Kafka puts these behind the others."""


class Explained(KafkaError):
    """One of the few errors whose sentence Kafka passes on: an unknown format, a batch outside of its transaction."""


def refused(request: ProduceRequest, error: KafkaError) -> ProduceResponse:
    code = int(error.code)
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    PartitionProduceResponse(index=each.index, error_code=code, base_offset=-1)
                    for each in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )


@handles(ProduceRequest, versions=(3, 13), advertise_from=0, error=refused)
def produce(
    broker: Broker, request: ProduceRequest, context: Context
) -> ProduceResponse | Later[ProduceResponse] | None:
    acks = request.acks
    if not -1 <= acks <= 1:
        raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
    if request.transactional_id is None and _has_transactional(request):
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    responses, appended, failed = _Append(broker, request, context).run()
    if acks == 0:
        context.close_connection = failed
        return None
    response = ProduceResponse(responses=responses)
    if not appended:
        return response
    later: Later[ProduceResponse] = Later()
    broker.durable.then(lambda: later.set(response), lambda: later.set(_lost(response)))
    return later


def _has_transactional(request: ProduceRequest) -> bool:
    for topic in request.topic_data:
        for each in topic.partition_data:
            records: Any = each.records
            if records is not None and len(records) > 22 and records[22] & TRANSACTIONAL:
                return True
    return False


def _lost(response: ProduceResponse) -> ProduceResponse:
    """The log was fenced before the batches were durable: whether they are there is not known, so they failed."""
    for topic in response.responses:
        for each in topic.partition_responses:
            if each.error_code == ErrorCode.NONE:
                each.error_code = int(ErrorCode.KAFKA_STORAGE_ERROR)
                each.base_offset = each.log_start_offset = each.log_append_time_ms = -1
    return response


class _Append:
    """One request's way through its partitions."""

    __slots__ = ("appended", "broker", "failed", "late", "now_ms", "request", "version", "writes_internal")

    def __init__(self, broker: Broker, request: ProduceRequest, context: Context) -> None:
        self.broker = broker
        self.request = request
        self.version = context.api_version
        self.now_ms = broker.clock.wall_ms()
        self.writes_internal = context.client_id == ADMIN_CLIENT
        self.appended = self.failed = False
        self.late: list[tuple[TopicProduceData, PartitionProduceResponse]] = []

    def run(self) -> tuple[list[TopicProduceResponse], bool, bool]:
        responses = {}
        for data in _merged(self.request.topic_data):
            answers = self._topic(data)
            if answers:
                responses[data.name, data.topic_id] = TopicProduceResponse(
                    name=data.name, topic_id=data.topic_id, partition_responses=answers
                )
        for data, answer in self.late:
            response = responses.get((data.name, data.topic_id))
            if response is None:
                response = TopicProduceResponse(name=data.name, topic_id=data.topic_id, partition_responses=[])
                responses[data.name, data.topic_id] = response
            response.partition_responses.append(answer)
        return list(responses.values()), self.appended, self.failed

    def _topic(self, data: TopicProduceData) -> list[PartitionProduceResponse]:
        topics = self.broker.topics
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if self.version >= 13:
            topic = topics.by_id(data.topic_id)
            unknown = ErrorCode.UNKNOWN_TOPIC_ID if topic is None else unknown
        else:
            topic = topics.get(data.name)
        answers = []
        for each in data.partition_data:
            partition = None
            try:
                if topic is None or not 0 <= each.index < len(topic.partitions):
                    raise EarlyError(unknown)
                partition = topic.partitions[each.index]
                answers.append(self._partition(topic, partition, each))
            except EarlyError as error:
                self.late.append((data, self._refusal(each.index, partition, error)))
            except KafkaError as error:
                answers.append(self._refusal(each.index, partition, error))
        return answers

    def _partition(
        self, topic: Topic, partition: Partition, each: PartitionProduceData
    ) -> PartitionProduceResponse:
        records: Any = each.records
        if not records:
            raise EarlyError(ErrorCode.INVALID_RECORD)
        if self.version < ZSTD_SINCE and len(records) > 22 and records[22] & 7 == ZSTD:
            raise EarlyError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        if self.broker.topics.is_internal(topic.name) and not self.writes_internal:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        settings = topic.settings
        view = _without_tail(records)
        try:
            header = check(
                view,
                max_bytes=settings.max_message_bytes,
                compacted=settings.compact,
                log_append_time=settings.log_append_time,
                now_ms=self.now_ms,
                before_max_ms=settings.timestamp_before_max_ms,
                after_max_ms=settings.timestamp_after_max_ms,
            )
        except KafkaError as error:
            if error.code == ErrorCode.INVALID_RECORD and not _is_one_batch(view):
                raise EarlyError(error.code) from None
            if error.code == ErrorCode.CORRUPT_MESSAGE:
                raise _explained(error.code, view) from None
            raise
        if header.attributes & TRANSACTIONAL:
            self._verify(header, partition)
        appended = partition.append(_on_its_own(view), header)
        self.appended = True
        log_append_time_ms = appended.log_append_time_ms
        if appended.duplicate:
            log_append_time_ms = header.max_timestamp  # Kafka's answer to a repetition, whoever stamped it
        return PartitionProduceResponse(
            index=each.index,
            base_offset=appended.base_offset,
            log_append_time_ms=log_append_time_ms,
            log_start_offset=appended.log_start_offset,
        )

    def _verify(self, header: BatchHeader, partition: Partition) -> None:
        transactional_id = self.request.transactional_id or ""
        producer_id, epoch = header.producer_id, header.producer_epoch
        try:
            self.broker.transactions.check_produce(transactional_id, producer_id, epoch, partition, self.version)
        except KafkaError as error:
            raise Explained(error.code, error.message) from None

    def _refusal(
        self, index: int, partition: Partition | None, error: KafkaError
    ) -> PartitionProduceResponse:
        self.failed = True
        answer = PartitionProduceResponse(index=index, error_code=int(error.code), base_offset=-1)
        if isinstance(error, Explained):
            answer.error_message = error.message
        elif partition is not None and not isinstance(error, EarlyError) and error.code not in NOT_IN_LOG:
            answer.log_start_offset = partition.log_start_offset
        if isinstance(error, InvalidRecords) and partition is not None:
            _name_records(answer, error, partition)
        return answer


_INT32 = Struct(">i")


def _without_tail(records: Any) -> memoryview:
    """Kafka passes over what follows the batch if it is not a whole batch itself."""
    view = memoryview(records)
    if len(view) < 17:
        return view
    size: int = _INT32.unpack_from(view, 8)[0] + 12
    rest = len(view) - size
    if rest <= 0 or size < 17:
        return view
    if rest < 12 or _INT32.unpack_from(view, size + 8)[0] + 12 > rest:
        return view[:size]
    return view


def _on_its_own(view: memoryview) -> memoryview:
    """The batch outlives its request (queue, tail): a small part of a large request must not keep all of it."""
    whole: Any = view.obj
    return memoryview(bytearray(view)) if len(whole) > PINNED_MAX * len(view) else view


def _explained(code: ErrorCode, view: memoryview) -> KafkaError:
    """What no version of the record format can be, Kafka explains; a wrong sum it does not."""
    length: int = _INT32.unpack_from(view, 8)[0] if len(view) >= 12 else LENGTH_MIN
    if length < LENGTH_MIN:
        return Explained(code, f"Record size {length} is less than the minimum record overhead ({LENGTH_MIN})")
    if len(view) > 16 and view[16] > MAGIC:
        return Explained(code, f"Invalid magic found in record: {view[16]}")
    return KafkaError(code)


def _is_one_batch(view: memoryview) -> bool:
    """Kafka looks at this while it reads the request, before any log is involved."""
    return len(view) >= 17 and view[16] == MAGIC and bool(_INT32.unpack_from(view, 8)[0] + 12 == len(view))


def _merged(topics: list[TopicProduceData]) -> list[TopicProduceData]:
    """One batch for each partition: of two that a request has for the same one, Kafka sees the last only."""
    if len(topics) == 1 or len({(topic.name, topic.topic_id) for topic in topics}) == len(topics):
        for topic in topics:
            data = topic.partition_data
            if len(data) > 1 and len({each.index for each in data}) < len(data):
                break
        else:
            return topics
    merged: dict[tuple[str, bytes], dict[int, PartitionProduceData]] = {}
    for topic in topics:
        partitions = merged.setdefault((topic.name, topic.topic_id), {})
        for each in topic.partition_data:
            partitions[each.index] = each
    return [
        TopicProduceData(name=name, topic_id=topic_id, partition_data=list(partitions.values()))
        for (name, topic_id), partitions in merged.items()
    ]


def _name_records(answer: PartitionProduceResponse, error: InvalidRecords, partition: Partition) -> None:
    """Kafka's sentences, which its clients show to their users."""
    where = f" in topic partition {partition.topic.name}-{partition.index}"
    keyless = error.code == ErrorCode.INVALID_RECORD
    named = [(index, text + where if keyless else text) for index, text in error.record_errors]
    answer.record_errors = [
        BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text) for index, text in named
    ]
    if keyless:
        shown = ", ".join(
            f"RecordError(batchIndex={index}, message='{text}')" for index, text in named[:ERRORS_SHOWN]
        )
        answer.error_message = (
            f"One or more records have been rejected due to {len(named)} record errors in total, "
            f"and only showing the first three errors at most: [{shown}]"
        )
    else:
        answer.error_message = "One or more records have been rejected due to invalid timestamp"
