"""ListGroups: all, or some."""

from __future__ import annotations

import pytest

from headwater.wire.messages.list_groups import ListGroupsRequest
from tests.broker.conftest import Client, World
from tests.broker.members import Consumer, commit_request, start_alone


def names(client: Client, version: int = 5, **fields: list[str]) -> set[str]:
    return {group.group_id for group in client.ask(ListGroupsRequest(**fields), version).groups}


@pytest.mark.parametrize("version", range(6))
def test_every_group_is_listed_with_as_much_as_the_version_has(
    world: World, client: Client, version: int
) -> None:
    client.create("events")
    start_alone(world, "stable")
    client.ask(commit_request("simple", {("events", 0): 1}), 8)
    listed = {group.group_id: group for group in client.ask(ListGroupsRequest(), version).groups}
    assert {name: group.protocol_type for name, group in listed.items()} == {
        "stable": "consumer",
        "simple": "",
    }
    if version >= 4:
        assert {name: group.group_state for name, group in listed.items()} == {
            "stable": "Stable", "simple": "Empty",
        }  # fmt: skip
    if version >= 5:
        assert {group.group_type for group in listed.values()} == {"classic"}


def test_states_and_types_filter_without_regard_to_case(world: World, client: Client) -> None:
    client.create("events")
    start_alone(world, "stable")
    Consumer(world, "completing").join()
    client.ask(commit_request("simple", {("events", 0): 1}), 8)
    assert names(client, states_filter=["stable"]) == {"stable"}
    assert names(client, states_filter=["EMPTY", "CompletingRebalance"]) == {"simple", "completing"}
    assert names(client, states_filter=["nonsense"]) == set()
    assert names(client, types_filter=["Classic"]) == {"stable", "completing", "simple"}
    assert names(client, types_filter=["consumer"]) == set()
    assert names(client, types_filter=["nonsense"]) == set()
