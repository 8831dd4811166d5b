"""Changes of settings by clients: what AlterConfigs and IncrementalAlterConfigs have in common.

Topics' settings can be changed. The broker's cannot while it runs: they are refused with Kafka's sentence for
a setting that is read-only, instead of being taken and forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.broker.topics import check_name
from headwater.broker.waiting import Later
from headwater.log.topic_config import parse
from headwater.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from headwater.broker.state import Broker
    from headwater.log import Topic

# Kinds of resources, as Kafka numbers them.
TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
KINDS = (TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP)


class Outcome(NamedTuple):
    resource: Any
    code: int
    message: str | None


def alter(
    broker: Broker,
    resources: list[Any],
    new_config: Callable[[Topic, Any], dict[str, str]],
    validate_only: bool,
    answer: Callable[[list[Outcome]], Any],
) -> Later[Any]:
    """``new_config(topic, resource)``: the overrides that a topic has afterwards, or KafkaError."""
    named = [(resource.resource_type, resource.resource_name) for resource in resources]
    outcomes = []
    for resource, name in zip(resources, named, strict=True):
        try:
            if named.count(name) > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            _alter_one(broker, resource, new_config, validate_only)
            outcomes.append(Outcome(resource, 0, None))
        except KafkaError as error:
            outcomes.append(Outcome(resource, int(error.code), error.message))
    later: Later[Any] = Later()
    broker.durable.then(
        lambda: later.set(answer(outcomes)), lambda: later.set(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    )
    return later


def _alter_one(
    broker: Broker, resource: Any, new_config: Callable[[Topic, Any], dict[str, str]], validate_only: bool
) -> None:
    kind, name = resource.resource_type, resource.resource_name
    names = [each.name for each in resource.configs]
    if len(set(names)) != len(names):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    if kind == BROKER:
        _refuse_broker(broker, name, names)
    elif kind == GROUP:
        if names:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown group config name: {names[0]}")
    elif kind != TOPIC:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")
    else:
        topic = topic_named(broker, name)
        config = new_config(topic, resource)
        parse(config)
        if not validate_only and config != topic.config:
            broker.log.set_config(topic, config)


def topic_named(broker: Broker, name: str) -> Topic:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    check_name(name)
    topic = broker.topics.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    return topic


def _refuse_broker(broker: Broker, name: str, names: list[str]) -> None:
    if name:
        if not name.lstrip("-").isdigit():
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
        if int(name) != broker.node_id:
            text = f"Unexpected broker id, expected {broker.node_id}, but received {name}"
            raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    if names:
        text = f"Cannot update these configs dynamically: [{', '.join(names)}]"
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)
