"""ListConfigResources, v0-1: what DescribeConfigs can be asked about. v0 lists client metrics, and there are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.broker.config_changes import BROKER, BROKER_LOGGER, KINDS, TOPIC
from headwater.broker.registry import Context, handles
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)  # fmt: skip

if TYPE_CHECKING:
    from headwater.broker.state import Broker


@handles(ListConfigResourcesRequest, versions=(0, 1))
def list_config_resources(
    broker: Broker, request: ListConfigResourcesRequest, context: Context
) -> ListConfigResourcesResponse:
    if context.api_version == 0:
        return ListConfigResourcesResponse()
    kinds = request.resource_types or KINDS
    if any(kind not in KINDS for kind in kinds):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    here = str(broker.node_id)
    own = [kind for kind in (BROKER_LOGGER, BROKER) if kind in kinds]
    listed = [ConfigResource(resource_name=here, resource_type=kind) for kind in own]
    if TOPIC in kinds:
        listed += [ConfigResource(resource_name=name, resource_type=TOPIC) for name in sorted(broker.log.topics)]
    return ListConfigResourcesResponse(config_resources=listed)
