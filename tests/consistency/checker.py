"""Finds what a log must never do in a history of sends, polls and transactions.

The model follows the questions of Jepsen's Kafka workload, over histories of our own form. A history is a list
of `Event`s; each value is sent once, so a value names its send. Offsets come from acknowledgements and polls.

    inconsistent-offset   two values at one offset of a partition
    duplicate             one value at two offsets of a partition
    lost-write            an acknowledged (or once seen) value missing below an offset that was read afterwards
    unseen                an acknowledged value missing from the final read
    aborted-read          a value of an aborted transaction was returned to a read_committed reader
    precommitted-read     a value was returned before its transaction began to commit
    nonmonotonic-send     one producer's acknowledged offsets of a partition went back
    nonmonotonic-poll     a reader's offsets went back without a rebalance
    skipped-poll          a reader passed over a value that others read at an offset between its own

Pure: no clock, no client. `PLANTS` breaks a sound history on purpose, one way for each anomaly.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple

Partition = tuple[str, int]


class Sent(NamedTuple):
    """A value handed to a producer and what became of it."""

    partition: Partition
    value: int
    offset: int | None  # known once acknowledged


class Read(NamedTuple):
    partition: Partition
    offset: int
    value: int


class Event(NamedTuple):
    """One thing that one client did, from `begin` to `end` on one monotonic clock.

    kind     send | poll | final
    outcome  ok: acknowledged or committed; fail: surely did not happen (aborted); info: nobody knows
    """

    kind: str
    outcome: str
    client: str
    begin: float
    end: float
    sent: tuple[Sent, ...] = ()
    read: tuple[Read, ...] = ()
    commit_begin: float | None = None  # of a transaction
    fresh: bool = False  # this poll is the client's first after (re)assignment


Anomalies = dict[str, list[str]]


def check(history: list[Event]) -> Anomalies:
    """Every anomaly found, by name, each as one line."""
    found: Anomalies = defaultdict(list)
    log = _offsets(history, found)
    sends = {sent.value: (event, sent) for event in history for sent in event.sent}
    _lost(history, log, sends, found)
    _transactions(history, sends, found)
    _producers(history, found)
    _readers(history, log, found)
    return dict(found)


def _reads(history: list[Event]) -> Iterable[tuple[Event, Read]]:
    return ((event, read) for event in history for read in event.read)


def _offsets(history: list[Event], found: Anomalies) -> dict[Partition, dict[int, int]]:
    """Which value stands at which offset, from everybody's view."""
    log: dict[Partition, dict[int, int]] = defaultdict(dict)
    places: dict[tuple[Partition, int], int] = {}
    seen = [(sent.partition, sent.offset, sent.value) for event in history for sent in event.sent
            if event.outcome == "ok" and sent.offset is not None]  # fmt: skip
    seen += [(read.partition, read.offset, read.value) for _, read in _reads(history)]
    for partition, offset, value in seen:
        other = log[partition].setdefault(offset, value)
        if other != value:
            found["inconsistent-offset"].append(f"{partition} offset {offset} is {other} and {value}")
        before = places.setdefault((partition, value), offset)
        if before != offset:
            found["duplicate"].append(f"{partition} value {value} stands at {before} and {offset}")
    return log


def _lost(
    history: list[Event],
    log: dict[Partition, dict[int, int]],
    sends: dict[int, tuple[Event, Sent]],
    found: Anomalies,
) -> None:
    final: dict[Partition, set[int]] = defaultdict(set)
    finished = False
    for event in history:
        if event.kind == "final":
            finished = True
            for read in event.read:
                final[read.partition].add(read.value)
    if not finished:
        return
    for partition, offsets in log.items():
        highest = max((offset for offset, value in offsets.items() if value in final[partition]), default=-1)
        for offset, value in offsets.items():
            if value in final[partition]:
                continue
            known = sends.get(value)
            if known is not None and known[0].outcome == "fail":
                continue
            name = "lost-write" if offset < highest else "unseen"
            found[name].append(f"{partition} value {value} was at {offset} and is not in the final read")


def _transactions(history: list[Event], sends: dict[int, tuple[Event, Sent]], found: Anomalies) -> None:
    for event, read in _reads(history):
        known = sends.get(read.value)
        if known is None:
            continue
        writer = known[0]
        if writer.outcome == "fail":
            found["aborted-read"].append(
                f"{read.partition} value {read.value} of an aborted transaction was read"
            )
        if writer.commit_begin is not None and event.end < writer.commit_begin:
            found["precommitted-read"].append(
                f"{read.partition} value {read.value} was read before its commit"
            )


