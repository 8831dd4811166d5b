"""Headers of requests and responses, and what is refused before any message is looked at."""

from __future__ import annotations

import pytest

from headwater.wire.errors import ErrorCode
from headwater.wire.frame import (
    RequestHeader,
    UnknownApi,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    request_header,
)
from headwater.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from headwater.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from headwater.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from headwater.wire.messages.sasl_handshake import SaslHandshakeRequest
from headwater.wire.schema import Malformed

PLAIN = "000c 0003 00000007 0003 616263"  # Heartbeat v3, correlation id 7, client "abc"
FLEXIBLE = "000c 0004 00000007 0003 616263"


def view(text: str) -> memoryview:
    return memoryview(bytes.fromhex(text))


def framed(pieces: list[bytes | bytearray | memoryview]) -> memoryview:
    """What follows the size, which is checked."""
    data = b"".join(pieces)
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    return memoryview(data)[4:]


@pytest.mark.parametrize(
    ("frame", "header"),
    [
        (PLAIN, RequestHeader(12, 3, 7, "abc", 13)),
        (FLEXIBLE + "00", RequestHeader(12, 4, 7, "abc", 14)),
        (FLEXIBLE + "01 05 02 ffff", RequestHeader(12, 4, 7, "abc", 18)),
        ("000c 0003 ffffffff ffff", RequestHeader(12, 3, -1, None, 10)),
        ("000c 0004 00000007 0000 00", RequestHeader(12, 4, 7, "", 11)),
        ("0011 0001 00000001 0000", RequestHeader(17, 1, 1, "", 10)),  # SaslHandshake is never flexible
        ("000c 0063 00000007 0000 00", RequestHeader(12, 99, 7, "", 11)),  # the caller refuses the version
    ],
)
def test_a_request_header_ends_where_its_version_says(frame: str, header: RequestHeader) -> None:
    assert request_header(view(frame)) == header


@pytest.mark.parametrize(
    "frame",
    [
        "",
        "000c 0003 00000007 00",
        "000c 0003 00000007 0003 6162",
        "000c 0003 00000007 7fff 616263",
        "000c 0003 00000007 0001 ff",
        FLEXIBLE,
        FLEXIBLE + "01",
        FLEXIBLE + "01 05 02 ff",
        FLEXIBLE + "7f",
        FLEXIBLE + "ffffffffff0f",
    ],
)
def test_a_request_header_that_is_cut_short_or_lies_is_malformed(frame: str) -> None:
    with pytest.raises(Malformed):
        request_header(view(frame))


@pytest.mark.parametrize("key", [4, 27, 68, 999, -1])
def test_a_key_that_is_not_ours_is_refused_by_name(key: int) -> None:
    frame = memoryview(key.to_bytes(2, "big", signed=True) + bytes.fromhex("0002 00000001 ffff"))
    with pytest.raises(UnknownApi) as caught:
        request_header(frame)
    assert (caught.value.api_key, caught.value.api_version) == (key, 2)


@pytest.mark.parametrize("version", [-1, 5, 32767])
def test_a_version_that_is_not_ours_is_refused_before_the_body_is_read(version: int) -> None:
    frame = memoryview(
        bytes.fromhex("000c") + version.to_bytes(2, "big", signed=True) + bytes.fromhex("00000001 ffff 00")
    )
    header = request_header(frame)
    with pytest.raises(UnknownApi) as caught:
        decode_request(header, frame, HeartbeatRequest)
    assert (caught.value.api_key, caught.value.api_version) == (12, version)


@pytest.mark.parametrize("version", ["0009", "ffff"])
def test_api_versions_in_a_version_that_is_not_ours_can_be_answered_in_v0(version: str) -> None:
    frame = view(f"0012 {version} 00000005 0001 63 00 ffff")
    header = request_header(frame)
    assert (header.api_key, header.correlation_id, header.client_id) == (18, 5, "c")
    with pytest.raises(UnknownApi):
        decode_request(header, frame, ApiVersionsRequest)
    answer = ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[ApiVersion(api_key=18, min_version=0, max_version=4)]
    )
    reply = framed(encode_response(header.correlation_id, answer, 0))
    assert reply.hex() == bytes.fromhex("00000005 0023 00000001 0012 0000 0004").hex()


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("client_id", [None, "", "größe"])
def test_a_request_is_read_as_it_was_written(version: int, client_id: str | None) -> None:
    request = HeartbeatRequest(group_id="g", generation_id=3, member_id="m")
    frame = framed(encode_request(request, version, -5, client_id))
    header = request_header(frame)
    assert header[:4] == (12, version, -5, client_id)
    assert decode_request(header, frame, HeartbeatRequest) == request


@pytest.mark.parametrize("version", range(5))
def test_a_response_is_read_as_it_was_written(version: int) -> None:
    frame = framed(encode_response(9, HeartbeatResponse(error_code=27), version))
    assert decode_response(HeartbeatResponse, version, frame) == (9, HeartbeatResponse(error_code=27))


def test_the_header_of_an_api_versions_response_is_never_flexible() -> None:
    frame = framed(encode_response(1, ApiVersionsResponse(), 4))
    assert frame.hex() == "00000001" + "0000" + "01" + "00000000" + "00"
    assert decode_response(ApiVersionsResponse, 4, frame) == (1, ApiVersionsResponse())
    request = framed(encode_request(ApiVersionsRequest(), 4, 1, None))
    assert request_header(request).body_offset == 11


def test_tagged_fields_in_a_response_header_are_passed_over() -> None:
    frame = view("00000009 01 07 01 ff 00000000 0000 00")
    assert decode_response(HeartbeatResponse, 4, frame) == (9, HeartbeatResponse())


@pytest.mark.parametrize("frame", ["", "000000", "00000009", "00000009 05"])
def test_a_response_header_that_is_cut_short_is_malformed(frame: str) -> None:
    with pytest.raises(Malformed):
        decode_response(HeartbeatResponse, 4, view(frame))


def test_bytes_after_the_message_are_left_alone_as_kafka_does() -> None:
    request = framed(encode_request(SaslHandshakeRequest(mechanism="PLAIN"), 1, 1, None))
    longer = memoryview(bytes(request) + b"\x00")
    header = request_header(longer)
    assert decode_request(header, longer, SaslHandshakeRequest) == SaslHandshakeRequest(mechanism="PLAIN")

def test_large_records_are_pieces_of_a_response_frame() -> None:
    records = memoryview(b"r" * 10_000)
    partitions = [PartitionData(partition_index=index, records=records) for index in range(3)]
    pieces = encode_response(1, FetchResponse(responses=[FetchableTopicResponse(partitions=partitions)]), 12)
    assert sum(piece is records for piece in pieces) == 3
    _, response = decode_response(FetchResponse, 12, framed(pieces))
    assert [each.records for each in response.responses[0].partitions] == [records] * 3
