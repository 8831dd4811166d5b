"""Which request is answered by whom, in which versions.

A handler stands in ``handlers/<api>.py`` under ``@handles(...)``; ApiVersions, the dispatcher and
``docs/compatibility.md`` are made from these lines and nothing else, so what is advertised cannot drift
from what is done.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.schema import schema_of

Handle = Callable[[Any, Any, Any], Any]
ErrorForm = Callable[[Any, KafkaError], Any]
F = TypeVar("F", bound=Callable[..., Any])

HANDLERS: dict[int, Handler] = {}  # filled by @handles, complete after load()

# One module per API, named after it; a module that is not in this list is not served.
MODULES = (
    "add_offsets_to_txn",
    "add_partitions_to_txn",
    "alter_configs",
    "api_versions",
    "create_partitions",
    "create_topics",
    "delete_groups",
    "delete_records",
    "delete_topics",
    "describe_cluster",
    "describe_configs",
    "describe_groups",
    "describe_log_dirs",
    "describe_producers",
    "describe_topic_partitions",
    "describe_transactions",
    "end_txn",
    "fetch",
    "find_coordinator",
    "heartbeat",
    "incremental_alter_configs",
    "init_producer_id",
    "join_group",
    "leave_group",
    "list_config_resources",
    "list_groups",
    "list_offsets",
    "list_transactions",
    "metadata",
    "offset_commit",
    "offset_delete",
    "offset_fetch",
    "offset_for_leader_epoch",
    "produce",
    "sync_group",
    "txn_offset_commit",
)


class Connection:
    """What outlives one request: who is at the other end, and what must stop when it goes.

    The server makes one per connection and calls ``close`` once when the connection is lost.
    """

    __slots__ = (
        "client_host", "client_software_name", "client_software_version", "closed", "connection_id",
        "listener_host", "listener_port", "on_close",
    )  # fmt: skip

    def __init__(
        self, *, client_host: str = "", connection_id: str = "", listener_host: str = "", listener_port: int = 0
    ) -> None:
        self.client_host = client_host
        self.connection_id = connection_id
        self.listener_host = listener_host  # what answers advertise to a client on this listener
        self.listener_port = listener_port
        self.client_software_name = ""
        self.client_software_version = ""
        self.closed = False
        self.on_close: list[Callable[[], None]] = []  # waiters that must not outlive the connection

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            callbacks, self.on_close = self.on_close, []
            for callback in callbacks:
                callback()


class Context:
    """One request: its version and client, and the connection that it came on."""

    __slots__ = ("api_version", "arrived_ms", "client_id", "close_connection", "connection")

    def __init__(
        self, connection: Connection, api_version: int, client_id: str | None, arrived_ms: int = 0
    ) -> None:
        self.connection = connection
        self.api_version = api_version
        self.client_id = client_id
        self.arrived_ms = arrived_ms  # monotonic
        self.close_connection = False  # set by a handler: close once the answer (or nothing) is sent

    @property
    def client_host(self) -> str:
        return self.connection.client_host

    @property
    def connection_id(self) -> str:
        return self.connection.connection_id

    @property
    def listener_host(self) -> str:
        return self.connection.listener_host

    @property
    def listener_port(self) -> int:
        return self.connection.listener_port

    @property
    def closed(self) -> bool:
        return self.connection.closed

    @property
    def on_close(self) -> list[Callable[[], None]]:
        return self.connection.on_close


class Handler:
    """One API: what it decodes, what it does, and how it says that it failed."""

    __slots__ = ("_error", "advertise_from", "api_key", "handle", "name", "request", "since", "until")

    def __init__(
        self, request: Any, handle: Handle, versions: tuple[int, int], advertise_from: int | None,
        error: ErrorForm | None,
    ) -> None:  # fmt: skip
        self.request = request
        self.api_key: int = schema_of(request).key
        self.name: str = request.__name__.removesuffix("Request")
        self.handle = handle
        self.since, self.until = versions
        self.advertise_from = versions[0] if advertise_from is None else advertise_from
        self._error = error

    @property
    def response(self) -> Any:
        """The response class stands beside its request, under the same name."""
        return getattr(sys.modules[self.request.__module__], self.name + "Response")

    def error_response(self, request: Any, error: KafkaError) -> Any:
        if self._error is not None:
            return self._error(request, error)
        return top_level_error(self.response, error)


def top_level_error(response: Any, error: KafkaError) -> Any:
    """The error form of a response that has its error code (and message) at the top."""
    answer = response(error_code=int(error.code))
    if hasattr(answer, "error_message"):
        answer.error_message = error.message
    return answer


# What Kafka's brokers send as the message of these codes where they have nothing more to say.
ERROR_TEXTS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.UNKNOWN_TOPIC_ID: "This server does not host this topic ID.",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.INVALID_REQUEST: (
        "This most likely occurs because of a request being malformed by the client library or the message was sent "
        "to an incompatible broker. See the broker logs for more details."
    ),
}


def error_text(code: ErrorCode) -> str | None:
    return ERROR_TEXTS.get(code)


def handles(
    request: Any, *, versions: tuple[int, int], advertise_from: int | None = None, error: ErrorForm | None = None
) -> Callable[[F], F]:
    """Register ``handle(broker, request, context) -> response | Later | None`` for an API.

    ``error(request, KafkaError) -> response`` is needed where the response has no ``error_code`` of its own
    at the top. ``advertise_from`` differs from ``versions`` only where Kafka advertises what it refuses.
    """

    def register(function: F) -> F:
        handler = Handler(request, function, versions, advertise_from, error)
        known = HANDLERS.get(handler.api_key)
        assert known is None or known.handle.__module__ == function.__module__, f"{handler.name} has two handlers"
        HANDLERS[handler.api_key] = handler
        return function

    return register


def load() -> dict[int, Handler]:
    """Import every handler; the table by api key.

    The first request does this, or the server once it listens: forty modules are 30 ms that a start need not wait for.
    """
    for name in MODULES:
        import_module(f"headwater.broker.handlers.{name}")
    return HANDLERS


def find(api_key: int) -> Handler | None:
    """The handler of an API, None if it is not served."""
    handler = HANDLERS.get(api_key)
    if handler is None and len(HANDLERS) < len(MODULES):
        handler = load().get(api_key)
    return handler
