"""The door: headers, versions, bugs, and answers that come exactly once."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.broker import registry
from headwater.broker.dispatch import respond
from headwater.broker.waiting import Later
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.frame import decode_response, encode_request, encode_response
from headwater.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from headwater.wire.messages.list_groups import ListGroupsRequest
from headwater.wire.messages.metadata import MetadataRequest
from headwater.wire.schema import Malformed

from .conftest import Client, World


def send(client: Client, frame: bytes) -> Any:
    """(the answer's bytes after the size or None, close)."""
    got: list[Any] = []

    def deliver(pieces: Any, close: bool) -> None:
        got.append((None if pieces is None else b"".join(bytes(p) for p in pieces)[4:], close))

    respond(client.world.broker, memoryview(bytearray(frame)), client.connection, deliver)
    assert len(got) <= 1
    return got[0] if got else None


def frame_of(request: Any, version: int) -> bytearray:
    return bytearray(b"".join(encode_request(request, version, 7, "c"))[4:])


def test_an_unknown_version_of_api_versions_is_answered_in_version_0(client: Client) -> None:
    frame = frame_of(ApiVersionsRequest(), 0)
    frame[2:4] = (99).to_bytes(2, "big")
    answer, close = send(client, bytes(frame) + b"\x00 whatever the future holds")
    correlation_id, response = decode_response(ApiVersionsResponse, 0, memoryview(answer))
    assert (correlation_id, response.error_code, close) == (7, ErrorCode.UNSUPPORTED_VERSION, False)
    assert 18 in [each.api_key for each in response.api_keys]


@pytest.mark.parametrize("version", [14, -1, 32767])
def test_an_unknown_version_of_anything_else_ends_the_connection(client: Client, version: int) -> None:
    frame = frame_of(MetadataRequest(), 9)
    frame[2:4] = version.to_bytes(2, "big", signed=True)
    with pytest.raises(Malformed):
        send(client, bytes(frame))


def test_produce_before_version_3_is_advertised_and_not_served(client: Client) -> None:
    with pytest.raises(Malformed):
        send(client, b"\x00\x00\x00\x02\x00\x00\x00\x07\x00\x01c" + bytes(10))


@pytest.mark.parametrize("frame", [b"", b"\x00", b"\x00\x03\x00\x09\x00\x00\x00\x07", b"\x7f\xff\x00\x00" + bytes(20)])
def test_what_does_not_parse_ends_the_connection(client: Client, frame: bytes) -> None:
    with pytest.raises(Malformed):
        send(client, frame)


def test_every_cut_of_a_request_is_malformed(client: Client) -> None:
    frame = bytes(frame_of(MetadataRequest(topics=None), 9))
    for length in range(len(frame)):
        with pytest.raises(Malformed):
            send(client, frame[:length])
    assert send(client, frame + b"\x00") is not None  # Kafka passes over what follows a request


@pytest.fixture
def handler(monkeypatch: pytest.MonkeyPatch) -> registry.Handler:
    """ListGroups' handler, which a test may replace."""
    registry.load()
    found = registry.HANDLERS[16]
    monkeypatch.setattr(found, "handle", found.handle)
    return found


def test_an_error_of_a_handler_is_the_apis_error(client: Client, handler: registry.Handler) -> None:
    def refuse(*_: Any) -> Any:
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    handler.handle = refuse
    assert client.ask(ListGroupsRequest(), 4).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_a_bug_is_answered_reported_and_survived(world: World, client: Client, handler: registry.Handler) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError("a bug")

    handler.handle = broken
    pending = client.submit(ListGroupsRequest(), 4)
    assert pending.response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR and not pending.closed
    ((where, error),) = world.bugs
    assert "ListGroups" in where and isinstance(error, ZeroDivisionError)
    world.bugs.clear()


def test_an_answer_that_cannot_be_written_becomes_an_error(
    world: World, client: Client, handler: registry.Handler
) -> None:
    handler.handle = lambda *_: handler.response(error_code="not a number")
    assert client.submit(ListGroupsRequest(), 4).response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert len(world.bugs) == 1
    world.bugs.clear()


def test_an_answer_may_come_later_and_may_be_an_error(client: Client, handler: registry.Handler) -> None:
    later: Later[Any] = Later()
    handler.handle = lambda *_: later
    pending = client.submit(ListGroupsRequest(), 4)
    assert not pending.done
    later.set(KafkaError(ErrorCode.NOT_COORDINATOR))
    assert pending.response.error_code == ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize("key", sorted(registry.load()))
def test_every_handler_has_an_error_form_that_each_version_can_carry(key: int) -> None:
    handler = registry.HANDLERS[key]
    for version in range(handler.since, handler.until + 1):
        request = handler.request()
        if handler.name == "FindCoordinator" and version >= 4:
            request.coordinator_keys = ["each key has its own error in these versions"]
        response = handler.error_response(request, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "why"))
        assert encode_response(7, response, version), version
