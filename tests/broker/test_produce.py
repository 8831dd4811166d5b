"""Produce: what is appended, what is refused and how, and when it is answered."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.testing import batches
from headwater.wire import batch as record_batch
from headwater.wire.errors import ErrorCode
from headwater.wire.messages.api_versions import ApiVersionsRequest
from headwater.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

from .conftest import Client, World, produce_request

NOW = 1_700_000_000_000


def batch(*values: bytes, key: bytes | None = None, now_ms: int = NOW, **fields: Any) -> bytearray:
    return record_batch.build([(key, value) for value in values or (b"v",)], now_ms=now_ms, **fields)


def corrupt(good: bytearray) -> bytearray:
    good[-1] ^= 1
    return good


def test_batches_get_consecutive_offsets(client: Client) -> None:
    client.create("t")
    first = client.produce("t", batch(b"a", b"b"))
    second = client.produce("t", batch(b"c"))
    assert (first.error_code, first.base_offset, first.log_append_time_ms, first.log_start_offset) == (0, 0, -1, 0)
    assert (second.base_offset, second.error_message, second.record_errors) == (2, None, [])


@pytest.mark.parametrize("acks", [1, -1])
def test_the_answer_waits_until_the_batch_is_durable(world: World, client: Client, acks: int) -> None:
    client.create("t")
    pending = client.submit(produce_request("t", batch(), acks=acks), 11)
    assert not pending.done
    assert world.broker.partition("t", 0).high_watermark == 0  # type: ignore[union-attr]
    world.log.commit()
    assert pending.done and pending.response.responses[0].partition_responses[0].error_code == 0


@pytest.mark.parametrize("version", range(3, 14))
def test_every_version_appends(client: Client, version: int) -> None:
    topic_id = client.create("t")
    data = TopicProduceData(
        name="t", topic_id=topic_id, partition_data=[PartitionProduceData(index=0, records=batch())]
    )
    (topic,) = client.ask(ProduceRequest(acks=-1, topic_data=[data]), version).responses
    assert topic.partition_responses[0].error_code == 0
    assert (topic.name, topic.topic_id) == (("t", bytes(16)) if version < 13 else ("", topic_id))


def test_an_unknown_topic_id_is_named_as_such(client: Client) -> None:
    client.create("t")
    data = TopicProduceData(topic_id=b"x" * 16, partition_data=[PartitionProduceData(index=0, records=batch())])
    (topic,) = client.ask(ProduceRequest(acks=-1, topic_data=[data]), 13).responses
    assert topic.topic_id == b"x" * 16
    assert topic.partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_acks_0_is_not_answered(world: World, client: Client) -> None:
    client.create("t")
    pending = client.submit(produce_request("t", batch(), acks=0), 9)
    assert pending.done and pending.response is None and not pending.closed
    world.settle()
    assert world.broker.partition("t", 0).high_watermark == 1  # type: ignore[union-attr]


def test_acks_0_with_an_error_closes_the_connection(client: Client) -> None:
    pending = client.submit(produce_request("none", batch(), acks=0), 9)
    assert pending.done and pending.response is None and pending.closed


def test_other_acks_are_refused_for_every_partition(client: Client) -> None:
    client.create("t")
    answer = client.produce("t", batch(), acks=2)
    assert (answer.error_code, answer.base_offset, answer.log_start_offset) == (21, -1, -1)
    assert client.produce("t", batch()).base_offset == 0


@pytest.mark.parametrize(
    ("records", "code", "log_start_offset"),
    [
        (None, ErrorCode.INVALID_RECORD, -1),
        (b"", ErrorCode.INVALID_RECORD, -1),
        (batch()[:50], ErrorCode.INVALID_RECORD, -1),
        (batch()[:-1], ErrorCode.INVALID_RECORD, -1),
        (batch() + batch(), ErrorCode.INVALID_RECORD, -1),
        (corrupt(batch()), ErrorCode.CORRUPT_MESSAGE, -1),
        (batch(base_offset=77), ErrorCode.INVALID_RECORD, 0),
        (batch(control=True), ErrorCode.INVALID_RECORD, 0),
        (batch(b"x" * 2_000_000), ErrorCode.MESSAGE_TOO_LARGE, -1),
        (batch(producer_id=5, producer_epoch=0, base_sequence=-1), ErrorCode.INVALID_RECORD, 0),
    ],
)
def test_a_bad_batch_is_refused_as_kafka_does(
    client: Client, records: Any, code: ErrorCode, log_start_offset: int
) -> None:
    client.create("t")
    answer = client.produce("t", records)
    assert (ErrorCode(answer.error_code), answer.base_offset) == (code, -1)
    assert (answer.log_start_offset, answer.record_errors, answer.error_message) == (log_start_offset, [], None)
    assert client.produce("t", batch()).base_offset == 0


def test_a_format_of_the_future_is_named(client: Client) -> None:
    client.create("t")
    future = batch()
    future[16] = 3
    answer = client.produce("t", future)
    assert (answer.error_code, answer.error_message) == (
        ErrorCode.CORRUPT_MESSAGE, "Invalid magic found in record: 3",
    )  # fmt: skip
    tiny = batch()
    tiny[8:12] = (3).to_bytes(4, "big")
    assert client.produce("t", tiny).error_message == "Record size 3 is less than the minimum record overhead (14)"


def test_every_case_of_the_batch_table_is_answered_with_its_code(client: Client) -> None:
    client.create("t", message_timestamp_after_max_ms=str(2**63 - 1))
    for case in batches.cases():
        answer = client.produce("t", bytearray(case.data), version=11)
        # Where they differ the case says why; what Kafka decides about a whole request is decided in Produce here too.
        assert answer.error_code in (case.answer, case.kafka), case.name


def test_a_piece_of_a_batch_behind_the_batch_is_passed_over(client: Client) -> None:
    client.create("t")
    assert client.produce("t", batch() + b"1").error_code == 0
    assert client.produce("t", batch() + batch()[:-1]).error_code == 0
    data = client.fetch("t", 0)
    assert len(data.records) == 2 * len(batch())


def test_one_bad_partition_does_not_harm_the_others(client: Client) -> None:
    client.create("t", 2)
    data = [
        TopicProduceData(name="none", partition_data=[PartitionProduceData(index=0, records=batch())]),
        TopicProduceData(
            name="t",
            partition_data=[
                PartitionProduceData(index=9, records=batch()),
                PartitionProduceData(index=0, records=corrupt(batch())),
                PartitionProduceData(index=1, records=batch()),
            ],
        ),
    ]
    response = client.ask(ProduceRequest(acks=1, topic_data=data), 9)
    answers = [(topic.name, p.index, p.error_code) for topic in response.responses for p in topic.partition_responses]
    assert answers == [("t", 0, 2), ("t", 1, 0), ("t", 9, 3), ("none", 0, 3)]


def test_of_two_batches_for_one_partition_the_last_counts(client: Client) -> None:
    client.create("t")
    both = (batch(b"a", b"b"), batch(b"c"))
    partitions = [PartitionProduceData(index=0, records=each) for each in both]
    request = ProduceRequest(acks=1, topic_data=[TopicProduceData(name="t", partition_data=partitions)])
    ((answer,),) = [topic.partition_responses for topic in client.ask(request, 9).responses]
    assert answer.base_offset == 0
    assert client.produce("t", batch()).base_offset == 1


def test_a_record_without_key_is_refused_by_a_compacted_topic_and_named(client: Client) -> None:
    client.create("t", cleanup_policy="compact")
    good = batch(b"a", key=b"k")
    assert client.produce("t", good).error_code == 0
    bad = record_batch.build([(b"k", b"1"), (None, b"2"), (None, b"3")], now_ms=NOW)
    answer = client.produce("t", bad)
    sentence = "Compacted topic cannot accept message without key in topic partition t-0"
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [(each.batch_index, each.batch_index_error_message) for each in answer.record_errors] == [
        (1, sentence), (2, sentence),
    ]  # fmt: skip
    assert answer.error_message == (
        "One or more records have been rejected due to 2 record errors in total, and only showing the first three "
        f"errors at most: [RecordError(batchIndex=1, message='{sentence}'), "
        f"RecordError(batchIndex=2, message='{sentence}')]"
    )
    assert client.produce("t", bad, version=7).error_code == ErrorCode.INVALID_RECORD


def test_a_timestamp_too_far_ahead_is_refused_and_named(client: Client) -> None:
    client.create("t")
    answer = client.produce("t", batch(now_ms=NOW + 2 * 3_600_000))
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [each.batch_index for each in answer.record_errors] == [0]
    assert answer.error_message == "One or more records have been rejected due to invalid timestamp"


def test_max_message_bytes_of_the_topic_counts(client: Client) -> None:
    client.create("t", max_message_bytes="100")
    assert client.produce("t", batch(b"x" * 200)).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert client.produce("t", batch(b"x")).error_code == 0


def test_log_append_time_is_answered_and_stored(client: Client) -> None:
    client.create("t", message_timestamp_type="LogAppendTime")
    answer = client.produce("t", batch(now_ms=5))
    assert answer.log_append_time_ms == NOW
    (record,) = record_batch.records(client.fetch("t", 0).records)
    assert record.timestamp == NOW


def test_a_repeated_batch_is_answered_with_its_first_offset(client: Client) -> None:
    client.create("t")
    first = batch(b"1", b"2", producer_id=9, producer_epoch=0, base_sequence=0)
    assert client.produce("t", bytearray(first)).base_offset == 0
    again = client.produce("t", bytearray(first))
    assert (again.error_code, again.base_offset, again.log_append_time_ms) == (0, 0, NOW)
    gap = client.produce("t", batch(producer_id=9, producer_epoch=0, base_sequence=5))
    assert (gap.error_code, gap.log_start_offset) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 0)
    assert client.produce("t", batch(producer_id=9, producer_epoch=1, base_sequence=0)).error_code == 0
    old = client.produce("t", batch(producer_id=9, producer_epoch=0, base_sequence=2))
    assert old.error_code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_transactional_batch_needs_a_transactional_id(client: Client) -> None:
    client.create("t")
    data = batch(producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    answer = client.produce("t", data)
    assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_a_transactional_batch_outside_a_transaction_is_refused(client: Client) -> None:
    client.create("t")
    data = batch(producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    answer = client.produce("t", data, transactional_id="tx")
    assert answer.error_code != 0 and answer.base_offset == -1
    assert client.fetch("t", 0, min_bytes=0).high_watermark == 0


def test_zstd_is_unknown_to_old_versions(client: Client) -> None:
    client.create("t")
    old, new = (client.produce("t", batch(b"x" * 100, codec=4), version=version) for version in (6, 7))
    assert (old.error_code, new.error_code) == (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, 0)


def test_clients_may_not_write_to_internal_topics(client: Client, world: World) -> None:
    world.log.create_topic("__consumer_offsets", 1, {})
    assert client.produce("__consumer_offsets", batch(key=b"k")).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_after_a_failed_sync_nothing_is_acknowledged(world: World, client: Client) -> None:
    client.create("t")
    pending = client.submit(produce_request("t", batch()), 11)
    window = world.log.take_window()
    assert window is not None
    world.log.window_failed(window, OSError(5, "Input/output error"))
    assert pending.response.responses[0].partition_responses[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    later = client.submit(produce_request("t", batch()), 11)
    assert later.response.responses[0].partition_responses[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert client.submit(ApiVersionsRequest(), 0).response.error_code == 0
    world.bugs.clear()


def test_what_was_acknowledged_is_there_after_power_loss(world: World, client: Client) -> None:
    client.create("t")
    client.produce("t", batch(b"kept"))
    client.submit(produce_request("t", batch(b"never acknowledged")), 11)
    world.crash(seed=1)
    values = [bytes(r.value or b"") for r in record_batch.records(world.client().fetch("t", 0).records)]
    assert values[:1] == [b"kept"]
