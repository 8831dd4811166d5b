"""Topics made, grown, changed and deleted; their configurations; DeleteRecords."""

from __future__ import annotations

from headwater.wire.messages.alter_configs import AlterableConfig as ReplacedConfig
from headwater.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from headwater.wire.messages.alter_configs import AlterConfigsResource as ReplacedResource
from headwater.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from headwater.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from headwater.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from headwater.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from headwater.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from headwater.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from headwater.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from headwater.wire.messages.produce import ProduceResponse
from tests.peers.prober import Session, scenario
from tests.peers.requests import create, made, produce_to, records

TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


def ask_create(session: Session, label: str, request: CreateTopicsRequest, version: int) -> None:
    """Notes a creation's answer; the list of configurations is compared by its own scenario."""
    answer = session.quietly(request, CreateTopicsResponse, version)
    for topic in answer.topics:
        if topic.configs:
            topic.configs = [config for config in topic.configs if config.config_source == 1]
    session.note(f"{label} v{version}", session.tree(answer))


@scenario
def creation_in_every_version(session: Session) -> None:
    for version in range(2, 8):
        request = create(session.name(f"made-{version}"), 2, configs={"retention.ms": "60000"})
        ask_create(session, "create", request, version)
        ask_create(session, "again", request, version)


@scenario
def creation_that_is_refused(session: Session) -> None:
    name = session.name
    cases = {
        "no partitions": create(name("none"), 0),
        "negative partitions": create(name("negative"), -2),
        "three replicas": create(name("three"), 1, 3),
        "no replicas": create(name("zero"), 1, 0),
        "empty name": create(""),
        "dot": create("."),
        "dots": create(".."),
        "space": create("a b"),
        "too long": create("x" * 250),
        "unknown config": create(name("unknown"), configs={"no.such.config": "1"}),
        "bad number": create(name("bad"), configs={"retention.ms": "soon"}),
        "negative size": create(name("size"), configs={"segment.bytes": "-1"}),
        "bad policy": create(name("policy"), configs={"cleanup.policy": "sometimes"}),
        "null value": create(name("null"), configs={"retention.ms": None}),
    }
    for label, request in cases.items():
        ask_create(session, label, request, 7)


@scenario
def creation_with_defaults(session: Session) -> None:
    ask_create(session, "defaults", create(session.name("defaults"), -1, -1), 7)
    ask_create(session, "defaults", create(session.name("defaults-2"), -1, -1), 4)


@scenario
def creation_only_validated(session: Session) -> None:
    topic = session.name("validated")
    ask_create(session, "validate", create(topic, 2, validate_only=True), 7)
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    session.ask("not there", asked, MetadataResponse, 9)


@scenario
def creation_with_assignments(session: Session) -> None:
    def assigned(
        name: str, *brokers: list[int], partitions: int = -1, replication: int = -1
    ) -> CreateTopicsRequest:
        assignments = [
            CreatableReplicaAssignment(partition_index=n, broker_ids=ids) for n, ids in enumerate(brokers)
        ]
        topic = CreatableTopic(
            name=session.name(name),
            num_partitions=partitions,
            replication_factor=replication,
            assignments=assignments,
        )
        return CreateTopicsRequest(topics=[topic], timeout_ms=30_000)

    ask_create(session, "two", assigned("two", [1], [1]), 7)
    ask_create(session, "unknown broker", assigned("unknown", [9]), 7)
    ask_create(session, "with a count", assigned("count", [1], partitions=1), 7)
    ask_create(session, "empty replicas", assigned("empty", []), 7)
    ask_create(session, "the same twice", assigned("same", [1, 1]), 7)


@scenario
def the_same_name_twice_in_one_request(session: Session) -> None:
    request = create(session.name("twice"))
    request.topics = [*request.topics, *create(session.name("twice"), 2).topics]
    ask_create(session, "twice", request, 7)


@scenario
def names_that_collide(session: Session) -> None:
    ask_create(session, "dot", create(session.name("a.b")), 7)
    ask_create(session, "underscore", create(session.name("a_b")), 7)


