"""Metadata, DescribeCluster, DescribeTopicPartitions, ApiVersions: what clients learn first."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.wire.errors import ErrorCode
from headwater.wire.messages.api_versions import ApiVersionsRequest
from headwater.wire.messages.describe_cluster import DescribeClusterRequest
from headwater.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from headwater.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

from .conftest import Client, World

NOT_ASKED = -2147483648


def metadata(client: Client, *names: str, version: int = 12, create: bool = False, **fields: Any) -> Any:
    topics = [MetadataRequestTopic(name=name) for name in names]
    return client.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=create, **fields), version)


def codes(response: Any) -> list[tuple[str | None, int]]:
    return [(topic.name, topic.error_code) for topic in response.topics]


@pytest.mark.parametrize("version", range(14))
def test_every_version_names_broker_topics_and_leaders(client: Client, version: int) -> None:
    topic_id = client.create("t", 2)
    response = metadata(client, "t", version=version, create=version < 4)
    (node,) = response.brokers
    assert (node.node_id, node.host, node.port, node.rack) == (1, "broker.test", 9092, None)
    (topic,) = response.topics
    assert (topic.error_code, topic.name, topic.is_internal) == (0, "t", False)
    assert topic.topic_id == (topic_id if version >= 10 else bytes(16))
    assert [(p.partition_index, p.leader_id, p.replica_nodes, p.isr_nodes) for p in topic.partitions] == [
        (0, 1, [1], [1]), (1, 1, [1], [1]),
    ]  # fmt: skip
    if version >= 1:
        assert response.controller_id == 1
    if version >= 2:
        assert response.cluster_id


def test_null_asks_for_all_and_empty_for_none(client: Client) -> None:
    client.create("b")
    client.create("a")
    assert codes(client.ask(MetadataRequest(topics=None), 12)) == [("a", 0), ("b", 0)]
    assert codes(client.ask(MetadataRequest(topics=[]), 12)) == []
    assert codes(client.ask(MetadataRequest(topics=[]), 0)) == [("a", 0), ("b", 0)]


def test_what_is_found_comes_first_and_once(client: Client) -> None:
    client.create("a")
    client.create("b")
    asked = ("none", "b", "a", "b", "", "no pe")
    assert codes(metadata(client, *asked)) == [("b", 0), ("a", 0), ("", 17), ("no pe", 17), ("none", 3)]


def test_a_topic_that_is_asked_for_is_created_and_there_the_next_time(world: World, client: Client) -> None:
    assert codes(metadata(client, "new", create=True)) == [("new", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    assert codes(metadata(client, "new")) == [("new", 0)]
    world.crash()
    assert codes(metadata(world.client(), "new")) == [("new", 0)]


def test_creation_can_be_forbidden_by_request_and_by_setting(client: Client) -> None:
    metadata(client, "new", create=False)
    assert codes(metadata(client, "new")) == [("new", 3)]
    closed = World({"auto.create.topics.enable": "false"}).client()
    metadata(closed, "new", create=True)
    assert codes(metadata(closed, "new")) == [("new", 3)]


def test_an_automatic_topic_has_the_brokers_number_of_partitions() -> None:
    client = World({"num.partitions": "3"}).client()
    metadata(client, "new", create=True)
    assert len(metadata(client, "new").topics[0].partitions) == 3


def test_a_name_that_collides_is_not_created(client: Client) -> None:
    client.create("a.b")
    assert codes(metadata(client, "a_b", create=True)) == [("a_b", ErrorCode.INVALID_TOPIC_EXCEPTION)]


def by_id(client: Client, *topics: tuple[str | None, bytes], version: int = 12) -> Any:
    asked = [MetadataRequestTopic(name=name, topic_id=topic_id) for name, topic_id in topics]
    return client.ask(MetadataRequest(topics=asked, allow_auto_topic_creation=False), version)


def test_topics_can_be_named_by_id(client: Client) -> None:
    topic_id = client.create("a")
    client.create("b")
    response = by_id(client, (None, topic_id), (None, b"1" * 16), ("b", bytes(16)))
    assert codes(response) == [(None, ErrorCode.UNKNOWN_TOPIC_ID), ("a", 0)]


def test_ids_that_a_version_does_not_know_refuse_the_whole_request(client: Client) -> None:
    topic_id = client.create("a")
    response = by_id(client, ("a", topic_id), version=10)
    assert (response.brokers, response.cluster_id, response.controller_id) == ([], None, -1)
    assert codes(response) == [("a", ErrorCode.INVALID_REQUEST)]
    assert codes(by_id(client, (None, bytes(16)))) == [("", ErrorCode.UNKNOWN_SERVER_ERROR)]


def test_a_topic_made_again_has_another_id(client: Client) -> None:
    from headwater.wire.messages.delete_topics import DeleteTopicsRequest

    first = client.create("a")
    client.ask(DeleteTopicsRequest(topic_names=["a"], timeout_ms=1000), 5)
    assert client.create("a") != first


def test_allowed_operations_are_told_only_if_asked(client: Client) -> None:
    client.create("a")
    quiet = metadata(client, "a", version=8)
    asked = metadata(
        client, "a", version=8, include_cluster_authorized_operations=True, include_topic_authorized_operations=True
    )
    assert (quiet.cluster_authorized_operations, quiet.topics[0].topic_authorized_operations) == (NOT_ASKED, NOT_ASKED)
    assert (asked.cluster_authorized_operations, asked.topics[0].topic_authorized_operations) == (8096, 3576)


def test_internal_topics_are_flagged(world: World, client: Client) -> None:
    world.log.create_topic("__consumer_offsets", 1, {})
    assert metadata(client, "__consumer_offsets").topics[0].is_internal
    missing = metadata(client, "__transaction_state", create=True).topics[0]
    assert (missing.error_code, missing.is_internal) == (3, True)
    assert world.broker.topics.get("__transaction_state") is None


# --- DescribeCluster


def test_the_cluster_is_one_broker(client: Client, world: World) -> None:
    response = client.ask(DescribeClusterRequest(include_cluster_authorized_operations=True), 2)
    assert (response.cluster_id, response.controller_id) == (world.log.cluster_id, 1)
    assert [(b.broker_id, b.host, b.port, b.is_fenced) for b in response.brokers] == [(1, "broker.test", 9092, False)]
    assert response.cluster_authorized_operations == 8096
    assert client.ask(DescribeClusterRequest(), 0).cluster_authorized_operations == NOT_ASKED


@pytest.mark.parametrize(
    ("kind", "code", "sentence"),
    [
        (2, 114, "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"),
        (3, 115, "Unsupported endpoint type 3"),
    ],
)
def test_other_kinds_of_endpoints_are_refused(client: Client, kind: int, code: int, sentence: str) -> None:
    response = client.ask(DescribeClusterRequest(endpoint_type=kind), 1)
    assert (response.error_code, response.error_message, response.brokers) == (code, sentence, [])


# --- DescribeTopicPartitions


def pages(client: Client, names: list[str], limit: int, cursor: tuple[str, int] | None = None) -> Any:
    return client.ask(
        DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in names],
            response_partition_limit=limit,
            cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
        ),
        0,
    )


def test_topics_come_in_pages(client: Client) -> None:
    client.create("a", 3)
    client.create("b", 2)
    seen: list[tuple[str, int]] = []
    cursor = None
    for _ in range(4):
        response = pages(client, ["b", "a"], 2, cursor)
        seen += [(topic.name, p.partition_index) for topic in response.topics for p in topic.partitions]
        if response.next_cursor is None:
            break
        cursor = response.next_cursor.topic_name, response.next_cursor.partition_index
    assert seen == [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1)]


def test_a_full_page_names_the_next_topic_even_if_it_does_not_exist(client: Client) -> None:
    client.create("b")
    response = pages(client, ["none", "b"], 1)
    assert codes(response) == [("b", 0)]
    assert (response.next_cursor.topic_name, response.next_cursor.partition_index) == ("none", 0)
    assert codes(pages(client, ["no pe", "none"], 10)) == [("no pe", 17), ("none", 3)]


@pytest.mark.parametrize("cursor", [("a", -1), ("none", 0)])
def test_a_cursor_that_points_nowhere_is_refused(client: Client, cursor: tuple[str, int]) -> None:
    client.create("a")
    assert codes(pages(client, ["a"], 10, cursor)) == [("a", ErrorCode.INVALID_REQUEST)]


# --- ApiVersions


@pytest.mark.parametrize("version", range(5))
def test_api_versions_lists_produce_from_0(client: Client, version: int) -> None:
    request = ApiVersionsRequest(client_software_name="x", client_software_version="1.0")
    response = client.ask(request, version)
    served = {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}
    assert response.error_code == 0
    assert served[0] == (0, 13) and served[1] == (4, 18) and served[18] == (0, 4)


def test_only_the_features_that_hold_are_listed(client: Client) -> None:
    response = client.ask(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 4)
    (supported,), (finalized,) = response.supported_features, response.finalized_features
    assert (supported.name, supported.min_version, supported.max_version) == ("transaction.version", 0, 1)
    assert (finalized.name, finalized.max_version_level) == ("transaction.version", 1)


@pytest.mark.parametrize(
    ("name", "version"), [("", "1"), ("x", ""), ("-x", "1"), ("x", "1."), ("x y", "1"), ("x", "1_0"), ("\u00e4", "1")]
)
def test_a_client_must_say_what_it_is_in_plain_words(client: Client, name: str, version: str) -> None:
    response = client.ask(ApiVersionsRequest(client_software_name=name, client_software_version=version), 3)
    assert (response.error_code, response.api_keys) == (ErrorCode.INVALID_REQUEST, [])


def test_what_a_client_calls_itself_is_kept(client: Client) -> None:
    client.ask(ApiVersionsRequest(client_software_name="librdkafka", client_software_version="2.15.0-1"), 3)
    assert client.connection.client_software_name == "librdkafka"
    assert client.connection.client_software_version == "2.15.0-1"
