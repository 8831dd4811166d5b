"""DescribeConfigs, v1-4: every setting with its value, where it comes from and, if asked, what stands behind it
(synonyms) and what it means (v3). Clients read, change one and write all back, so a list must be whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from headwater.broker.config import SOURCE_DEFAULT, SOURCE_TOPIC, Setting
from headwater.broker.config_changes import BROKER_LOGGER, CLIENT_METRICS, GROUP, KINDS, TOPIC
from headwater.broker.registry import Context, error_text, handles
from headwater.broker.topics import check_name
from headwater.log.topic_config import NOT_DESCRIBED, TOPIC_CONFIGS, TYPE_NUMBERS, TopicConfig
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)  # fmt: skip

if TYPE_CHECKING:
    from headwater.broker.state import Broker

class Described(NamedTuple):
    """A setting as it stands; ``synonyms`` are (name, text, source), the one in force first."""

    config: TopicConfig
    text: str | None
    source: int
    read_only: bool
    synonyms: list[tuple[str, str, int]]


def refused(request: DescribeConfigsRequest, error: KafkaError) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(results=[_refusal(resource, error) for resource in request.resources])


@handles(DescribeConfigsRequest, versions=(1, 4), error=refused)
def describe_configs(
    broker: Broker, request: DescribeConfigsRequest, context: Context
) -> DescribeConfigsResponse:
    if any(resource.resource_type not in KINDS for resource in request.resources):
        raise KafkaError(ErrorCode.INVALID_REQUEST, error_text(ErrorCode.INVALID_REQUEST))
    results = []
    for resource in request.resources:
        try:
            described = _described(broker, resource)
        except KafkaError as error:
            results.append(_refusal(resource, error))
            continue
        results.append(
            DescribeConfigsResult(
                error_message="",
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                configs=[_row(each, request) for each in described],
            )
        )
    return DescribeConfigsResponse(results=results)


def _refusal(resource: DescribeConfigsResource, error: KafkaError) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=int(error.code),
        error_message=error.message or "",
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _described(broker: Broker, resource: DescribeConfigsResource) -> list[Described]:
    name, wanted = resource.resource_name, resource.configuration_keys or None
    if resource.resource_type == TOPIC:
        check_name(name)
        topic = broker.topics.get(name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return topic_settings(broker, topic.config, wanted)
    if resource.resource_type == GROUP:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
        return []  # settings of groups belong to protocols that are not served yet
    if resource.resource_type == CLIENT_METRICS or not name:
        return []  # without a name: defaults of a whole cluster, which can only be set while it runs
    if not name.lstrip("-").isdigit():
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if int(name) != broker.node_id:
        text = f"Unexpected broker id, expected {broker.node_id} or empty string, but received {name}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    if resource.resource_type == BROKER_LOGGER:
        return []
    chosen = broker.settings.all if wanted is None else {key: broker.settings.all.get(key) for key in wanted}
    return [_broker_setting(setting) for _, setting in sorted(chosen.items()) if setting is not None]


def topic_settings(
    broker: Broker, overrides: Mapping[str, str], wanted: Iterable[str] | None = None
) -> list[Described]:
    return [
        _topic_setting(broker, config, overrides.get(name))
        for name, config in TOPIC_CONFIGS.items()
        if name not in NOT_DESCRIBED and (wanted is None or name in wanted)
    ]


def _topic_setting(broker: Broker, config: TopicConfig, override: str | None) -> Described:
    text, source = config.default, SOURCE_DEFAULT
    synonyms = []
    behind = broker.settings.behind(config.name)
    if behind is not None:
        if behind.source != SOURCE_DEFAULT:
            text = broker.settings.topic_defaults()[config.name]
            source = behind.source
            synonyms.append((behind.config.name, behind.text or "", source))
        if behind.default is not None:
            synonyms.append((behind.config.name, behind.default, SOURCE_DEFAULT))
    if override is not None:
        text, source = override, SOURCE_TOPIC
        synonyms.insert(0, (config.name, override, SOURCE_TOPIC))
    return Described(config, text, source, False, synonyms)


def _broker_setting(setting: Setting) -> Described:
    name = setting.config.name
    synonyms = []
    if setting.source != SOURCE_DEFAULT:
        synonyms.append((name, setting.text or "", setting.source))
    if setting.default is not None:
        synonyms.append((name, setting.default, SOURCE_DEFAULT))
    return Described(setting.config, setting.text, setting.source, not setting.dynamic, synonyms)


def _row(each: Described, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = each.synonyms if request.include_synonyms else []
    return DescribeConfigsResourceResult(
        name=each.config.name,
        value=each.text,
        read_only=each.read_only,
        config_source=each.source,
        synonyms=[DescribeConfigsSynonym(name=name, value=text, source=source) for name, text, source in synonyms],
        config_type=TYPE_NUMBERS[each.config.type],
        documentation=each.config.documentation if request.include_documentation else None,
    )
