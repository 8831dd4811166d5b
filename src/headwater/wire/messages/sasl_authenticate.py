"""SaslAuthenticate: one step of the SASL exchange. v1 adds the session's lifetime, v2 is flexible."""

from __future__ import annotations

from headwater.wire.schema import Bytes, Int16, Int64, String, field, message


@message(key=36, versions=(0, 2), flexible=2)
class SaslAuthenticateRequest:
    auth_bytes: Bytes = b""


@message(key=36, versions=(0, 2), flexible=2)
class SaslAuthenticateResponse:
    error_code: Int16 = 0
    error_message: String | None = ""
    auth_bytes: Bytes = b""
    session_lifetime_ms: Int64 = field(since=1, ignorable=True)
