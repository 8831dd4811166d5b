"""Frames: one request or response with its header, as bytes. No sockets here.

    on the wire      int32 size, then `size` bytes: header and message
    request header   int16 API key, int16 version, int32 correlation id, int16 length and client id,
                     -1 for null, and in flexible versions tagged fields
    response header  int32 correlation id, and in flexible versions tagged fields; ApiVersions has none:
                     a client reads its answer before it knows what the broker speaks

What is read here begins after the size; what is written begins with it. An API key that is not one of ours is
refused with `UnknownApi`: where its header ends, and how to answer it, is not known.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError
from typing import NamedTuple, TypeVar

from headwater.wire.messages import request_class
from headwater.wire.primitives import Malformed, Piece, skip_tagged_fields
from headwater.wire.schema import decode, encode, schema_of

FRAME_BYTES_MAX = 100 * 1024 * 1024  # Kafka's socket.request.max.bytes; a hostile size must not allocate
HEADER_TAGS_MAX = 100  # Kafka has none yet
API_VERSIONS = 18

T = TypeVar("T")

_int16 = Struct(">h")
_int32 = Struct(">i")
_request_start = Struct(">hhih")
_request_sent = Struct(">ihhi")
_response_sent = Struct(">ii")
_first_flexible: dict[int, int] = {}  # version of the request, by API key


class UnknownApi(Malformed):
    """The peer asks for an API, or a version of one, that is not among our messages."""

    def __init__(self, api_key: int, api_version: int) -> None:
        super().__init__(f"API key {api_key} in version {api_version} is not known here")
        self.api_key = api_key
        self.api_version = api_version


class RequestHeader(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_offset: int


def request_header(frame: memoryview) -> RequestHeader:
    """Reads the header. The version may be one that we do not have, the key may not."""
    try:
        api_key, api_version, correlation_id, length = _request_start.unpack_from(frame)
    except StructError:
        raise Malformed(f"a request of {len(frame)} bytes is shorter than its header") from None
    flexible = _first_flexible.get(api_key)
    if flexible is None:
        flexible = _look_up(api_key, api_version)
    client_id, position = None, 10
    if length >= 0:
        position += length
        if position > len(frame):
            raise Malformed(f"the client id has {length} bytes, it says, in a request of {len(frame)}")
        try:
            client_id = str(frame[10:position], "utf-8")
        except UnicodeDecodeError:
            raise Malformed("the client id is not UTF-8") from None
    if api_version >= flexible:
        position = _after_tagged_fields(frame, position)
    return RequestHeader(api_key, api_version, correlation_id, client_id, position)


def _look_up(api_key: int, api_version: int) -> int:
    cls = request_class(api_key)
    if cls is None:
        raise UnknownApi(api_key, api_version)
    return _first_flexible.setdefault(api_key, schema_of(cls).flexible)


def _after_tagged_fields(frame: memoryview, position: int) -> int:
    try:
        count = frame[position]
        return skip_tagged_fields(frame, position + 1, count, HEADER_TAGS_MAX)[0] if count else position + 1
    except IndexError:
        raise Malformed("the header is cut short within its tagged fields") from None


def decode_request(header: RequestHeader, frame: memoryview, cls: type[T]) -> T:
    """The request after its header. `UnknownApi` if our class lacks the version."""
    low, high = schema_of(cls).versions
    if not low <= header.api_version <= high:
        raise UnknownApi(header.api_key, header.api_version)
    return decode(cls, header.api_version, frame, header.body_offset)


def encode_response(correlation_id: int, message: object, version: int) -> list[Piece]:
    """The frame of a response, its size first."""
    schema = schema_of(type(message))
    head = bytearray(_response_sent.pack(0, correlation_id))
    if version >= schema.flexible and schema.key != API_VERSIONS:
        head.append(0)
    return _with_size(head, encode(message, version, head))


def encode_request(message: object, version: int, correlation_id: int, client_id: str | None) -> list[Piece]:
    """The frame of a request, its size first."""
    schema = schema_of(type(message))
    head = bytearray(_request_sent.pack(0, schema.key, version, correlation_id))
    if client_id is None:
        head += b"\xff\xff"
    else:
        name = client_id.encode()
        head += _int16.pack(len(name))
        head += name
    if version >= schema.flexible:
        head.append(0)
    return _with_size(head, encode(message, version, head))


def _with_size(head: bytearray, pieces: list[Piece]) -> list[Piece]:
    _int32.pack_into(head, 0, sum(map(len, pieces)) - 4)
    return pieces


def decode_response(cls: type[T], version: int, frame: memoryview) -> tuple[int, T]:
    """The correlation id and the response. Whether it is the id that was asked is the caller's to check."""
    schema = schema_of(cls)
    try:
        (correlation_id,) = _int32.unpack_from(frame)
    except StructError:
        raise Malformed(f"a response of {len(frame)} bytes is shorter than its header") from None
    position = 4
    if version >= schema.flexible and schema.key != API_VERSIONS:
        position = _after_tagged_fields(frame, position)
    return correlation_id, decode(cls, version, frame, position)
