"""Metadata and DescribeCluster: names, ids, unknown topics, creation on demand."""

from __future__ import annotations

from headwater.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from headwater.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.peers.prober import Session, scenario
from tests.peers.requests import made


def named(*names: str, **fields: bool) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names], **fields)


@scenario
def a_topic_in_every_version(session: Session) -> None:
    topic = session.name("topic")
    made(session, "topic", 3)
    for version in range(14):
        session.ask("topic", named(topic, allow_auto_topic_creation=True), MetadataResponse, version)


@scenario
def no_topics_asked(session: Session) -> None:
    for version in range(1, 14):
        session.ask("none", MetadataRequest(topics=[]), MetadataResponse, version)


@scenario
def unknown_topics_without_creation(session: Session) -> None:
    for version in (4, 7, 9, 12, 13):
        session.ask(
            "unknown", named(session.name("no"), allow_auto_topic_creation=False), MetadataResponse, version
        )


@scenario
def invalid_names(session: Session) -> None:
    for name in ("", ".", "..", "a b", "a/b", "ü", "x" * 250, "x" * 249):
        request = named(name, allow_auto_topic_creation=name != "x" * 249)
        session.ask(f"name of {len(name)} {name[:6]!r}", request, MetadataResponse, 12)


@scenario
def creation_on_demand(session: Session) -> None:
    topic = session.name("auto")
    first = session.quietly(named(topic, allow_auto_topic_creation=True), MetadataResponse, 8)
    session.note("first", [first.topics[0].error_code in (3, 5), first.topics[0].name == topic])
    request = named(topic, allow_auto_topic_creation=False)
    for _ in range(200):  # the controller of Apache Kafka makes it a moment later
        if session.quietly(request, MetadataResponse, 8).topics[0].error_code == 0:
            break
    session.ask("then", request, MetadataResponse, 8)


@scenario
def topics_by_id(session: Session) -> None:
    topic_id = made(session, "by-id", 2)
    for version in (10, 11, 12, 13):
        both = [
            MetadataRequestTopic(topic_id=topic_id, name=None),
            MetadataRequestTopic(topic_id=b"\x01" * 16, name=None),
        ]
        session.ask("by id", MetadataRequest(topics=both), MetadataResponse, version)
    session.ask(
        "zero id, no name", MetadataRequest(topics=[MetadataRequestTopic(name=None)]), MetadataResponse, 12
    )


@scenario
def authorized_operations_when_asked(session: Session) -> None:
    topic = session.name("ops")
    made(session, "ops")
    for version in (8, 9, 10, 11, 12):
        request = named(topic, include_topic_authorized_operations=True, allow_auto_topic_creation=False)
        session.ask("operations", request, MetadataResponse, version)


@scenario
def the_same_topic_twice(session: Session) -> None:
    topic = session.name("twice")
    made(session, "twice")
    session.ask("twice", named(topic, topic, allow_auto_topic_creation=False), MetadataResponse, 9)


@scenario
def the_cluster(session: Session) -> None:
    for version in (0, 1, 2):
        session.ask("cluster", DescribeClusterRequest(), DescribeClusterResponse, version)
        request = DescribeClusterRequest(include_cluster_authorized_operations=True)
        session.ask("with operations", request, DescribeClusterResponse, version)
    session.ask("controllers", DescribeClusterRequest(endpoint_type=2), DescribeClusterResponse, 1)
    session.ask("neither", DescribeClusterRequest(endpoint_type=3), DescribeClusterResponse, 1)