@scenario
def deletion(session: Session) -> None:
    for version in range(1, 6):
        topic = session.name(f"gone-{version}")
        made(session, f"gone-{version}")
        request = DeleteTopicsRequest(topic_names=[topic, session.name("never")], timeout_ms=30_000)
        session.ask("delete", request, DeleteTopicsResponse, version, by="name")
        session.ask("again", request, DeleteTopicsResponse, version, by="name")


@scenario
def deletion_by_id(session: Session) -> None:
    topic = session.name("gone")
    topic_id = made(session, "gone")
    by_id = [
        DeleteTopicState(name=None, topic_id=topic_id),
        DeleteTopicState(name=None, topic_id=b"\x07" * 16),
    ]
    request = DeleteTopicsRequest(topics=by_id, timeout_ms=30_000)
    answer = session.quietly(request, DeleteTopicsResponse, 6)
    session.note("by id", sorted((row.error_code, row.name or "") for row in answer.responses))
    both = DeleteTopicState(name=topic, topic_id=topic_id)
    session.ask("name and id", DeleteTopicsRequest(topics=[both], timeout_ms=30_000), DeleteTopicsResponse, 6)
    neither = DeleteTopicState(name=None)
    session.ask("neither", DeleteTopicsRequest(topics=[neither], timeout_ms=30_000), DeleteTopicsResponse, 6)


@scenario
def a_topic_made_again_is_another(session: Session) -> None:
    topic = session.name("again")
    first = made(session, "again")
    session.quietly(DeleteTopicsRequest(topic_names=[topic], timeout_ms=30_000), DeleteTopicsResponse, 4)
    second = made(session, "again")
    session.note("another id", first != second)


@scenario
def more_partitions(session: Session) -> None:
    def grown(name: str, count: int, assignments: list[CreatePartitionsAssignment] | None = None,
              validate: bool = False) -> CreatePartitionsRequest:  # fmt: skip
        topic = CreatePartitionsTopic(name=name, count=count, assignments=assignments)
        return CreatePartitionsRequest(topics=[topic], timeout_ms=30_000, validate_only=validate)

    topic = session.name("grows")
    made(session, "grows", 2)
    for version in range(4):
        session.ask("one more", grown(topic, 3 + version), CreatePartitionsResponse, version)
    for count in (6, 2, 0, -1):
        session.ask(f"to {count}", grown(topic, count), CreatePartitionsResponse, 3)
    session.ask("validated", grown(topic, 9, validate=True), CreatePartitionsResponse, 3)
    session.ask("unknown", grown(session.name("no"), 9), CreatePartitionsResponse, 3)
    one = [CreatePartitionsAssignment(broker_ids=[1])]
    session.ask("assigned", grown(topic, 7, one), CreatePartitionsResponse, 3)
    session.ask("assigned wrongly", grown(topic, 9, one), CreatePartitionsResponse, 3)
    session.ask(
        "unknown broker",
        grown(topic, 8, [CreatePartitionsAssignment(broker_ids=[9])]),
        CreatePartitionsResponse,
        3,
    )


def described(name: str, *keys: str, kind: int = TOPIC, documented: bool = False, synonyms: bool = True,
              every: bool = False) -> DescribeConfigsRequest:  # fmt: skip
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None if every else list(keys)
    )
    return DescribeConfigsRequest(
        resources=[resource], include_synonyms=synonyms, include_documentation=documented
    )


@scenario
def configurations_of_a_topic(session: Session) -> None:
    topic = session.name("configured")
    made(session, "configured", configs={"retention.ms": "60000", "cleanup.policy": "delete"})
    keys = ("retention.ms", "cleanup.policy", "max.message.bytes", "no.such.config", "compression.type")
    for version in (1, 2, 3, 4):
        session.ask("some", described(topic, *keys), DescribeConfigsResponse, version, by="name")
    session.ask("unknown topic", described(session.name("no"), *keys), DescribeConfigsResponse, 4)
    session.ask("no such kind", described(topic, *keys, kind=77), DescribeConfigsResponse, 4)
    answer = session.quietly(described(topic, every=True, synonyms=False), DescribeConfigsResponse, 4)
    rows = {row.name: [row.value, row.read_only, row.is_sensitive, row.config_source, row.config_type]
            for row in answer.results[0].configs}  # fmt: skip
    session.note("every one", rows)


