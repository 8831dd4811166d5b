"""kafka-python as an oracle: Kafka's message descriptors, which it ships, its error codes and its encoder."""

from __future__ import annotations

import importlib
import uuid
import warnings
from typing import Any

from headwater.wire.schema import schema_of

with warnings.catch_warnings():
    # It reads its descriptors by a function that Python 3.11 deprecates; that is not our failure.
    warnings.simplefilter("ignore", DeprecationWarning)
    PARTS = [
        importlib.import_module(f"kafka.protocol.{part}")
        for part in ("admin", "consumer", "metadata", "producer", "sasl")
    ]
    from kafka.errors import kafka_errors
    from kafka.protocol.schemas import load_json


def descriptor(cls: type) -> dict[str, Any]:
    """Kafka's JSON for a message, structs that it shares put in their places."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        found: dict[str, Any] = load_json(cls.__name__)
    return found


def error_names() -> dict[int, str]:
    return {code: error.message for code, error in kafka_errors.items() if code is not None}


def encoded(message: Any, version: int) -> bytes:
    container = next(getattr(part, name) for part in PARTS if hasattr(part, name := type(message).__name__))
    return bytes(_container(message, container, version).encode())


def _container(message: Any, container: Any, version: int) -> Any:
    values = {}
    ours = [field for field in schema_of(type(message)).fields if field.exists_in(version)]
    theirs = [name for name, field in container.fields.items() if field.for_version_q(version)]
    for field, name in zip(ours, theirs, strict=True):  # a few of their names are their own
        value = getattr(message, field.name)
        if field.tag is not None and value == field.default:
            continue  # it would write it, since it was given
        kind = getattr(container.fields[name], "_type", None)
        if getattr(kind, "__name__", "") == "BitField":
            value = {bit for bit in range(32) if value >> bit & 1}
        elif field.type_name == "Uuid" and value is not None:
            value = [uuid.UUID(bytes=each) for each in value] if field.is_array else uuid.UUID(bytes=value)
        elif field.schema is not None and value is not None:
            inner = container.fields[name].data_class
            made = [_container(each, inner, version) for each in (value if field.is_array else [value])]
            value = made if field.is_array else made[0]
        values[name] = value
    return container(version=version, **values)
