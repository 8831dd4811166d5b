"""AlterConfigs, v0-2: a resource's settings become exactly those that are named; the rest go back to their defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.broker.config_changes import Outcome, alter
from headwater.broker.registry import Context, handles
from headwater.broker.waiting import Later
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)  # fmt: skip

if TYPE_CHECKING:
    from headwater.broker.state import Broker
    from headwater.log import Topic


def answer(outcomes: list[Outcome]) -> AlterConfigsResponse:
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=outcome.code,
                error_message=outcome.message,
                resource_type=outcome.resource.resource_type,
                resource_name=outcome.resource.resource_name,
            )
            for outcome in outcomes
        ]
    )


def refused(request: AlterConfigsRequest, error: KafkaError) -> AlterConfigsResponse:
    return answer([Outcome(resource, int(error.code), error.message) for resource in request.resources])


@handles(AlterConfigsRequest, versions=(0, 2), error=refused)
def alter_configs(
    broker: Broker, request: AlterConfigsRequest, context: Context
) -> Later[AlterConfigsResponse]:
    return alter(broker, request.resources, replaced, request.validate_only, answer)


def replaced(topic: Topic, resource: AlterConfigsResource) -> dict[str, str]:
    config = {}
    for each in resource.configs:
        if each.value is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {each.name}")
        config[each.name] = each.value
    return config
