"""Every message in every version: its shape against Kafka's JSON, its bytes against two other encoders.

The oracle is kafka-python 3.0, which ships Kafka's message descriptors. They are those of Kafka 4.3 in every version
of every API that is here, up to Produce 13, Fetch 18, ListOffsets 11 and OffsetCommit 10; beside them it has a few
fields of versions that Kafka 4 has dropped. It lacks the records of internal topics: those have golden bytes, which
Kafka 4.3.1's own classes read and write.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from headwater.wire.messages import APIS, request_class, response_class
from headwater.wire.messages.api_versions import ApiVersionsRequest
from headwater.wire.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest
from headwater.wire.messages.metadata import MetadataRequest
from headwater.wire.messages.offsets_topic import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from headwater.wire.messages.transaction_state import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)
from headwater.wire.schema import Field, Schema, decode, encode, schema_of
from tests.wire import kafka_python
from tests.wire.reference_codec import (
    RECORD_CLASSES,
    Reference,
    every_class,
    every_version,
    random_message,
)

SEED = 20_260
ROUNDS = 6
API_CLASSES = [cls for cls in every_class() if cls not in RECORD_CLASSES]
ZEROS = {"string": "", "bool": False, "float64": 0.0, "uuid": bytes(16), "bytes": b"", "records": None}


# --- shape ---------------------------------------------------------------------------------------------------


def versions_of(text: str | None) -> tuple[int, int]:
    if text is None or text == "none":
        return (1, 0)
    low, plus, high = text.partition("+") if text.endswith("+") else text.partition("-")
    return int(low), 32767 if plus == "+" else int(high or low)


def snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


def present_in(described: dict[str, Any]) -> str:
    return described.get("versions") or str(described["taggedVersions"])


def is_in(version: int, text: str | None) -> bool:
    low, high = versions_of(text)
    return low <= version <= high


def default_of(described: dict[str, Any], field: Field) -> Any:
    """What Kafka's generator makes of the JSON."""
    kind = described["type"]
    given = described.get("default")
    if given == "null":
        return None
    if kind.startswith("[]"):
        return []
    if field.schema is not None:
        return field.schema.cls()
    if given is None:
        return ZEROS.get(kind, 0)
    if kind == "bool":
        return str(given).lower() == "true"
    return given if kind == "string" else float(given) if kind == "float64" else int(str(given), 0)


def compare(schema: Schema, described: list[dict[str, Any]], versions: range, place: str) -> None:
    lasting = [each for each in described if any(is_in(v, present_in(each)) for v in versions)]
    assert [field.name for field in schema.fields] == [snake(each["name"]) for each in lasting], place
    for field, each in zip(schema.fields, lasting, strict=True):
        here = f"{place}.{field.name}"
        kind = each["type"].removeprefix("[]")
        assert field.is_array == each["type"].startswith("[]"), here
        if field.schema is None:
            assert field.type_name.lower() == kind, here
        else:
            assert field.schema.cls.__name__.removeprefix("Response") == kind.removeprefix("Response"), here
        assert [v for v in versions if field.exists_in(v)] == [v for v in versions if is_in(v, present_in(each))], here
        inside = [v for v in versions if field.exists_in(v)]
        assert field.tag == each.get("tag"), here
        if field.tag is not None:
            assert all(is_in(v, each["taggedVersions"]) for v in inside), here
        nullable = [v for v in inside if field.is_nullable_in(v)]
        assert nullable == [v for v in inside if is_in(v, each.get("nullableVersions"))] or kind == "records", here
        assert field.default == default_of(each, field), here
        if len(inside) < len(versions):
            assert field.ignorable == bool(each.get("ignorable")), here
        if field.schema is not None:
            compare(field.schema, each["fields"], range(inside[0], inside[-1] + 1), here)


@pytest.mark.parametrize("cls", API_CLASSES, ids=lambda cls: cls.__name__)
def test_fields_are_those_that_kafka_describes(cls: type) -> None:
    described = kafka_python.descriptor(cls)
    schema = schema_of(cls)
    assert schema.key == described["apiKey"]
    assert schema.versions == versions_of(described["validVersions"])
    low, high = schema.versions
    first_flexible, last_flexible = versions_of(described["flexibleVersions"])
    for version in range(low, high + 1):
        assert (version >= schema.flexible) == (first_flexible <= version <= last_flexible)
    compare(schema, described["fields"], range(low, high + 1), cls.__name__)


