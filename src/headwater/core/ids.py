"""128-bit ids of clusters and topics, in Kafka's text form: URL-safe base64 of 16 bytes without padding."""

from __future__ import annotations

import binascii
import os

ID_BYTES = 16
ZERO = bytes(16)
_RESERVED = (ZERO, bytes(15) + b"\x01")  # Kafka's "no id" and the id of its metadata topic


def random_id() -> bytes:
    """A new id. Like Kafka's, its text never begins with '-', which command lines would take for an option."""
    while True:
        new = os.urandom(ID_BYTES)
        if new not in _RESERVED and not to_text(new).startswith("-"):
            return new


def to_text(identity: bytes) -> str:
    plain = binascii.b2a_base64(identity, newline=False)
    return plain.rstrip(b"=").translate(_TO_URL).decode("ascii")


def from_text(text: str) -> bytes:
    """ValueError unless `text` is the one text form of an id."""
    try:
        identity = binascii.a2b_base64(text.encode("ascii").translate(_FROM_URL) + b"==", strict_mode=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ValueError(f"not an id: {text!r}") from error
    if len(identity) != ID_BYTES or to_text(identity) != text:
        raise ValueError(f"not an id: {text!r}")
    return identity


_TO_URL = bytes.maketrans(b"+/", b"-_")
_FROM_URL = bytes.maketrans(b"-_", b"+/")
