"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.wire.errors import ErrorCode
from headwater.wire.messages import alter_configs as replacing
from headwater.wire.messages import incremental_alter_configs as changing
from headwater.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from headwater.wire.messages.list_config_resources import ListConfigResourcesRequest

from .conftest import Client, World
from .test_produce import batch

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


def describe(
    client: Client, kind: int, name: str, keys: list[str] | None = None, version: int = 4, **fields: Any
) -> Any:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    (result,) = client.ask(DescribeConfigsRequest(resources=[resource], **fields), version).results
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


def refusal(result: Any) -> tuple[int, str | None]:
    assert not getattr(result, "configs", [])
    return result.error_code, result.error_message


def value(client: Client, key: str) -> str:
    (config,) = describe(client, TOPIC, "t", [key]).configs
    return str(config.value)


@pytest.mark.parametrize("version", range(1, 5))
def test_all_settings_of_a_topic_are_listed(client: Client, version: int) -> None:
    client.create("t", retention_ms="5000")
    result = describe(client, TOPIC, "t", version=version)
    assert (result.error_code, result.error_message) == (0, "")
    assert len(result.configs) == 33
    found = {each.name: each for each in result.configs}
    retention, policy = found["retention.ms"], found["cleanup.policy"]
    assert (retention.value, retention.config_source, retention.read_only, retention.is_sensitive) == (
        "5000", 1, False, False,
    )  # fmt: skip
    assert (policy.value, policy.config_source, policy.synonyms) == ("delete", 5, [])
    if version >= 3:
        assert (retention.config_type, policy.config_type, policy.documentation) == (5, 7, None)


def test_synonyms_say_what_stands_behind_a_value() -> None:
    world = World({"message.max.bytes": "777", "log.retention.hours": "1"})
    client = world.client()
    client.create("t", max_message_bytes="99")

    def synonyms(key: str) -> list[tuple[str, str | None, int]]:
        (config,) = describe(client, TOPIC, "t", [key], include_synonyms=True).configs
        return [(each.name, each.value, each.source) for each in config.synonyms]

    assert synonyms("max.message.bytes") == [
        ("max.message.bytes", "99", 1), ("message.max.bytes", "777", 4), ("message.max.bytes", "1048588", 5),
    ]  # fmt: skip
    assert synonyms("cleanup.policy") == [("log.cleanup.policy", "delete", 5)]
    assert synonyms("segment.ms") == []
    (retention,) = describe(client, TOPIC, "t", ["retention.ms"]).configs
    assert (retention.value, retention.config_source) == ("3600000", 4)


def test_documentation_comes_if_asked(client: Client) -> None:
    client.create("t")
    result = describe(client, TOPIC, "t", include_documentation=True)
    assert all(each.documentation for each in result.configs)


def test_keys_choose_settings_and_unknown_ones_are_passed_over(client: Client) -> None:
    client.create("t")
    names = [each.name for each in describe(client, TOPIC, "t", ["retention.ms", "foo", "cleanup.policy"]).configs]
    assert names == ["cleanup.policy", "retention.ms"]
    assert len(describe(client, TOPIC, "t", []).configs) == 33


@pytest.mark.parametrize(
    ("kind", "name", "code", "sentence"),
    [
        (TOPIC, "none", 3, ""),
        (TOPIC, "", 17, "Topic name is invalid: the empty string is not allowed"),
        (BROKER, "2", 42, "Unexpected broker id, expected 1 or empty string, but received 2"),
        (BROKER, "x", 42, "Broker id must be an integer, but it is: x"),
        (GROUP, "", 42, "Group name must not be empty"),
    ],
)
def test_what_cannot_be_described_is_named(client: Client, kind: int, name: str, code: int, sentence: str) -> None:
    assert refusal(describe(client, kind, name)) == (code, sentence)


@pytest.mark.parametrize("kind", [0, 99])
def test_one_unknown_kind_refuses_the_whole_request(client: Client, kind: int) -> None:
    client.create("t")
    resources = [
        DescribeConfigsResource(resource_type=TOPIC, resource_name="t"),
        DescribeConfigsResource(resource_type=kind, resource_name="t"),
    ]
    results = client.ask(DescribeConfigsRequest(resources=resources), 4).results
    assert [each.error_code for each in results] == [42, 42]
    assert all(each.error_message.startswith("This most likely occurs") for each in results)


