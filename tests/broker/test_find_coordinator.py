"""FindCoordinator: everything is here."""

from __future__ import annotations

import pytest

from headwater.wire.errors import ErrorCode
from headwater.wire.messages.find_coordinator import FindCoordinatorRequest
from tests.broker.conftest import HOST, PORT, Client, World

HERE = (1, HOST, PORT)


@pytest.mark.parametrize("version", range(4))
def test_one_key_is_answered_with_this_broker(client: Client, version: int) -> None:
    answer = client.ask(FindCoordinatorRequest(key="g"), version)
    assert (answer.error_code, answer.node_id, answer.host, answer.port) == (0, *HERE)
    assert answer.error_message == ("NONE" if version else "")


@pytest.mark.parametrize("version", [4, 5, 6])
def test_many_keys_are_answered_one_by_one(client: Client, version: int) -> None:
    answer = client.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=["a", ""]), version)
    found = [(each.key, each.node_id, each.host, each.port, each.error_code) for each in answer.coordinators]
    assert found == [("a", *HERE, 0), ("", *HERE, 0)]


@pytest.mark.parametrize(("key_type", "topic"), [(0, "__consumer_offsets"), (1, "__transaction_state")])
def test_the_first_question_creates_the_internal_topic(
    world: World, client: Client, key_type: int, topic: str
) -> None:
    assert not world.log.topics
    client.ask(FindCoordinatorRequest(key="x", key_type=key_type), 1)
    assert [*world.log.topics] == [topic]
    assert len(world.log.topics[topic].partitions) == 50
    assert world.log.topics[topic].config["cleanup.policy"] == "compact"


def test_an_unknown_kind_of_key_is_an_invalid_request(client: Client) -> None:
    one = client.ask(FindCoordinatorRequest(key="x", key_type=7), 3)
    assert (one.error_code, one.node_id, one.host, one.port) == (ErrorCode.INVALID_REQUEST, -1, "", -1)
    many = client.ask(FindCoordinatorRequest(coordinator_keys=["x"], key_type=7), 4)
    assert [(each.error_code, each.node_id) for each in many.coordinators] == [
        (ErrorCode.INVALID_REQUEST, -1)
    ]


def test_share_groups_have_no_coordinator_yet(client: Client) -> None:
    for key, version, error in (
        ("g", 4, ErrorCode.INVALID_REQUEST),
        ("g", 6, ErrorCode.INVALID_REQUEST),
        ("g:AAAAAAAAAAAAAAAAAAAAAg:0", 6, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ):
        (each,) = client.ask(FindCoordinatorRequest(coordinator_keys=[key], key_type=2), version).coordinators
        assert (each.error_code, each.node_id, each.port) == (error, -1, -1)


def test_no_keys_are_answered_with_no_coordinators(client: Client) -> None:
    assert client.ask(FindCoordinatorRequest(key_type=7), 5).coordinators == []
