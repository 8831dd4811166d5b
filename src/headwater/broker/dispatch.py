"""One request frame in, one answer out: at once, later, or none.

``respond`` raises Malformed for what Apache Kafka closes a connection for: an API or version that is not
served, a frame that does not parse. Everything else is answered, a bug of ours included.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headwater.broker.registry import Connection, Context, Handler, find
from headwater.broker.waiting import Later
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.frame import decode_request, encode_response, request_header
from headwater.wire.schema import Malformed

if TYPE_CHECKING:
    from headwater.broker.state import Broker

Pieces = list[bytes | bytearray | memoryview]
Deliver = Callable[["Pieces | None", bool], None]

API_VERSIONS = 18


def respond(broker: Broker, frame: memoryview, connection: Connection, deliver: Deliver) -> None:
    """``deliver(pieces or None, close)`` is called exactly once, now or later, unless Malformed is raised."""
    header = request_header(frame)
    handler = find(header.api_key)
    if handler is None:
        raise Malformed(f"API key {header.api_key} is not served")
    version = header.api_version
    if not handler.since <= version <= handler.until:
        if header.api_key != API_VERSIONS:
            raise Malformed(f"{handler.name} version {version} is not served")
        # The one question that must be answered whatever the version: how else could a client find one?
        answer = handler.error_response(None, KafkaError(ErrorCode.UNSUPPORTED_VERSION))
        deliver(encode_response(header.correlation_id, answer, 0), False)
        return
    request = decode_request(header, frame, handler.request)
    context = Context(connection, version, header.client_id, broker.clock.monotonic_ms())

    def finish(response: Any) -> None:
        if response is None:
            deliver(None, context.close_connection)
            return
        pieces = _encoded(broker, handler, request, response, header.correlation_id, version)
        deliver(pieces, context.close_connection or pieces is None)

    response = _handled(broker, handler, request, context)
    if isinstance(response, Later):
        response.on_set(finish)
    else:
        finish(response)


def _handled(broker: Broker, handler: Handler, request: Any, context: Context) -> Any:
    try:
        return handler.handle(broker, request, context)
    except KafkaError as error:
        return error
    except Exception as error:
        broker.report_bug(f"{handler.name} version {context.api_version}", error)
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)


def _encoded(
    broker: Broker, handler: Handler, request: Any, response: Any, correlation_id: int, version: int
) -> Pieces | None:
    """The answer as bytes; None if even its error form cannot be written, which is a bug twice over."""
    for _ in range(2):
        try:
            if isinstance(response, KafkaError):
                response = handler.error_response(request, response)
            return encode_response(correlation_id, response, version)
        except Exception as error:
            broker.report_bug(f"the answer to {handler.name} version {version}", error)
            response = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return None