def test_the_brokers_settings_have_their_origin() -> None:
    client = World({"num.partitions": "4"}).client()
    found = {each.name: each for each in describe(client, BROKER, "1", include_synonyms=True).configs}
    partitions = found["num.partitions"]
    assert (partitions.value, partitions.config_source, partitions.read_only) == ("4", 4, True)
    assert [(each.value, each.source) for each in partitions.synonyms] == [("4", 4), ("1", 5)]
    assert (found["message.max.bytes"].config_source, found["message.max.bytes"].read_only) == (5, False)
    assert describe(client, BROKER, "").configs == []


# --- changes


def change(
    client: Client, *changes: tuple[str, int, str | None], kind: int = TOPIC, name: str = "t", **fields: Any
) -> tuple[int, str | None]:
    configs = [changing.AlterableConfig(name=key, config_operation=op, value=text) for key, op, text in changes]
    resource = changing.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = changing.IncrementalAlterConfigsRequest(resources=[resource], **fields)
    (result,) = client.ask(request, 1).responses
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result.error_code, result.error_message


def test_a_change_is_in_force_at_once_and_after_power_loss(client: Client, world: World) -> None:
    client.create("t")
    assert change(client, ("max.message.bytes", SET, "100")) == (0, None)
    assert client.produce("t", batch(b"x" * 200)).error_code == ErrorCode.MESSAGE_TOO_LARGE
    world.crash()
    assert value(world.client(), "max.message.bytes") == "100"
    assert change(world.client(), ("max.message.bytes", DELETE, None)) == (0, None)
    assert world.client().produce("t", batch(b"x" * 200)).error_code == 0


def test_lists_are_appended_to_and_subtracted_from(client: Client) -> None:
    client.create("t")
    assert change(client, ("cleanup.policy", APPEND, "compact")) == (0, None)
    assert value(client, "cleanup.policy") == "delete,compact"
    assert change(client, ("cleanup.policy", SUBTRACT, "delete")) == (0, None)
    assert change(client, ("cleanup.policy", SUBTRACT, "not there")) == (0, None)
    assert value(client, "cleanup.policy") == "compact"


@pytest.mark.parametrize(
    ("changes", "code", "sentence"),
    [
        (
            [("retention.ms", SET, "abc")], 40,
            "Invalid value abc for configuration retention.ms: Not a number of type LONG",
        ),
        (
            [("retention.ms", SET, "-2")], 40,
            "Invalid value -2 for configuration retention.ms: Value must be at least -1",
        ),
        ([("foo", SET, "1")], 40, "Unknown topic config name: foo"),
        ([("retention.ms", SET, None)], 42, "Null value not supported for : retention.ms"),
        ([("retention.ms", APPEND, "1")], 40, "Can't APPEND to key retention.ms because its type is not LIST."),
        ([("retention.ms", SUBTRACT, "1")], 40, "Can't SUBTRACT to key retention.ms because its type is not LIST."),
        (
            [("cleanup.policy", SET, "bogus")], 40,
            "Invalid value bogus for configuration cleanup.policy: String must be one of: compact, delete",
        ),
        ([("cleanup.policy", 9, "x")], -1, None),
        ([("retention.ms", SET, "1"), ("retention.ms", SET, "2")], 42, "Error due to duplicate config keys"),
        ([("retention.ms", SET, "1"), ("foo", SET, "2")], 40, "Unknown topic config name: foo"),
    ],
)  # fmt: skip
def test_a_bad_change_changes_nothing(client: Client, changes: Any, code: int, sentence: str | None) -> None:
    client.create("t")
    assert change(client, *changes) == (code, sentence)
    assert client.world.broker.topics.get("t").config == {}  # type: ignore[union-attr]


