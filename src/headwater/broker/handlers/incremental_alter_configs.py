"""IncrementalAlterConfigs, v0-1: set or delete single settings, add to or take from those that are lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.broker.config_changes import Outcome, alter
from headwater.broker.registry import Context, handles
from headwater.broker.waiting import Later
from headwater.log.topic_config import LIST, TOPIC_CONFIGS
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)  # fmt: skip

if TYPE_CHECKING:
    from headwater.broker.state import Broker
    from headwater.log import Topic

SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


def answer(outcomes: list[Outcome]) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
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


def refused(request: IncrementalAlterConfigsRequest, error: KafkaError) -> IncrementalAlterConfigsResponse:
    return answer([Outcome(resource, int(error.code), error.message) for resource in request.resources])


@handles(IncrementalAlterConfigsRequest, versions=(0, 1), error=refused)
def incremental_alter_configs(
    broker: Broker, request: IncrementalAlterConfigsRequest, context: Context
) -> Later[IncrementalAlterConfigsResponse]:
    return alter(broker, request.resources, changed, request.validate_only, answer)


def changed(topic: Topic, resource: AlterConfigsResource) -> dict[str, str]:
    config = dict(topic.config)
    for each in resource.configs:
        if each.config_operation == DELETE:
            config.pop(each.name, None)
        elif each.config_operation not in (SET, APPEND, SUBTRACT):
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        elif each.value is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {each.name}")
        elif each.config_operation == SET:
            config[each.name] = each.value
        else:
            config[each.name] = _edited_list(topic, config, each, each.value)
    return config


def _edited_list(topic: Topic, config: dict[str, str], change: AlterableConfig, items: str) -> str:
    known = TOPIC_CONFIGS.get(change.name)
    if known is None or known.type != LIST:
        verb = "APPEND" if change.config_operation == APPEND else "SUBTRACT"
        text = f"Can't {verb} to key {change.name} because its type is not LIST."
        raise KafkaError(ErrorCode.INVALID_CONFIG, text)
    present = _items(config.get(change.name, topic.settings.values[change.name]))
    for item in _items(items):
        if change.config_operation == APPEND and item not in present:
            present.append(item)
        elif change.config_operation == SUBTRACT and item in present:
            present.remove(item)
    return ",".join(present)


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]
