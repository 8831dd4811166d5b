"""Produce: every version, every way to be wrong."""

from __future__ import annotations

import struct

from headwater.wire.messages.produce import ProduceRequest, ProduceResponse
from tests.peers.prober import Session, scenario
from tests.peers.requests import made, produce_to, records
from tests.peers.scenarios.groups import coordinated

NEWEST = 12


def topic_of(session: Session, word: str, **configs: str) -> str:
    topic = session.name(word)
    named = {key.replace("_", "."): value for key, value in configs.items()}
    made(session, word, configs=named)
    return topic


@scenario
def in_every_version(session: Session) -> None:
    topic = topic_of(session, "versions")
    for version in range(3, 13):
        session.ask("produce", produce_to(topic, records(3)), ProduceResponse, version)
        session.ask("acks 1", produce_to(topic, records(1), acks=1), ProduceResponse, version)


@scenario
def by_topic_id(session: Session) -> None:
    topic = session.name("id")
    topic_id = made(session, "id")
    session.ask("produce", produce_to(topic, records(3), topic_id=topic_id), ProduceResponse, 13)
    answer = session.quietly(produce_to(topic, records(3), topic_id=b"\x05" * 16), ProduceResponse, 13)
    session.note("unknown id", answer.responses[0].partition_responses[0].error_code)


@scenario
def unknown_places(session: Session) -> None:
    topic = topic_of(session, "place")
    for version in (3, 8, 9, NEWEST):
        session.ask("unknown topic", produce_to(session.name("no"), records(1)), ProduceResponse, version)
        session.ask("unknown partition", produce_to(topic, records(1), partition=7), ProduceResponse, version)
        session.ask(
            "negative partition", produce_to(topic, records(1), partition=-1), ProduceResponse, version
        )


@scenario
def acks_that_do_not_exist(session: Session) -> None:
    topic = topic_of(session, "acks")
    for acks in (2, -2, 100):
        session.ask(f"acks {acks}", produce_to(topic, records(1), acks=acks), ProduceResponse, NEWEST)


@scenario
def acks_0_with_an_error_closes_the_connection(session: Session) -> None:
    session.asks_and_is_closed("unknown topic", produce_to(session.name("no"), records(1), acks=0), 9)


@scenario
def nothing_to_produce(session: Session) -> None:
    topic = topic_of(session, "nothing")
    session.ask("no topics", ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[]), ProduceResponse, NEWEST)
    session.ask("empty records", produce_to(topic, b""), ProduceResponse, NEWEST)


def patched(data: bytearray, position: int, form: str, value: int, *, seal: bool = True) -> bytearray:
    """The batch with one field changed and, unless told otherwise, its checksum made right again."""
    from headwater.wire.batch import crc32c

    struct.pack_into(form, data, position, value)
    if seal:
        struct.pack_into(">I", data, 17, crc32c(memoryview(data)[21:]))
    return data


@scenario
def batches_that_lie(session: Session) -> None:
    topic = topic_of(session, "lies")
    cases = {
        "wrong checksum": patched(records(2), 17, ">I", 12345, seal=False),
        "magic 3": patched(records(2), 16, ">b", 3),
        "magic 1": patched(records(2), 16, ">b", 1),
        "magic 0": patched(records(2), 16, ">b", 0),
        "length too long": patched(records(2), 8, ">i", 5000),
        "length too short": patched(records(2), 8, ">i", 60),
        "length tiny": patched(records(2), 8, ">i", 3),
        "length negative": patched(records(2), 8, ">i", -1),
        "base offset 7": patched(records(2), 0, ">q", 7),
        "control bit": patched(records(2), 21, ">h", 0x20),
        "codec 5": patched(records(2), 21, ">h", 5),
        "codec 7": patched(records(2), 21, ">h", 7),
        "count 3 of 2": patched(records(2), 57, ">i", 3),
        "count 1 of 2": patched(records(2), 57, ">i", 1),
        "count 0": patched(records(2), 57, ">i", 0),
        "count negative": patched(records(2), 57, ">i", -1),
        "last delta 5": patched(records(2), 23, ">i", 5),
        "last delta -1": patched(records(2), 23, ">i", -1),
        "transactional without a producer": patched(records(2), 21, ">h", 0x10),
        "log append time set by the client": patched(records(2), 21, ">h", 0x08),
        "gzip of garbage": patched(records(2), 21, ">h", 1),
        "zstd of garbage": patched(records(2), 21, ">h", 4),
        "unknown attribute bits": patched(records(2), 21, ">h", 0x4000),
    }
    for label, data in cases.items():
        session.ask(label, produce_to(topic, data), ProduceResponse, NEWEST)
    session.ask("zstd in version 6", produce_to(topic, records(2, codec=4)), ProduceResponse, 6)


