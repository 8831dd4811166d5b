"""docs/compatibility.md is made from the registry and the tables of settings; this test holds it to them.

    HEADWATER_WRITE_DOCS=1 python -m pytest tests/broker/test_compatibility.py     writes it again
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from headwater.broker.config import BrokerSettings
from headwater.broker.registry import load
from headwater.log.topic_config import NOT_DESCRIBED, TOPIC_CONFIGS

DOCUMENT = Path(__file__).parents[2] / "docs" / "compatibility.md"

# What Apache Kafka 4.3.1 answered to ApiVersions: key -> (name, least, most).
KAFKA = {
    0: ("Produce", 0, 13), 1: ("Fetch", 4, 18), 2: ("ListOffsets", 1, 11), 3: ("Metadata", 0, 13),
    8: ("OffsetCommit", 2, 10), 9: ("OffsetFetch", 1, 10), 10: ("FindCoordinator", 0, 6), 11: ("JoinGroup", 0, 9),
    12: ("Heartbeat", 0, 4), 13: ("LeaveGroup", 0, 5), 14: ("SyncGroup", 0, 5), 15: ("DescribeGroups", 0, 6),
    16: ("ListGroups", 0, 5), 17: ("SaslHandshake", 0, 1), 18: ("ApiVersions", 0, 4), 19: ("CreateTopics", 2, 7),
    20: ("DeleteTopics", 1, 6), 21: ("DeleteRecords", 0, 2), 22: ("InitProducerId", 0, 5),
    23: ("OffsetForLeaderEpoch", 2, 4), 24: ("AddPartitionsToTxn", 0, 5), 25: ("AddOffsetsToTxn", 0, 4),
    26: ("EndTxn", 0, 5), 27: ("WriteTxnMarkers", 1, 2), 28: ("TxnOffsetCommit", 0, 5), 29: ("DescribeAcls", 1, 3),
    30: ("CreateAcls", 1, 3), 31: ("DeleteAcls", 1, 3), 32: ("DescribeConfigs", 1, 4), 33: ("AlterConfigs", 0, 2),
    34: ("AlterReplicaLogDirs", 1, 2), 35: ("DescribeLogDirs", 1, 5), 36: ("SaslAuthenticate", 0, 2),
    37: ("CreatePartitions", 0, 3), 38: ("CreateDelegationToken", 1, 3), 39: ("RenewDelegationToken", 1, 2),
    40: ("ExpireDelegationToken", 1, 2), 41: ("DescribeDelegationToken", 1, 3), 42: ("DeleteGroups", 0, 2),
    43: ("ElectLeaders", 0, 2), 44: ("IncrementalAlterConfigs", 0, 1), 45: ("AlterPartitionReassignments", 0, 1),
    46: ("ListPartitionReassignments", 0, 0), 47: ("OffsetDelete", 0, 0), 48: ("DescribeClientQuotas", 0, 1),
    49: ("AlterClientQuotas", 0, 1), 50: ("DescribeUserScramCredentials", 0, 0),
    51: ("AlterUserScramCredentials", 0, 0), 55: ("DescribeQuorum", 0, 2), 57: ("UpdateFeatures", 0, 2),
    60: ("DescribeCluster", 0, 2), 61: ("DescribeProducers", 0, 0), 64: ("UnregisterBroker", 0, 0),
    65: ("DescribeTransactions", 0, 0), 66: ("ListTransactions", 0, 2), 68: ("ConsumerGroupHeartbeat", 0, 1),
    69: ("ConsumerGroupDescribe", 0, 1), 74: ("ListConfigResources", 0, 1), 75: ("DescribeTopicPartitions", 0, 0),
    76: ("ShareGroupHeartbeat", 1, 1), 77: ("ShareGroupDescribe", 1, 1), 78: ("ShareFetch", 1, 2),
    79: ("ShareAcknowledge", 1, 2), 88: ("StreamsGroupHeartbeat", 0, 0), 89: ("StreamsGroupDescribe", 0, 0),
    90: ("DescribeShareGroupOffsets", 0, 1), 91: ("AlterShareGroupOffsets", 0, 0),
    92: ("DeleteShareGroupOffsets", 0, 0),
}  # fmt: skip
INTERNAL = "80 to 87 are spoken between brokers and controllers only"


def document() -> str:
    return "\n".join((*_head(), *_apis(), *_settings(), *_topic_settings())) + "\n"


def _head() -> Iterator[str]:
    yield "# Compatibility with Apache Kafka 4.3"
    yield ""
    yield "This page is made from the code (`tests/broker/test_compatibility.py`); what it says is what is advertised."
    yield ""


def _apis() -> Iterator[str]:
    handlers = load()
    yield "## APIs"
    yield ""
    yield f"Kafka's range is what a 4.3.1 broker advertises ({INTERNAL}). `-`: not served, and not advertised."
    yield ""
    yield "| key | API | served here | Kafka 4.3.1 |"
    yield "|--:|---|---|---|"
    for key, (name, least, most) in KAFKA.items():
        handler = handlers.get(key)
        here = "-"
        if handler is not None:
            here = f"{handler.since}-{handler.until}"
            if handler.advertise_from != handler.since:
                here += f" (advertised from {handler.advertise_from})"
        yield f"| {key} | {name} | {here} | {least}-{most} |"
    yield ""


def _settings() -> Iterator[str]:
    yield "## Settings of the broker"
    yield ""
    yield "Any other name is refused. `*`: read-only in Kafka too; here none can be changed while the broker runs."
    yield ""
    yield "| setting | default | |"
    yield "|---|---|---|"
    for name, setting in sorted(BrokerSettings().all.items()):
        star = "" if setting.dynamic else " *"
        yield f"| `{name}`{star} | {setting.default or ''} | {setting.config.documentation} |"
    yield ""


def _topic_settings() -> Iterator[str]:
    yield "## Settings of topics"
    yield ""
    yield "| setting | default | |"
    yield "|---|---|---|"
    for name, config in TOPIC_CONFIGS.items():
        if name not in NOT_DESCRIBED:
            yield f"| `{name}` | {config.default} | {config.documentation} |"


def test_the_document_says_what_the_code_does() -> None:
    if os.environ.get("HEADWATER_WRITE_DOCS"):
        DOCUMENT.write_text(document())
    assert DOCUMENT.read_text() == document(), "run this test with HEADWATER_WRITE_DOCS=1"


def test_nothing_is_advertised_that_kafka_does_not_advertise() -> None:
    for key, handler in load().items():
        name, least, most = KAFKA[key]
        assert handler.name == name
        assert least <= handler.advertise_from <= handler.since <= handler.until <= most


def test_every_version_of_an_api_that_is_served_is_served() -> None:
    """Older clients live at the lower ends, newer ones at the upper: a part of a range is not compatible."""
    short = {
        handler.name
        for key, handler in load().items()
        if (handler.advertise_from, handler.until) != KAFKA[key][1:]
    }
    assert short <= SHORTER, short


SHORTER: set[str] = set()  # APIs whose further versions are for brokers among each other
