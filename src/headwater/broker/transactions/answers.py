"""What the answers of the transaction APIs have in common: they wait for the log, and older versions of
them know fencing by an older name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from headwater.broker.waiting import Later
from headwater.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from headwater.broker.state import Broker

Response = TypeVar("Response")
NO_ID = -1  # no producer id, no producer epoch


def fenced_as(error: ErrorCode, version: int, since: int) -> ErrorCode:
    """PRODUCER_FENCED for clients that know it, INVALID_PRODUCER_EPOCH for those before."""
    if error == ErrorCode.PRODUCER_FENCED and version < since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error


def when_durable(
    broker: Broker, response: Response, refused: Callable[[KafkaError], Response]
) -> Later[Response]:  # fmt: skip
    """The answer, refusals included, once everything it may rest on is durable."""
    promise: Later[Response] = Later()
    broker.transactions.durable.then(
        lambda: promise.set(response),
        lambda: promise.set(refused(KafkaError(ErrorCode.NOT_COORDINATOR))),
    )
    return promise
