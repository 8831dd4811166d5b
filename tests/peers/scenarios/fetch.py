"""Fetch: versions, limits, the long poll, offsets out of range, epochs, isolation, sessions."""

from __future__ import annotations

from headwater.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from headwater.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from headwater.wire.messages.produce import ProduceResponse
from tests.peers.prober import Session, scenario
from tests.peers.requests import fetch_from, made, produce_to, records

NEWEST = 12  # the last version that names topics


def filled(session: Session, word: str, *counts: int, partitions: int = 1) -> str:
    topic = session.name(word)
    made(session, word, partitions)
    for count in counts:
        session.quietly(produce_to(topic, records(count)), ProduceResponse, 9)
    return topic


@scenario
def in_every_version(session: Session) -> None:
    topic = filled(session, "versions", 2, 3)
    for version in range(4, 13):
        session.ask("fetch", fetch_from(topic), FetchResponse, version)


@scenario
def by_topic_id(session: Session) -> None:
    topic = session.name("id")
    topic_id = made(session, "id")
    session.quietly(produce_to(topic, records(3)), ProduceResponse, 9)
    for version in range(13, 19):
        session.ask("fetch", fetch_from(topic, topic_id=topic_id), FetchResponse, version)
        answer = session.quietly(fetch_from(topic, topic_id=b"\x09" * 16), FetchResponse, version)
        part = answer.responses[0].partitions[0]
        session.note(
            f"unknown id v{version}", [answer.error_code, part.error_code, part.high_watermark, part.records]
        )


@scenario
def offsets_inside_batches(session: Session) -> None:
    topic = filled(session, "inside", 4, 4, 4)
    for offset in range(13):
        session.ask(f"from {offset}", fetch_from(topic, offset), FetchResponse, NEWEST)


@scenario
def offsets_out_of_range(session: Session) -> None:
    topic = filled(session, "range", 5)
    for offset in (6, 100, -1, -2, 2**62):
        session.ask(f"from {offset}", fetch_from(topic, offset), FetchResponse, NEWEST)
    cut = DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=3)])
    session.quietly(DeleteRecordsRequest(topics=[cut], timeout_ms=10_000), DeleteRecordsResponse, 2)
    for offset in (0, 2, 3, 4):
        session.ask(f"after a cut from {offset}", fetch_from(topic, offset), FetchResponse, NEWEST)


@scenario
def unknown_places(session: Session) -> None:
    topic = filled(session, "place", 1)
    for version in (4, 7, 11, NEWEST):
        session.ask("unknown topic", fetch_from(session.name("no")), FetchResponse, version)
        session.ask("unknown partition", fetch_from(topic, partition=9), FetchResponse, version)
        session.ask("negative partition", fetch_from(topic, partition=-1), FetchResponse, version)


@scenario
def limits_in_bytes(session: Session) -> None:
    topic = filled(session, "limits", 3, 3, 3)
    size = len(records(3))
    for limit in (0, 1, size - 1, size, 2 * size, 100 * size):
        session.ask(f"partition {limit}", fetch_from(topic, partition_max_bytes=limit), FetchResponse, NEWEST)
        session.ask(f"response {limit}", fetch_from(topic, max_bytes=limit), FetchResponse, NEWEST)


@scenario
def several_partitions(session: Session) -> None:
    topic = session.name("several")
    made(session, "several", 3)
    for partition in range(3):
        session.quietly(produce_to(topic, records(2), partition=partition), ProduceResponse, 9)
    parts = [
        FetchPartition(partition=number, fetch_offset=0, partition_max_bytes=1 << 20)
        for number in (2, 0, 1, 5)
    ]
    for limit in (1 << 20, 100):
        request = FetchRequest(
            max_wait_ms=0, min_bytes=0, max_bytes=limit, topics=[FetchTopic(topic=topic, partitions=parts)]
        )
        session.ask(f"limit {limit}", request, FetchResponse, NEWEST)


@scenario
def the_long_poll_ends_with_a_record(session: Session) -> None:
    topic = filled(session, "poll")
    session.send(fetch_from(topic, max_wait_ms=20_000, min_bytes=1), NEWEST, on="poll")
    session.quietly(produce_to(topic, records(2)), ProduceResponse, 9)
    session.receive("poll", FetchResponse, NEWEST, on="poll")


@scenario
def the_long_poll_ends_with_its_time(session: Session) -> None:
    topic = filled(session, "time", 1)
    session.ask("at the end", fetch_from(topic, 1, max_wait_ms=200, min_bytes=1), FetchResponse, NEWEST)
    session.ask(
        "more than there is", fetch_from(topic, 0, max_wait_ms=200, min_bytes=5000), FetchResponse, NEWEST
    )


@scenario
def leader_epochs(session: Session) -> None:
    topic = filled(session, "epochs", 2)
    for epoch in (-1, 0, 1, 5):
        for version in (9, 11, NEWEST):
            session.ask(f"epoch {epoch}", fetch_from(topic, epoch=epoch), FetchResponse, version)


@scenario
def an_epoch_fetched_before(session: Session) -> None:
    topic = filled(session, "diverging", 2)
    for epoch in (-1, 0, 3):
        request = fetch_from(topic, 1)
        request.topics[0].partitions[0].last_fetched_epoch = epoch
        session.ask(f"last fetched {epoch}", request, FetchResponse, NEWEST)


@scenario
def read_committed_without_transactions(session: Session) -> None:
    topic = filled(session, "committed", 2)
    for version in (4, 11, NEWEST):
        session.ask("committed", fetch_from(topic, isolation=1), FetchResponse, version)
    session.ask("no such isolation", fetch_from(topic, isolation=7), FetchResponse, NEWEST)


@scenario
def an_unknown_session(session: Session) -> None:
    topic = filled(session, "session", 1)
    for version in (7, 11, NEWEST):
        request = fetch_from(topic, session_id=77, session_epoch=3)
        session.ask("unknown session", request, FetchResponse, version)


@scenario
def nothing_asked(session: Session) -> None:
    session.ask("no topics", FetchRequest(max_wait_ms=0, min_bytes=0, topics=[]), FetchResponse, NEWEST)
