"""SaslHandshake: choose the mechanism. Never flexible.

After v0 raw SASL tokens follow, after v1 SaslAuthenticate.
"""

from __future__ import annotations

from headwater.wire.schema import Int16, String, field, message


@message(key=17, versions=(0, 1))
class SaslHandshakeRequest:
    mechanism: String = ""


@message(key=17, versions=(0, 1))
class SaslHandshakeResponse:
    error_code: Int16 = 0
    mechanisms: list[String] = field()
