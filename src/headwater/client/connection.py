"""What all parts of one client share: where the log is, the options, the deadline, one admin client.

It connects on first use and then knows that somebody listens; it starts nothing. After a fork the child gets
clients of its own: librdkafka's threads do not survive one.
"""
from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from headwater.client import librdkafka
from headwater.client.address import Address, command, probe
from headwater.client.librdkafka import Reasons
from headwater.core.errors import HeadwaterError, NotFound

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")
TIMEOUT_SECONDS = 30.0  # the deadline of a call where the caller names none
Partition = tuple[str, int]


class Connection:
    """One address with its options; makes librdkafka's clients and turns their failures into sentences."""

    def __init__(
        self, address: Address, options: Mapping[str, str] | None = None, timeout: float = TIMEOUT_SECONDS,
        advice: str = librdkafka.ADVICE,
    ) -> None:
        self.address = address
        self.options = dict(options or {})
        self.timeout = timeout
        self.reasons = Reasons(advice)
        self._admin: Any = None
        self._probed = False
        self._process = os.getpid()
        self._left_behind: list[Any] = []  # a parent's clients: destroying them in a forked child would hang

    @property
    def forked(self) -> bool:
        return self._process != os.getpid()

    def after_fork(self, *clients: Any) -> None:
        """Called by whoever notices `forked`: keep the parent's clients unused and begin anew."""
        self._left_behind.extend([self._admin, *clients])
        self._admin = None
        self._process = os.getpid()

    def check(self) -> None:
        """Nothing listening is said now, not after a timeout."""
        if not self._probed:
            probe(self.address, min(self.timeout, 3.0))
            self._probed = True

    @property
    def admin(self) -> Any:
        if self.forked:
            self.after_fork()
        if self._admin is None:
            self.check()
            admin = self._admin = librdkafka.make(librdkafka.load_admin().AdminClient, self.settings())
            self.reasons.fetch = lambda: admin.poll(0)
        return self._admin

    def settings(self, **own: Any) -> dict[str, Any]:
        return librdkafka.settings(self.address.servers, self.options, self.reasons, **own)

    def call(self, function: Callable[[], T], operation: str, place: str, timeout: float | None = None) -> T:
        """A blocking call of librdkafka under our deadline."""
        seconds = self.timeout if timeout is None else timeout
        return librdkafka.bounded(function, seconds, operation, place, self.reasons)

    def answer(self, future: Future[T], operation: str, place: str) -> T:
        """The result of an admin call."""
        try:
            return future.result(timeout=self.timeout + librdkafka.GRACE_SECONDS)
        except TimeoutError:
            raise librdkafka.timed_out(operation, place, self.timeout, self.reasons) from None
        except librdkafka.load().KafkaException as error:
            raise librdkafka.explain(error, operation, place, self.reasons) from None

    def explain(self, error: Any, operation: str, place: str) -> HeadwaterError:
        return librdkafka.explain(error, operation, place, self.reasons)

    def partitions(self, operation: str) -> dict[str, int]:
        """Every topic with its number of partitions. Asking for all of them creates none."""
        admin = self.admin
        found = self.call(lambda: admin.list_topics(timeout=self.timeout), operation, self.address.servers)
        return {name: len(topic.partitions) for name, topic in found.topics.items()}

    def require_topics(self, names: Iterable[str], operation: str) -> dict[str, int]:
        """The partitions of these topics, or NotFound with the nearest name."""
        known = self.partitions(operation)
        wanted = list(names)
        for name in wanted:
            if not known.get(name):
                raise unknown("topic", name, known, operation, self.address.servers)
        return {name: known[name] for name in wanted}

    def cluster_id(self) -> str:
        future = self.admin.describe_cluster(request_timeout=self.timeout)
        return str(self.answer(future, "ask for the cluster id at", self.address.servers).cluster_id)


def unknown(kind: str, name: str, known: Iterable[str], operation: str, servers: str) -> NotFound:
    """No such topic or group, with the nearest name that there is."""
    from difflib import get_close_matches

    names = sorted(known)
    near = get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        hint = f"Did you mean {near[0]}?"
    elif kind == "topic" and operation == "delete":
        hint = f"{command()} topics list shows what is there."
    elif kind == "topic":
        hint = f"{command()} topics list shows what is there; {command()} topics create {name} makes it."
    else:
        hint = f"{command()} groups list shows what is there."
    place, cause = f"{kind} {name} at {servers}", f"there is no {kind} of this name"
    return NotFound(operation, place=place, cause=cause, next_step=hint)