def _producers(history: list[Event], found: Anomalies) -> None:
    last: dict[tuple[str, Partition], int] = {}
    for event in sorted(
        (one for one in history if one.kind == "send" and one.outcome == "ok"), key=lambda e: e.begin
    ):
        for sent in event.sent:
            if sent.offset is None:
                continue
            key = (event.client, sent.partition)
            if sent.offset <= last.get(key, -1):
                found["nonmonotonic-send"].append(
                    f"{event.client} wrote {sent.partition} {sent.offset} after {last[key]}"
                )
            last[key] = sent.offset


def _readers(history: list[Event], log: dict[Partition, dict[int, int]], found: Anomalies) -> None:
    last: dict[tuple[str, Partition], int] = {}
    order = {partition: sorted(offsets) for partition, offsets in log.items()}
    ranks = {
        partition: {offset: rank for rank, offset in enumerate(every)} for partition, every in order.items()
    }
    for event in history:
        if event.kind not in ("poll", "final"):
            continue
        if event.fresh:
            last = {key: offset for key, offset in last.items() if key[0] != event.client}
        for read in event.read:
            key = (event.client, read.partition)
            before = last.get(key)
            if before is not None:
                if read.offset <= before:
                    found["nonmonotonic-poll"].append(
                        f"{event.client} read {read.partition} {read.offset} after {before}"
                    )
                elif ranks[read.partition][read.offset] > ranks[read.partition][before] + 1:
                    missed = order[read.partition][ranks[read.partition][before] + 1]
                    found["skipped-poll"].append(
                        f"{event.client} went from {before} to {read.offset} of {read.partition}, past {missed}"
                    )
            last[key] = read.offset


# --- planted faults: each takes a sound history and breaks it in one way --------------------------------------


def _change_reads(
    history: list[Event], client: str, change: Callable[[list[Read]], list[Read]]
) -> list[Event]:
    done, result = False, []
    for event in history:
        if not done and event.client.startswith(client) and len(event.read) > 3:
            event, done = event._replace(read=tuple(change(list(event.read)))), True
        result.append(event)
    assert done, f"no poll of {client} is long enough to plant a fault in"
    return result


def _drop_final(history: list[Event], where: int) -> list[Event]:
    return _change_reads(history, "final", lambda reads: reads[:where] + reads[where + 1 :])


def _other_value(history: list[Event]) -> list[Event]:
    return _change_reads(history, "final", lambda reads: [reads[0]._replace(value=-7), *reads[1:]])


def _moved(history: list[Event]) -> list[Event]:
    return _change_reads(
        history, "final", lambda reads: [*reads, reads[0]._replace(offset=reads[-1].offset + 10**6)]
    )


def _aborted(history: list[Event]) -> list[Event]:
    value = next(read.value for event in history if event.kind == "final" for read in event.read)
    return [e._replace(outcome="fail") if any(s.value == value for s in e.sent) else e for e in history]


def _early(history: list[Event]) -> list[Event]:
    value = next(read.value for event in history if event.kind == "final" for read in event.read)
    end = max(event.end for event in history) + 1
    return [e._replace(commit_begin=end) if any(s.value == value for s in e.sent) else e for e in history]


def _backward_send(history: list[Event]) -> list[Event]:
    for number, event in enumerate(history):
        if event.kind == "send" and event.outcome == "ok" and event.sent and event.sent[0].offset is not None:
            again = event._replace(begin=event.end + 10**6, end=event.end + 10**6)
            return [*history[: number + 1], *history[number + 1 :], again]
    raise AssertionError("no acknowledged send")


PLANTS: dict[str, Callable[[list[Event]], list[Event]]] = {
    "inconsistent-offset": _other_value,
    "duplicate": _moved,
    "lost-write": lambda history: _drop_final(history, 0),
    "unseen": lambda history: _change_reads(
        history, "final", lambda reads: [r for r in reads if r.partition != reads[0].partition]
    ),
    "aborted-read": _aborted,
    "precommitted-read": _early,
    "nonmonotonic-send": _backward_send,
    "nonmonotonic-poll": lambda history: _change_reads(
        history, "reader", lambda reads: [reads[1], reads[0], *reads[2:]]
    ),
    "skipped-poll": lambda history: _change_reads(history, "final", lambda reads: [reads[0], *reads[2:]]),
}
