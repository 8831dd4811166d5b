"""ApiVersions, v0-4: what this broker serves, made from the registry. A version that we do not know is answered in v0
by the dispatcher, so that any client can find one that both know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.broker.registry import Context, handles, load
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)  # fmt: skip

if TYPE_CHECKING:
    from headwater.broker.state import Broker

ALPHANUMERIC = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
WORD = ALPHANUMERIC | frozenset("-.")

# Version 1 is the classic protocol with flexible records. Version 2 (KIP-890) turns on Produce v12 and EndTxn v5
# in clients; group.version and share.version are not here because their protocols are not served.
TRANSACTION_VERSION = 1


def refused(request: ApiVersionsRequest | None, error: KafkaError) -> ApiVersionsResponse:
    """Kafka lists its APIs beside UNSUPPORTED_VERSION and nothing beside any other error."""
    keys = served() if error.code == ErrorCode.UNSUPPORTED_VERSION else []
    return ApiVersionsResponse(error_code=int(error.code), api_keys=keys)


@handles(ApiVersionsRequest, versions=(0, 4), error=refused)
def api_versions(broker: Broker, request: ApiVersionsRequest, context: Context) -> ApiVersionsResponse:
    if context.api_version >= 3:
        name, version = request.client_software_name, request.client_software_version
        if not (is_word(name) and is_word(version)):
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        context.connection.client_software_name = name
        context.connection.client_software_version = version
    return ApiVersionsResponse(
        api_keys=served(),
        supported_features=[
            SupportedFeatureKey(name="transaction.version", min_version=0, max_version=TRANSACTION_VERSION)
        ],
        finalized_features_epoch=0,
        finalized_features=[
            FinalizedFeatureKey(
                name="transaction.version",
                max_version_level=TRANSACTION_VERSION,
                min_version_level=TRANSACTION_VERSION,
            )
        ],
    )


def served() -> list[ApiVersion]:
    return [
        ApiVersion(api_key=key, min_version=handler.advertise_from, max_version=handler.until)
        for key, handler in sorted(load().items())
    ]


def is_word(text: str) -> bool:
    """KIP-511: letters, digits, '-' and '.', of which the last two stand neither first nor last."""
    return bool(text) and WORD.issuperset(text) and text[0] in ALPHANUMERIC and text[-1] in ALPHANUMERIC