@scenario
def more_than_one_batch(session: Session) -> None:
    topic = topic_of(session, "two")
    session.ask("two", produce_to(topic, bytes(records(1)) + bytes(records(1))), ProduceResponse, NEWEST)
    session.ask("and a tail", produce_to(topic, bytes(records(1)) + b"tail"), ProduceResponse, NEWEST)


@scenario
def records_that_do_not_parse(session: Session) -> None:
    """Byte 64 is left out: Apache Kafka stores offset deltas that lie (uncompressed), we refuse them."""
    topic = topic_of(session, "records")
    for position in (61, 62, 63, 65, 66):
        for value in (0, 1, 127, 255):
            data = records(2)
            struct.pack_into(">B", data, position, value)
            session.ask(
                f"{position}={value}", produce_to(topic, patched(data, 0, ">q", 0)), ProduceResponse, NEWEST
            )


@scenario
def every_codec(session: Session) -> None:
    topic = topic_of(session, "codecs")
    for codec in (0, 1, 2, 3, 4):
        session.ask(f"codec {codec}", produce_to(topic, records(20, codec=codec)), ProduceResponse, NEWEST)


@scenario
def a_batch_too_large(session: Session) -> None:
    topic = topic_of(session, "large", max_message_bytes="1000")
    session.ask("large", produce_to(topic, records(1, value=b"v" * 2000)), ProduceResponse, NEWEST)
    session.ask("large", produce_to(topic, records(1, value=b"v" * 2000)), ProduceResponse, 7)
    session.ask("small", produce_to(topic, records(1)), ProduceResponse, NEWEST)


@scenario
def keyless_records_on_a_compacted_topic(session: Session) -> None:
    topic = topic_of(session, "compacted", cleanup_policy="compact")
    for version in (7, 8, NEWEST):
        session.ask("keyless", produce_to(topic, records(3, key=None)), ProduceResponse, version)
    session.ask("keyed", produce_to(topic, records(3)), ProduceResponse, NEWEST)


@scenario
def log_append_time(session: Session) -> None:
    topic = session.name("append-time")
    made(session, "append-time", configs={"message.timestamp.type": "LogAppendTime"})
    session.ask("append time", produce_to(topic, records(3)), ProduceResponse, NEWEST)


@scenario
def timestamps_outside_the_limits(session: Session) -> None:
    topic = session.name("limits")
    limits = {"message.timestamp.before.max.ms": "3600000", "message.timestamp.after.max.ms": "3600000"}
    made(session, "limits", configs=limits)
    answer = session.quietly(produce_to(topic, records(2, at=1000)), ProduceResponse, NEWEST)
    part = answer.responses[0].partition_responses[0]
    session.note(
        "too old", [part.error_code, part.base_offset, [row.batch_index for row in part.record_errors]]
    )
    answer = session.quietly(produce_to(topic, records(2, at=1 << 45)), ProduceResponse, NEWEST)
    part = answer.responses[0].partition_responses[0]
    session.note(
        "too new", [part.error_code, part.base_offset, [row.batch_index for row in part.record_errors]]
    )


@scenario
def transactional_without_a_transaction(session: Session) -> None:
    topic = topic_of(session, "no-txn")
    batch = records(1, producer_id=123456, producer_epoch=0, base_sequence=0, transactional=True)
    request = produce_to(topic, batch, transactional_id=coordinated(session, "unknown", kind=1))
    for _ in range(2000):  # a young Apache Kafka has the coordinator's topic a moment later
        answer = session.quietly(request, ProduceResponse, 9)
        if answer.responses[0].partition_responses[0].error_code != 19:
            break
    for version in (3, 9, 11):
        session.ask("unknown transaction", request, ProduceResponse, version)
    session.ask("no transactional id", produce_to(topic, batch), ProduceResponse, 9)
