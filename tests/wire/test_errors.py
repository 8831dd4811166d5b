"""Kafka's error codes, against kafka-python's table."""

from __future__ import annotations

import pytest

from headwater.wire.errors import ErrorCode, KafkaError
from tests.wire import kafka_python

OLDER_NAMES = {  # Kafka renamed these; theirs are from before, or their own
    "NO_ERROR": "NONE",
    "UNKNOWN": "UNKNOWN_SERVER_ERROR",
    "INVALID_TOPIC": "INVALID_TOPIC_EXCEPTION",
    "NOT_LEADER_FOR_PARTITION": "NOT_LEADER_OR_FOLLOWER",
    "MESSAGE_SIZE_TOO_LARGE": "MESSAGE_TOO_LARGE",
    "INVALID_REPLICATION_ASSIGNMENT": "INVALID_REPLICA_ASSIGNMENT",
}


def test_every_code_that_kafka_python_knows_has_the_same_name_here() -> None:
    theirs = {code: OLDER_NAMES.get(name, name) for code, name in kafka_python.error_names().items()}
    assert len(theirs) > 100
    assert {code: ErrorCode(code).name for code in theirs} == theirs


def test_codes_are_dense_from_unknown_server_error_on() -> None:
    assert [int(code) for code in ErrorCode] == list(range(-1, 134))


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (KafkaError(ErrorCode.INVALID_TXN_STATE), "INVALID_TXN_STATE"),
        (KafkaError(ErrorCode.INVALID_CONFIG, "no such setting"), "INVALID_CONFIG: no such setting"),
    ],
)
def test_an_error_reads_as_its_name_and_its_message(error: KafkaError, text: str) -> None:
    assert str(error) == text