def test_an_api_is_found_by_its_key_and_no_other_is() -> None:
    assert len(APIS) == 38
    assert {schema_of(cls).key for cls in API_CLASSES} == set(APIS)
    assert request_class(4) is None
    assert response_class(-1) is None


# --- bytes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", API_CLASSES, ids=lambda cls: cls.__name__)
def test_kafka_python_writes_the_same_bytes(cls: type) -> None:
    low, high = schema_of(cls).versions
    for version in range(low, high + 1):
        chance = random.Random(SEED + version)
        for _ in range(ROUNDS):
            message = random_message(cls, version, chance)
            ours = b"".join(encode(message, version))
            assert ours == kafka_python.encoded(message, version), (SEED, version, message)


def test_a_message_comes_back_as_it_was_sent_in_every_version() -> None:
    for cls, version in every_version():
        chance = random.Random(SEED + version)
        for _ in range(ROUNDS):
            message = random_message(cls, version, chance)
            data = b"".join(encode(message, version))
            assert decode(cls, version, memoryview(data)) == message, (SEED, version)


def test_the_compiled_encoder_agrees_with_the_plain_one() -> None:
    for cls, version in every_version():
        chance = random.Random(SEED - version)
        for _ in range(ROUNDS):
            message = random_message(cls, version, chance)
            assert b"".join(encode(message, version)) == Reference(message, version).bytes, (SEED, version, message)


# --- golden bytes --------------------------------------------------------------------------------------------

GOLDEN: list[tuple[Any, int, str]] = [
    (OffsetCommitKey(group="g", topic="orders", partition=7), 1, "000167 00066f7264657273 00000007"),
    (GroupMetadataKey(group="g"), 2, "000167"),
    (
        OffsetCommitValue(offset=5, metadata="m", commit_timestamp=9, expire_timestamp=11),
        1,
        "0000000000000005 00016d 0000000000000009 000000000000000b",
    ),
    (
        OffsetCommitValue(offset=5, leader_epoch=2, metadata="m", commit_timestamp=9),
        3,
        "0000000000000005 00000002 00016d 0000000000000009",
    ),
    (
        OffsetCommitValue(offset=5, leader_epoch=2, commit_timestamp=9, topic_id=b"\x11" * 16),
        4,
        "0000000000000005 00000002 01 0000000000000009 01 0010" + "11" * 16,
    ),
    (
        GroupMetadataValue(
            protocol_type="consumer",
            generation=3,
            protocol=None,
            leader=None,
            current_state_timestamp=1,
            members=[MemberMetadata(member_id="m", client_id="c", client_host="h", assignment=b"ab")],
        ),
        3,
        "0008636f6e73756d6572 00000003 ffff ffff 0000000000000001 00000001"
        "00016d ffff 000163 000168 ffffffff 00000000 00000000 00000002 6162",
    ),
    (TransactionLogKey(transactional_id="tx"), 0, "00027478"),
    (
        TransactionLogValue(
            producer_id=4,
            producer_epoch=1,
            transaction_timeout_ms=60_000,
            transaction_status=1,
            transaction_partitions=[PartitionsSchema(topic="t", partition_ids=[0, 2])],
            transaction_last_update_timestamp_ms=8,
            transaction_start_timestamp_ms=7,
            client_transaction_version=2,
            next_producer_epoch=5,
        ),
        1,
        "0000000000000004 0001 0000ea60 01 02 0274 03 00000000 00000002 00"
        "0000000000000008 0000000000000007 02 0202 0002 0302 0005",
    ),
    (ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3, "0261 0231 00"),
    (ApiVersionsRequest(), 2, ""),
    (MetadataRequest(topics=None, allow_auto_topic_creation=False), 12, "00 00 00 00"),
    (DescribeTopicPartitionsRequest(cursor=None), 0, "01 000007d0 ff 00"),
    (
        DescribeTopicPartitionsRequest(cursor=Cursor(topic_name="t", partition_index=1)),
        0,
        "01 000007d0 01 0274 00000001 00 00",
    ),
]


@pytest.mark.parametrize(("message", "version", "expected"), GOLDEN)
def test_golden_bytes_are_written_and_read(message: Any, version: int, expected: str) -> None:
    data = bytes.fromhex(expected)
    assert b"".join(encode(message, version)) == data
    assert decode(type(message), version, memoryview(data)) == message
