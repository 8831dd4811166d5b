"""The differential prober: the same raw requests to Apache Kafka and to ours, answers compared field by field.

A scenario is a function that drives a `Session`. Each answer becomes a tree of plain values in which only
what a broker chooses freely (ids, member names, ports, times) is replaced by a symbol, numbered in the order
of appearance, so that "the same id again" is still compared. No other difference is excused.

    scenarios/<area>.py     what is asked
    Session                 one run against one broker, with its transcript
    differences(a, b)       the places in which two transcripts differ
"""

from __future__ import annotations

import copy
import struct
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from headwater.wire import batch
from tests.peers.raw import ConnectionClosed, RawConnection

Answer = TypeVar("Answer")
Tree = Any  # what JSON can hold

IDS = {"topic_id", "member_id", "leader", "cluster_id", "host", "port", "producer_id", "protocol_owner"}
TIMES = {
    "commit_timestamp",
    "transaction_start_time_ms",
    "last_timestamp",
    "timestamp_ms",
    "log_append_time_ms",
}
EMPTY_ID = (None, "", b"", -1, bytes(16))
SCENARIOS: dict[str, Callable[[Session], None]] = {}


def scenario(run: Callable[[Session], None]) -> Callable[[Session], None]:
    """Registers a scenario under its area and name."""
    area = run.__module__.rpartition(".")[2]
    SCENARIOS[f"{area}:{run.__name__}"] = run
    return run


class Session:
    """A scenario's run against one broker: several named connections, one transcript."""

    def __init__(self, address: str, prefix: str) -> None:
        self.address, self.prefix = address, prefix
        self.transcript: list[tuple[str, Tree]] = []
        self._connections: dict[str, RawConnection] = {}
        self._symbols: dict[tuple[str, Any], str] = {}

    def name(self, word: str) -> str:
        """A topic's, group's or transactional id's name that no other scenario uses."""
        return f"{self.prefix}-{word}"

    def connection(self, name: str = "main") -> RawConnection:
        if name not in self._connections:
            self._connections[name] = RawConnection(self.address)
        return self._connections[name]

    def ask(
        self,
        label: str,
        request: Any,
        response: type[Answer],
        version: int,
        *,
        on: str = "main",
        by: str = "",
    ) -> Answer:
        """Sends a request, notes the answer under the label, returns it.

        `by` names the field by which rows are compared where Kafka's own order is that of a hash table.
        """
        answer = self.quietly(request, response, version, on=on)
        tree = self.tree(answer)
        self.note(f"{label} v{version}", _sorted_by(tree, by) if by else tree)
        return answer

    def quietly(self, request: Any, response: type[Answer], version: int, *, on: str = "main") -> Answer:
        """Asks without noting the answer: for what a scenario only needs to get somewhere."""
        return self.connection(on).ask(request, response, version)

    def send(self, request: Any, version: int, *, on: str) -> None:
        """Sends without waiting: for answers that the broker holds back."""
        self.connection(on).send(request, version)

    def receive(self, label: str, response: type[Answer], version: int, *, on: str) -> Answer:
        answer = self.connection(on).receive(response, version)
        self.note(f"{label} v{version}", self.tree(answer))
        return answer

    def closes(self, label: str, data: bytes) -> None:
        """Sends bytes on a connection of their own and notes whether the broker closes it."""
        with RawConnection(self.address, seconds_max=5) as connection:
            connection.send_bytes(data)
            try:
                closed = connection.is_closed_by_peer()
            except TimeoutError:
                closed = False
            self.note(label, {"closed": closed})

    def asks_and_is_closed(self, label: str, request: Any, version: int) -> None:
        """Notes whether a request that has no answer ends its connection."""
        with RawConnection(self.address, seconds_max=5) as connection:
            connection.send(request, version)
            try:
                connection.receive_frame()
                self.note(label, {"closed": False})
            except ConnectionClosed:
                self.note(label, {"closed": True})
            except TimeoutError:
                self.note(label, {"closed": False, "answered": False})

    def note(self, label: str, tree: Tree) -> None:
        self.transcript.append((label, tree))

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    def tree(self, value: Any, field: str = "") -> Tree:
        """Plain values, with symbols where a broker chooses freely."""
        if field in IDS and not isinstance(value, list):
            return None if value is None else self._symbol(field, value)
        if field in TIMES and isinstance(value, int):
            return value if value < 0 else f"<{field}>"
        if field == "records":
            return None if value is None else [self._batch_tree(view) for view in _batches(value)]
        if isinstance(value, (list, tuple)):
            return [self.tree(item) for item in value]
        if isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(value).hex()
        if hasattr(type(value), "__slots__") and not isinstance(value, (int, str)):
            return {name: self.tree(getattr(value, name), name) for name in fields_of(value)}
        return value

    def _symbol(self, field: str, value: Any) -> Any:
        if value in EMPTY_ID or not isinstance(value, (str, int, bytes)):
            return value.hex() if isinstance(value, bytes) else value
        kind = "member_id" if field == "leader" and isinstance(value, str) else field
        key = (kind, value)
        if key not in self._symbols:
            number = sum(1 for known, _ in self._symbols if known == kind) + 1
            self._symbols[key] = f"<{kind} {number}>"
        return self._symbols[key]

    def _batch_tree(self, view: memoryview) -> Tree:
        header = batch.parse_header(view)
        return {
            "base_offset": header.base_offset,
            "leader_epoch": header.partition_leader_epoch,
            "attributes": header.attributes,
            "last_offset_delta": header.last_offset_delta,
            "producer_id": self._symbol("producer_id", header.producer_id),
            "producer_epoch": header.producer_epoch,
            "base_sequence": header.base_sequence,
            "record_count": header.record_count,
            "bytes": len(view) if header.is_control else bytes(view[61:]).hex(),
        }


