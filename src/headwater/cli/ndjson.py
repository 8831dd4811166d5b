"""Records as lines of JSON, exactly: `consume --json` writes them, `produce --json` takes them back.

    {"topic":"t","partition":0,"offset":7,"timestamp":1795129883695,"key":"k","value":"v","headers":[["a","1"]]}

Text that is valid UTF-8 stands as a string; other bytes stand in base64 under the name with `_base64` appended
(`value_base64`, `key_base64`, in a header `["name", {"base64": "…"}]`); null is Kafka's null (a tombstone). Numbers
are integers of up to 64 bits and never pass through a float. docs/formats/ndjson.md is normative.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from headwater.client.record import Record


class Line(NamedTuple):
    """What a line of input asks to append; place and time are used only where it is asked for."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    partition: int | None
    timestamp: int | None


def encoder() -> Callable[[Record], bytes]:
    """A function from a record to its line, without the newline."""
    import msgspec

    encode = msgspec.json.Encoder().encode

    def line(record: Record) -> bytes:
        fields: dict[str, Any] = {
            "topic": record.topic, "partition": record.partition, "offset": record.offset,
            "timestamp": record.timestamp,
        }
        _put(fields, "key", record.key)
        _put(fields, "value", record.value)
        if record.headers:
            fields["headers"] = [[name, _header(content)] for name, content in record.headers]
        return encode(fields)

    return line


def _put(fields: dict[str, Any], name: str, content: bytes | None) -> None:
    if content is None:
        fields[name] = None
        return
    try:
        fields[name] = content.decode()
    except UnicodeDecodeError:
        fields[f"{name}_base64"] = _base64(content)


def _header(content: bytes | None) -> Any:
    if content is None:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return {"base64": _base64(content)}


def _base64(content: bytes) -> str:
    import binascii

    return binascii.b2a_base64(content, newline=False).decode()


def decoder() -> Callable[[bytes], Line]:
    """A function from a line to what it asks for; ValueError says what is wrong with it."""
    import msgspec

    number, base64_text = (int | None, None), (bytes | None, None)
    fields_of_a_line = msgspec.defstruct("Record", [
        ("topic", str | None, None), ("partition", *number), ("offset", *number), ("timestamp", *number),
        ("key", msgspec.Raw, msgspec.Raw(b"null")), ("value", msgspec.Raw, msgspec.Raw()),
        ("key_base64", *base64_text), ("value_base64", *base64_text),
        ("headers", list[tuple[str, Any]] | dict[str, Any] | None, None),
    ])
    decode: Callable[[bytes], Any] = msgspec.json.Decoder(fields_of_a_line).decode
    text = msgspec.json.Decoder(str).decode

    def content(raw: Any, base64: bytes | None) -> bytes | None:
        plain = bytes(raw)
        if base64 is not None:
            return base64
        if plain in (b"", b"null"):
            return None
        # a string is the text itself; an object, a list or a number is the value as it stands in the line
        return text(plain).encode() if plain.startswith(b'"') else plain

    def parse(line: bytes) -> Line:
        try:
            fields = decode(line)
            if not bytes(fields.value) and fields.value_base64 is None:
                raise ValueError('it has neither "value" nor "value_base64"; a tombstone is "value":null')
            return Line(
                content(fields.key, fields.key_base64), content(fields.value, fields.value_base64),
                _headers(fields.headers), fields.partition, fields.timestamp,
            )
        except msgspec.MsgspecError as error:
            raise ValueError(str(error)) from None

    return parse


def _headers(given: Any) -> list[tuple[str, bytes | None]]:
    if not given:
        return []
    pairs = list(given.items()) if isinstance(given, dict) else given
    return [(name, _header_bytes(name, content)) for name, content in pairs]


def _header_bytes(name: str, content: Any) -> bytes | None:
    if content is None:
        return None
    if isinstance(content, str):
        return content.encode()
    if isinstance(content, dict) and set(content) == {"base64"}:
        import binascii

        return binascii.a2b_base64(content["base64"])
    raise ValueError(f'header {name!r} is neither text, null nor {{"base64": …}}')
