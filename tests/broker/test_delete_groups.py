"""DeleteGroups: a group without members goes with everything it committed."""

from __future__ import annotations

from headwater.wire.errors import ErrorCode
from headwater.wire.messages.delete_groups import DeleteGroupsRequest
from tests.broker.conftest import Client, World
from tests.broker.members import Producer, commit_request, committed, start_alone


def delete(client: Client, *groups: str) -> dict[str, int]:
    response = client.ask(DeleteGroupsRequest(groups_names=list(groups)), 2)
    assert len(response.results) == len({result.group_id for result in response.results})
    return {result.group_id: result.error_code for result in response.results}


def test_only_groups_without_members_are_deleted(world: World, client: Client) -> None:
    client.create("events")
    start_alone(world, "live")
    client.ask(commit_request("idle", {("events", 0): 3}), 8)
    assert delete(client, "live", "idle", "none", "none") == {
        "live": ErrorCode.NON_EMPTY_GROUP,
        "idle": ErrorCode.NONE,
        "none": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    assert committed(client, "idle") == -1


def test_a_deleted_group_does_not_come_back(world: World, client: Client) -> None:
    client.create("events")
    client.ask(commit_request("g", {("events", 0): 3}), 8)
    delete(client, "g")
    world.restart()
    assert world.broker.groups.get("g") is None
    assert committed(world.client(), "g") == -1


def test_the_deletion_is_answered_only_when_it_is_durable(world: World, client: Client) -> None:
    client.create("events")
    client.ask(commit_request("g", {("events", 0): 3}), 8)
    pending = client.submit(DeleteGroupsRequest(groups_names=["g"]), 2)
    assert not pending.done
    world.log.commit()
    assert pending.done


def test_a_deleted_group_takes_offsets_that_are_still_being_written_with_it(
    world: World, client: Client
) -> None:
    client.create("events")
    client.submit(commit_request("g", {("events", 0): 3}), 8)
    assert delete(client, "g") == {"g": ErrorCode.NONE}
    assert committed(client, "g") == -1
    world.restart()
    assert committed(world.client(), "g") == -1


def test_offsets_of_an_open_transaction_do_not_outlive_their_group(world: World, client: Client) -> None:
    client.create("events")
    producer = Producer(world, "tx")
    producer.begin()
    producer.add_offsets("g")
    producer.commit_offset("g", 9)
    assert delete(client, "g") == {"g": ErrorCode.NONE}
    producer.end(commit=True)
    assert committed(client, "g") == -1
    world.restart()
    assert committed(world.client(), "g") == -1


def test_a_new_group_of_the_same_name_begins_anew(world: World, client: Client) -> None:
    consumer = start_alone(world, "g")
    consumer.leave()
    assert delete(client, "g") == {"g": ErrorCode.NONE}
    assert start_alone(world, "g").generation == 1