def _sorted_by(tree: Tree, field: str) -> Tree:
    if isinstance(tree, dict):
        return {name: _sorted_by(value, field) for name, value in tree.items()}
    if isinstance(tree, list):
        rows = [_sorted_by(row, field) for row in tree]
        named = bool(rows) and isinstance(rows[0], dict) and field in rows[0]
        return sorted(rows, key=lambda row: row[field]) if named else rows
    return tree


def fields_of(message: Any) -> list[str]:
    return [
        name for kind in type(message).__mro__ for name in getattr(kind, "__slots__", ()) if name[0] != "_"
    ]


def _batches(records: Any) -> Iterator[memoryview]:
    view = memoryview(b"".join(records) if isinstance(records, list) else records)
    position = 0
    while len(view) - position >= 12:
        size = 12 + struct.unpack_from(">i", view, position + 8)[0]
        if position + size > len(view):
            break  # Kafka may cut the last batch short
        yield view[position : position + size]
        position += size


def run(name: str, address: str, prefix: str) -> list[tuple[str, Tree]]:
    """The transcript of a scenario against a broker."""
    session = Session(address, prefix)
    try:
        SCENARIOS[name](session)
    finally:
        session.close()
    return session.transcript


def planted(transcript: list[tuple[str, Tree]], name: str) -> list[tuple[str, Tree]]:
    """The transcript with a fault: `number` changes the first number in it, `silence` drops an answer."""
    if name == "silence":
        return transcript[:-1]
    if name != "number":
        return transcript
    copied = copy.deepcopy(transcript)
    assert any(_raise_a_number(tree) for _, tree in copied), "there is no number to change"
    return copied


def _raise_a_number(tree: Tree) -> bool:
    places = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for place, value in places:
        if type(value) is int:
            tree[place] = value + 1
            return True
        if _raise_a_number(value):
            return True
    return False


def differences(theirs: list[tuple[str, Tree]], ours: list[tuple[str, Tree]]) -> list[str]:
    """Each place where our transcript differs from Apache Kafka's, as one line."""
    found = []
    for (label, expected), (_, actual) in zip(theirs, ours, strict=False):
        found += [f"{label}: {line}" for line in _differences(expected, actual, "")]
    if len(theirs) != len(ours):
        found.append(f"Apache Kafka gave {len(theirs)} answers, ours {len(ours)}")
    return found


def _differences(expected: Tree, actual: Tree, path: str) -> Iterator[str]:
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in expected.keys() | actual.keys():
            yield from _differences(expected.get(key), actual.get(key), f"{path}.{key}")
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for number, pair in enumerate(zip(expected, actual, strict=True)):
            yield from _differences(*pair, f"{path}[{number}]")
    elif expected != actual or type(expected) is not type(actual):
        yield f"{path or 'answer'}: Apache Kafka {expected!r}, ours {actual!r}"
