"""`headwater groups`: who reads, how far behind, and moving them; on any Kafka."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from headwater.cli.options import Noun, Verb, connection, form_options, log_options
from headwater.cli.output import say, styled, write, write_json, write_table
from headwater.cli.values import Place

if TYPE_CHECKING:
    from headwater.client.groups import GroupDescription, Groups, Move


@click.group(cls=Noun)
@log_options
def groups() -> None:
    """List groups, show their lag, move or delete them."""


@groups.command("list", cls=Verb, examples="headwater groups list")
@form_options
@log_options
def list_groups(as_json: bool, plain: bool) -> None:
    """The consumer groups and their state."""
    found = _groups().all()
    if as_json:
        for group in found:
            write_json({"group": group.name, "state": group.state, "kind": group.kind})
        return
    if not found:
        say("There are no groups yet.")
        return
    write_table(["group", "state", "kind"], found, plain)


@groups.command("describe", cls=Verb, examples="headwater groups describe billing")
@click.argument("names", nargs=-1, required=True, metavar="GROUP...")
@form_options
@log_options
def describe(names: tuple[str, ...], as_json: bool, plain: bool) -> None:
    """A group's members, committed offsets and lag."""
    admin = _groups()
    for number, name in enumerate(names):
        found = admin.describe(name)
        if as_json:
            write_json(_as_json(found))
        else:
            if number and not plain:
                write(b"\n")
            _print(found, plain)


def _as_json(found: GroupDescription) -> dict[str, Any]:
    return {
        "group": found.name, "state": found.state, "kind": found.kind, "assignor": found.assignor,
        "coordinator": found.coordinator, "members": found.members, "lag": found.lag,
        "partitions": [
            {"topic": part.topic, "partition": part.partition, "committed": part.committed, "end": part.end,
             "lag": part.lag, "member": part.member, "host": part.host}
            for part in found.progress
        ],
    }


def _print(found: GroupDescription, plain: bool) -> None:
    import sys

    from headwater.client.record import counted

    rows = [
        (part.topic, part.partition, part.committed, part.end, part.lag, part.member, part.host)
        for part in found.progress
    ]
    if plain:
        write_table([], [(found.name, *row) for row in rows], plain=True)
        return
    members = counted(found.members, "member")
    write(f"{styled(found.name, 'bold', sys.stdout)}  {found.state}, {members}, lag {found.lag}\n\n".encode())
    if rows:
        write_table(["topic", "partition", "committed", "end", "lag", "member", "host"], rows)


@groups.command("reset", cls=Verb, examples="""
headwater groups reset billing --to earliest             show what would change
headwater groups reset billing --to earliest --yes       change it
headwater groups reset billing orders payments --to 2h   only these topics, two hours back
headwater groups reset billing orders:3 --shift -100     one partition, a hundred records back
""")
@click.argument("name", metavar="GROUP")
@click.argument("places", nargs=-1, metavar="[TOPIC[:PARTITION]]...")
@click.option("--to", type=Place(), metavar="PLACE", help="earliest, latest, an offset, a time, or how long ago (2h).")
@click.option("--shift", type=int, metavar="N", help="N records forward, or back with -N.")
@click.option("--yes", is_flag=True, help="Do it. Without, it is only shown what would change.")
@form_options
@log_options
def reset(
    name: str, places: tuple[str, ...], to: Any, shift: int | None, yes: bool, as_json: bool, plain: bool
) -> None:
    """Move a group to other offsets. All of its topics, if none is named. It must have no members."""
    if (to is None) == (shift is None):
        raise click.UsageError("give either --to or --shift", click.get_current_context())
    topics, partitions = _split(places)
    admin = _groups()
    moves = admin.plan_move(name, topics, to, shift, partitions)
    changes = [move for move in moves if move.before != move.after]
    new = bool(moves) and all(move.before is None for move in moves) and not admin.exists(name)
    if yes:
        admin.apply(name, changes)
    if as_json:
        for move in moves:
            write_json({"group": name, **move._asdict(), "applied": yes and move in changes})
    else:
        write_table(["topic", "partition", "committed", "new", "change"], [_row(move) for move in moves], plain)
    _say_reset(name, moves, len(changes), new, yes)


def _say_reset(name: str, moves: list[Move], changes: int, new: bool, yes: bool) -> None:
    from headwater.client.record import counted

    for move in moves:
        if move.asked is not None:
            end = "ends at" if move.asked > move.after else "begins at"
            say(f"{move.topic}:{move.partition} has no offset {move.asked}: it {end} {move.after}, which is taken")
    on = counted(changes, "partition")
    if new and yes:
        say(f"made group {name} with offsets on {on}")
    elif new:
        say(f"There is no group {name} yet: it would be made. Add --yes to make it, with offsets on {on}.")
    elif yes:
        say(f"moved {name} on {on}")
    elif changes:
        say(f"Nothing was changed. Add --yes to move {name} on {on}.")
    else:
        say("Nothing to change: the group stands there already.")


def _row(move: Move) -> tuple[Any, ...]:
    change = None if move.before is None else f"{move.after - move.before:+d}"
    return (move.topic, move.partition, move.before, move.after, change)


def _split(places: tuple[str, ...]) -> tuple[list[str], list[tuple[str, int]]]:
    topics: list[str] = []
    partitions: list[tuple[str, int]] = []
    for place in places:
        topic, colon, index = place.partition(":")  # a topic's name never holds a colon
        if not colon:
            topics.append(topic)
        elif index.isdecimal():
            partitions.append((topic, int(index)))
        else:
            raise click.UsageError(f"write TOPIC or TOPIC:PARTITION, not {place}", click.get_current_context())
    return topics, partitions


@groups.command("delete", cls=Verb, examples="headwater groups delete billing --yes")
@click.argument("names", nargs=-1, required=True, metavar="GROUP...")
@click.option("--yes", is_flag=True, help="Do it. Without, it is only shown what would be deleted.")
@log_options
def delete(names: tuple[str, ...], yes: bool) -> None:
    """Delete groups with their offsets. A group with members is refused."""
    from headwater.client.record import counted

    admin = _groups()
    for name in names:
        if yes:
            admin.delete(name)
            say(f"deleted {name}")
        else:
            found = admin.describe(name)
            write(f"{name}: {found.state}, offsets of {counted(len(found.progress), 'partition')}\n".encode())
    if not yes:
        say("Nothing was deleted. Add --yes to delete.")


def _groups() -> Groups:
    from headwater.client.groups import Groups

    return Groups(connection())