def changed(name: str, *changes: tuple[str, int, str | None], kind: int = TOPIC,
            validate: bool = False) -> IncrementalAlterConfigsRequest:  # fmt: skip
    configs = [
        AlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    return IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate)


@scenario
def configurations_changed_one_by_one(session: Session) -> None:
    """Each change is followed by what the topic then says, once Apache Kafka's broker has heard of it."""
    topic = session.name("changes")
    made(session, "changes")
    cases = {
        "set": changed(topic, ("retention.ms", SET, "1000")),
        "append": changed(topic, ("cleanup.policy", APPEND, "compact")),
        "subtract": changed(topic, ("cleanup.policy", SUBTRACT, "delete")),
        "delete": changed(topic, ("retention.ms", DELETE, None)),
        "append to a number": changed(topic, ("retention.ms", APPEND, "5")),
        "bad value": changed(topic, ("retention.ms", SET, "soon")),
        "unknown key": changed(topic, ("no.such.config", SET, "1")),
        "the same twice": changed(topic, ("retention.ms", SET, "1"), ("retention.ms", SET, "2")),
        "null": changed(topic, ("retention.ms", SET, None)),
        "no such operation": changed(topic, ("retention.ms", 9, "1")),
        "validated": changed(topic, ("retention.ms", SET, "7777"), validate=True),
        "unknown topic": changed(session.name("no"), ("retention.ms", SET, "1")),
    }
    expected = {"retention.ms": "604800000", "cleanup.policy": "delete"}
    results = {
        "set": {"retention.ms": "1000"},
        "append": {"cleanup.policy": "delete,compact"},
        "subtract": {"cleanup.policy": "compact"},
        "delete": {"retention.ms": "604800000"},
    }
    for label, request in cases.items():
        session.ask(label, request, IncrementalAlterConfigsResponse, 1)
        expected |= results.get(label, {})
        then = described(topic, *expected, synonyms=False)
        for _ in range(2000):
            answer = session.quietly(then, DescribeConfigsResponse, 4)
            if {row.name: row.value for row in answer.results[0].configs} == expected:
                break
        session.ask("then", then, DescribeConfigsResponse, 4, by="name")


@scenario
def configurations_replaced_at_once(session: Session) -> None:
    topic = session.name("replaced")
    made(session, "replaced", configs={"retention.ms": "5000"})
    for version in (0, 1, 2):
        configs = [ReplacedConfig(name="max.message.bytes", value=str(5000 + version))]
        resource = ReplacedResource(resource_type=TOPIC, resource_name=topic, configs=configs)
        session.ask("replace", AlterConfigsRequest(resources=[resource]), AlterConfigsResponse, version)
    session.ask(
        "then", described(topic, "retention.ms", "max.message.bytes"), DescribeConfigsResponse, 4, by="name"
    )


@scenario
def records_deleted(session: Session) -> None:
    def cut(name: str, *offsets: int, partition: int = 0) -> DeleteRecordsRequest:
        parts = [DeleteRecordsPartition(partition_index=partition, offset=offset) for offset in offsets]
        return DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=name, partitions=parts)], timeout_ms=10_000
        )

    topic = session.name("cut")
    made(session, "cut")
    session.quietly(produce_to(topic, records(10)), ProduceResponse, 9)
    for version, offset in ((0, 2), (1, 4), (2, 6), (2, 3), (2, 11), (2, -2), (2, -1)):
        session.ask(f"before {offset}", cut(topic, offset), DeleteRecordsResponse, version)
    session.ask("unknown partition", cut(topic, 1, partition=5), DeleteRecordsResponse, 2)
    session.ask("unknown topic", cut(session.name("no"), 1), DeleteRecordsResponse, 2)