def test_unknown_names_may_be_deleted_and_nothing_may_be_validated(client: Client) -> None:
    client.create("t")
    assert change(client, ("foo.bar", DELETE, None)) == (0, None)
    assert change(client) == (0, None)
    assert change(client, ("retention.ms", SET, "777"), validate_only=True) == (0, None)
    assert value(client, "retention.ms") == "604800000"


@pytest.mark.parametrize(
    ("kind", "name", "code", "sentence"),
    [
        (TOPIC, "none", 3, "The topic 'none' does not exist."),
        (TOPIC, "", 42, "Default topic resources are not allowed."),
        (BROKER, "1", 42, "Cannot update these configs dynamically: [num.partitions]"),
        (BROKER, "7", 42, "Unexpected broker id, expected 1, but received 7"),
        (BROKER, "x", 42, "Node id must be an integer, but it is: x"),
        (GROUP, "g", 40, "Unknown group config name: num.partitions"),
        (99, "x", 42, "Unknown resource type 99"),
    ],
)
def test_what_cannot_be_changed_is_named(client: Client, kind: int, name: str, code: int, sentence: str) -> None:
    assert change(client, ("num.partitions", SET, "1"), kind=kind, name=name) == (code, sentence)


def test_a_resource_appears_once_in_a_request(client: Client) -> None:
    client.create("t")
    configs = [changing.AlterableConfig(name="retention.ms", config_operation=SET, value="1")]
    same = changing.AlterConfigsResource(resource_type=TOPIC, resource_name="t", configs=configs)
    other = changing.AlterConfigsResource(resource_type=TOPIC, resource_name="none")
    request = changing.IncrementalAlterConfigsRequest(resources=[same, same, other])
    results = client.ask(request, 1).responses
    assert [each.error_code for each in results] == [42, 42, 3]
    assert results[0].error_message == "Each resource must appear at most once."
    assert value(client, "retention.ms") == "604800000"


def replace(client: Client, *configs: tuple[str, str | None], name: str = "t", **fields: Any) -> tuple[int, str | None]:
    resource = replacing.AlterConfigsResource(
        resource_type=TOPIC,
        resource_name=name,
        configs=[replacing.AlterableConfig(name=key, value=text) for key, text in configs],
    )
    (result,) = client.ask(replacing.AlterConfigsRequest(resources=[resource], **fields), 2).responses
    return result.error_code, result.error_message


def test_alter_configs_replaces_all_overrides(client: Client) -> None:
    client.create("t", retention_ms="5000")
    assert replace(client, ("segment.ms", "6000")) == (0, None)
    assert (value(client, "retention.ms"), value(client, "segment.ms")) == ("604800000", "6000")
    assert replace(client, ("segment.ms", "7000"), validate_only=True) == (0, None)
    assert value(client, "segment.ms") == "6000"
    assert replace(client) == (0, None)
    assert client.world.broker.topics.get("t").config == {}  # type: ignore[union-attr]


def test_a_bad_replacement_is_refused_in_kafkas_words(client: Client) -> None:
    client.create("t")
    assert replace(client, ("segment.ms", None)) == (42, "Null value not supported for : segment.ms")
    assert replace(client, ("foo", "1")) == (40, "Unknown topic config name: foo")
    assert replace(client, ("a", "1"), ("a", "2")) == (42, "Error due to duplicate config keys")
    assert replace(client, name="none") == (3, "The topic 'none' does not exist.")


# --- ListConfigResources


def listed(client: Client, *kinds: int, version: int = 1) -> Any:
    response = client.ask(ListConfigResourcesRequest(resource_types=list(kinds)), version)
    return response.error_code, [(each.resource_type, each.resource_name) for each in response.config_resources]


def test_resources_are_listed_by_kind(client: Client) -> None:
    client.create("b")
    client.create("a")
    assert listed(client) == (0, [(LOGGER, "1"), (BROKER, "1"), (TOPIC, "a"), (TOPIC, "b")])
    assert listed(client, TOPIC) == (0, [(TOPIC, "a"), (TOPIC, "b")])
    assert listed(client, METRICS, GROUP) == (0, [])
    assert listed(client, 99) == (ErrorCode.UNSUPPORTED_VERSION, [])
    assert client.ask(ListConfigResourcesRequest(), 0).config_resources == []
