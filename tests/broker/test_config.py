"""The broker's settings: names, defaults, origins, refusals that help."""

from __future__ import annotations

import pytest

from headwater.broker.config import SOURCE_COMMAND_LINE, SOURCE_DEFAULT, BrokerSettings
from headwater.core.errors import UsageError

KAFKAS_DEFAULTS = {
    "num.partitions": 1,
    "message.max.bytes": 1048588,
    "socket.request.max.bytes": 104857600,
    "fetch.max.bytes": 57671680,
    "group.min.session.timeout.ms": 6000,
    "group.max.session.timeout.ms": 1800000,
    "offsets.topic.num.partitions": 50,
    "transaction.state.log.num.partitions": 50,
    "transaction.max.timeout.ms": 900000,
    "log.retention.hours": 168,
    "log.segment.bytes": 1073741824,
    "auto.create.topics.enable": True,
}


@pytest.mark.parametrize("name", KAFKAS_DEFAULTS)
def test_a_setting_has_kafkas_default_and_type(name: str) -> None:
    settings = BrokerSettings()
    assert getattr(settings, name.replace(".", "_")) == KAFKAS_DEFAULTS[name]
    assert settings.all[name].source == SOURCE_DEFAULT


def test_a_new_group_does_not_wait_three_seconds_for_members() -> None:
    assert BrokerSettings().group_initial_rebalance_delay_ms == 0


def test_a_given_setting_knows_where_it_came_from() -> None:
    settings = BrokerSettings({"num.partitions": "4"})
    assert settings.num_partitions == 4
    assert settings.all["num.partitions"].source == SOURCE_COMMAND_LINE


def test_an_unknown_name_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(UsageError, match=r"did you mean num\.partitions\?"):
        BrokerSettings({"num.partition": "1"})


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("num.partitions", "many", "Not a number of type INT"),
        ("num.partitions", "0", "Value must be at least 1"),
        ("auto.create.topics.enable", "maybe", "Expected value to be either true or false"),
        ("compression.type", "rar", "String must be one of"),
        ("default.replication.factor", "3", "Value must be no more than 1"),
        ("message.max.bytes", str(2**31), "Not a number of type INT"),
    ],
)
def test_a_bad_value_is_refused_with_the_reason(name: str, value: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        BrokerSettings({name: value})


def test_node_id_and_broker_id_are_one() -> None:
    assert BrokerSettings({"broker.id": "3"}).node_id == 3
    assert BrokerSettings({"node.id": "4"}).broker_id == 4


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {}),
        ({"log.retention.hours": "5"}, {"retention.ms": "18000000"}),
        ({"log.retention.minutes": "5", "log.retention.hours": "9"}, {"retention.ms": "300000"}),
        ({"log.retention.ms": "-1", "log.retention.hours": "9"}, {"retention.ms": "-1"}),
        ({"log.roll.hours": "1"}, {"segment.ms": "3600000"}),
        ({"message.max.bytes": "77"}, {"max.message.bytes": "77"}),
        ({"log.cleanup.policy": "compact"}, {"cleanup.policy": "compact"}),
    ],
)
def test_the_brokers_settings_are_the_defaults_of_topics(given: dict[str, str], expected: dict[str, str]) -> None:
    assert BrokerSettings(given).topic_defaults() == expected
