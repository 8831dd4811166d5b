"""Idempotent producers: ids, sequences, duplicates, gaps, the wrap, new epochs, unknown producers."""

from __future__ import annotations

from headwater.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from headwater.wire.messages.produce import ProduceResponse
from tests.peers.prober import Session, scenario
from tests.peers.requests import made, produce_to, records

LAST = 2**31 - 1


def producer(session: Session) -> tuple[int, int]:
    """A new producer's id and epoch; a young Apache Kafka answers 14 until it holds its first block of ids."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    for _ in range(2000):
        answer = session.quietly(request, InitProducerIdResponse, 4)
        if answer.error_code != 14:
            break
    return answer.producer_id, answer.producer_epoch


def writes(
    session: Session, topic: str, label: str, producer_id: int, epoch: int, sequence: int, count: int = 1
) -> None:
    data = records(count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
    session.ask(label, produce_to(topic, data), ProduceResponse, 11)


def topic_of(session: Session, word: str) -> str:
    made(session, word)
    return session.name(word)


@scenario
def a_new_producer_in_every_version(session: Session) -> None:
    producer(session)
    for version in range(6):
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        session.ask("init", request, InitProducerIdResponse, version)


@scenario
def an_epoch_asked_for_without_a_transaction(session: Session) -> None:
    number, epoch = producer(session)
    cases = ((number, epoch), (number, -1), (-1, 3), (number, 5))
    for wanted, at in cases:
        request = InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=60_000, producer_id=wanted, producer_epoch=at
        )
        session.ask(f"epoch {at} known {wanted >= 0}", request, InitProducerIdResponse, 4)


@scenario
def an_empty_transactional_id(session: Session) -> None:
    request = InitProducerIdRequest(transactional_id="", transaction_timeout_ms=60_000)
    session.ask("empty", request, InitProducerIdResponse, 4)


@scenario
def sequences_in_order(session: Session) -> None:
    topic, (number, epoch) = topic_of(session, "order"), producer(session)
    for sequence in (0, 3, 6):
        writes(session, topic, f"at {sequence}", number, epoch, sequence, 3)


@scenario
def duplicates_of_the_last_five(session: Session) -> None:
    topic, (number, epoch) = topic_of(session, "duplicates"), producer(session)
    for sequence in range(8):
        writes(session, topic, f"at {sequence}", number, epoch, sequence)
    for sequence in (7, 6, 5, 4, 3, 2, 1, 0, 7, 8):
        writes(session, topic, f"again {sequence}", number, epoch, sequence)


@scenario
def duplicates_of_another_length(session: Session) -> None:
    topic, (number, epoch) = topic_of(session, "length"), producer(session)
    writes(session, topic, "three", number, epoch, 0, 3)
    for sequence, count in ((0, 2), (1, 2), (0, 4), (2, 1), (2, 3), (3, 1)):
        writes(session, topic, f"{count} from {sequence}", number, epoch, sequence, count)


@scenario
def gaps(session: Session) -> None:
    topic, (number, epoch) = topic_of(session, "gaps"), producer(session)
    writes(session, topic, "first", number, epoch, 0)
    for sequence in (2, 10, LAST, 1, 3):
        writes(session, topic, f"at {sequence}", number, epoch, sequence)


@scenario
def a_producer_nobody_knows_begins_anywhere(session: Session) -> None:
    topic = topic_of(session, "unknown")
    for number, sequence in ((7_000_001, 5), (7_000_002, 0), (7_000_003, LAST)):
        writes(session, topic, f"at {sequence}", number, 0, sequence)
        writes(session, topic, "next", number, 0, (sequence + 1) % 2**31)


@scenario
def the_wrap(session: Session) -> None:
    topic = topic_of(session, "wrap")
    writes(session, topic, "near the end", 7_000_010, 0, LAST - 1, 2)
    writes(session, topic, "from zero", 7_000_010, 0, 0, 2)
    writes(session, topic, "across", 7_000_011, 0, LAST - 1, 4)
    writes(session, topic, "after", 7_000_011, 0, 2, 1)
    writes(session, topic, "across again", 7_000_011, 0, LAST - 1, 4)


@scenario
def epochs(session: Session) -> None:
    topic, (number, epoch) = topic_of(session, "epochs"), producer(session)
    writes(session, topic, "epoch 0", number, epoch, 0, 2)
    writes(session, topic, "epoch 2 in the middle", number, epoch + 2, 2)
    writes(session, topic, "epoch 2 from zero", number, epoch + 2, 0)
    writes(session, topic, "epoch 1", number, epoch + 1, 0)
    writes(session, topic, "epoch 0 again", number, epoch, 2)
    writes(session, topic, "epoch 2 goes on", number, epoch + 2, 1)


@scenario
def producers_without_a_sequence(session: Session) -> None:
    topic, (number, epoch) = topic_of(session, "odd"), producer(session)
    writes(session, topic, "no sequence", number, epoch, -1)
    writes(session, topic, "no epoch", number, -1, 0)
    writes(session, topic, "no producer", -1, 0, 0)
    writes(session, topic, "negative", -5, 0, 0)
