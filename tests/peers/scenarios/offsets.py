"""ListOffsets by time and by name; OffsetForLeaderEpoch."""

from __future__ import annotations

from headwater.wire.messages.list_offsets import ListOffsetsResponse
from headwater.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from headwater.wire.messages.produce import ProduceResponse
from tests.peers.prober import Session, scenario
from tests.peers.requests import WALL_MS, made, offsets_at, produce_to, records

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5


def timed(session: Session, word: str, *starts: int, **configs: str) -> str:
    topic = session.name(word)
    made(session, word, configs=configs)
    for start in starts:
        session.quietly(produce_to(topic, records(3, at=WALL_MS + start)), ProduceResponse, 9)
    return topic


@scenario
def in_every_version(session: Session) -> None:
    topic = timed(session, "versions", 0, 100)
    for version in range(1, 12):
        for at in (LATEST, EARLIEST, WALL_MS + 1):
            session.ask(f"at {at}", offsets_at(topic, at), ListOffsetsResponse, version)


@scenario
def by_time(session: Session) -> None:
    topic = timed(session, "time", 0, 100, 50)  # the third batch is older than the second
    for delta in (-5, 0, 1, 2, 3, 49, 50, 51, 52, 53, 99, 100, 101, 102, 103, 10**9):
        session.ask(f"+{delta}", offsets_at(topic, WALL_MS + delta), ListOffsetsResponse, 7)
    session.ask("time 0", offsets_at(topic, 0), ListOffsetsResponse, 7)


@scenario
def by_time_in_compressed_batches(session: Session) -> None:
    topic = session.name("compressed")
    made(session, "compressed")
    for codec in (1, 2, 3, 4):
        data = records(5, at=WALL_MS + codec * 10, codec=codec)
        session.quietly(produce_to(topic, data), ProduceResponse, 9)
    for delta in (0, 10, 13, 14, 15, 24, 32, 44, 45):
        session.ask(f"+{delta}", offsets_at(topic, WALL_MS + delta), ListOffsetsResponse, 7)


@scenario
def by_special_names(session: Session) -> None:
    topic = timed(session, "names", 0, 100, 50)
    for at in (MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, -6, -7):
        for version in (7, 8, 9, 10, 11):
            session.ask(f"at {at}", offsets_at(topic, at), ListOffsetsResponse, version)


@scenario
def of_an_empty_topic(session: Session) -> None:
    topic = timed(session, "empty")
    for at in (LATEST, EARLIEST, MAX_TIMESTAMP, WALL_MS):
        for version in (1, 7, 10):
            session.ask(f"at {at}", offsets_at(topic, at), ListOffsetsResponse, version)


@scenario
def unknown_places(session: Session) -> None:
    topic = timed(session, "place", 0)
    for version in (1, 5, 7, 10):
        session.ask("unknown topic", offsets_at(session.name("no"), LATEST), ListOffsetsResponse, version)
        session.ask("unknown partition", offsets_at(topic, LATEST, partition=9), ListOffsetsResponse, version)
    session.ask("twice", offsets_at(topic, LATEST, EARLIEST), ListOffsetsResponse, 7)


@scenario
def epochs_and_isolation(session: Session) -> None:
    topic = timed(session, "epochs", 0)
    for epoch in (-1, 0, 1, 9):
        session.ask(f"epoch {epoch}", offsets_at(topic, LATEST, epoch=epoch), ListOffsetsResponse, 7)
    session.ask("committed", offsets_at(topic, LATEST, isolation=1), ListOffsetsResponse, 7)


@scenario
def ends_of_leader_epochs(session: Session) -> None:
    topic = timed(session, "ends", 0, 50)

    def asked(
        epoch: int, current: int = -1, partition: int = 0, name: str = topic
    ) -> OffsetForLeaderEpochRequest:
        part = OffsetForLeaderPartition(partition=partition, current_leader_epoch=current, leader_epoch=epoch)
        return OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=name, partitions=[part])])

    for version in (2, 3, 4):
        for epoch in (-1, 0, 1, 7):
            session.ask(f"epoch {epoch}", asked(epoch), OffsetForLeaderEpochResponse, version)
        session.ask("current 0", asked(0, 0), OffsetForLeaderEpochResponse, version)
        session.ask("current 4", asked(0, 4), OffsetForLeaderEpochResponse, version)
        session.ask("unknown partition", asked(0, partition=9), OffsetForLeaderEpochResponse, version)
        session.ask("unknown topic", asked(0, name=session.name("no")), OffsetForLeaderEpochResponse, version)
