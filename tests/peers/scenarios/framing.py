"""Frames and versions: what is answered, what closes the connection."""

from __future__ import annotations

import struct

from headwater.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from headwater.wire.messages.metadata import MetadataRequest, MetadataResponse
from tests.peers.prober import Session, scenario


def request_head(api: int, version: int, *, correlation: int = 7, client: bytes = b"prober") -> bytes:
    return struct.pack(">hhih", api, version, correlation, len(client)) + client


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


@scenario
def versions_that_both_advertise(session: Session) -> None:
    """Every API of ours must be Apache Kafka's, with a range inside its own."""
    for version in (0, 1, 2, 3, 4):
        request = ApiVersionsRequest(client_software_name="prober", client_software_version="1.0")
        answer = session.quietly(request, ApiVersionsResponse, version)
        ranges = {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys}
        session.note(
            f"versions v{version}", {"error": answer.error_code, "throttle": answer.throttle_time_ms}
        )
        session.note(
            f"ranges v{version}", {str(key): list(ranges[key]) for key in sorted(ranges) if key in ADVERTISED}
        )


ADVERTISED = {
    0,
    1,
    2,
    3,
    8,
    9,
    10,
    11,
    12,
    13,
    14,
    15,
    16,
    18,
    19,
    20,
    21,
    22,
    23,
    24,
    25,
    26,
    28,
    32,
    37,
    42,
    44,
    47,
    60,
}


@scenario
def versions_of_a_client_with_an_odd_name(session: Session) -> None:
    for name, number in (("", ""), ("-odd", "1"), ("fine", "not a version"), ("a.b-c", "1.2-rc.3")):
        request = ApiVersionsRequest(client_software_name=name, client_software_version=number)
        answer = session.quietly(request, ApiVersionsResponse, 3, on=f"{name}/{number}")
        session.note(f"name {name!r} {number!r}", {"error": answer.error_code, "keys": bool(answer.api_keys)})


@scenario
def an_unknown_version_of_api_versions_is_answered_in_version_0(session: Session) -> None:
    for version in (5, 99, 32767):
        session.connection().send_bytes(framed(request_head(18, version) + b"\0\0\0\0"))
        data = session.connection().receive_frame()
        (error, count) = struct.unpack_from(">hi", data, 4)
        session.note(f"v{version}", {"error": error, "keys": count > 0})


@scenario
def requests_that_cannot_be_read_close_the_connection(session: Session) -> None:
    cases = {
        "unknown api": framed(request_head(999, 0)),
        "negative api": framed(request_head(-1, 0)),
        "metadata version 99": framed(request_head(3, 99) + b"\0\0\0\0"),
        "negative version": framed(request_head(3, -1) + b"\0\0\0\0"),
        "produce version 2": framed(request_head(0, 2) + bytes(12)),
        "fetch version 3": framed(request_head(1, 3) + bytes(12)),
        "frame of length 0": struct.pack(">i", 0),
        "negative length": struct.pack(">i", -5),
        "length beyond the limit": struct.pack(">i", 2**31 - 1),
        "half a header": framed(b"\0\3\0"),
        "string beyond the end": framed(request_head(3, 1) + struct.pack(">ih", 1, 500) + b"short"),
        "client id beyond the end": framed(struct.pack(">hhih", 3, 1, 7, 500)),
    }
    for label, data in cases.items():
        session.closes(label, data)


@scenario
def trailing_bytes_after_a_request(session: Session) -> None:
    session.closes("metadata v1 with a tail", framed(request_head(3, 1) + struct.pack(">i", 0) + b"tail"))


@scenario
def a_null_client_id_is_fine(session: Session) -> None:
    session.connection().client_id = None
    answer = session.quietly(MetadataRequest(topics=[]), MetadataResponse, 9)
    session.note("brokers", len(answer.brokers))
