"""`headwater topics`: list, create, describe, change, grow, delete, on any Kafka."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from headwater.cli.options import Noun, Verb, Whole, connection, form_options, log_options
from headwater.cli.output import say, styled, write, write_json, write_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headwater.client.connection import Connection
    from headwater.client.topics import Setting, TopicDescription, Topics


@click.group(cls=Noun)
@log_options
def topics() -> None:
    """List, create, describe, change and delete topics."""


@topics.command("list", cls=Verb, examples="headwater topics list\nheadwater topics list --plain | cut -f1")
@click.option("--internal", is_flag=True, help="With Kafka's own topics (their names begin with __).")
@form_options
@log_options
def list_topics(internal: bool, as_json: bool, plain: bool) -> None:
    """The topics, with their number of partitions."""
    found = _topics().all(internal)
    if as_json:
        for name, partitions in found.items():
            write_json({"topic": name, "partitions": partitions})
        return
    if not found:
        say("There are no topics yet.")
        return
    write_table(["topic", "partitions"], found.items(), plain)


@topics.command("create", cls=Verb, examples="""
headwater topics create orders
headwater topics create orders --partitions 6 --set retention.ms=86400000
""")
@click.argument("names", nargs=-1, required=True, metavar="TOPIC...")
@click.option("--partitions", type=Whole(1), help="How many. [default: the broker's num.partitions]")
@click.option("--replication", type=Whole(1), help="How many copies. [default: the broker's]")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of the topic.")
@click.option("--if-missing", is_flag=True, help="A topic that is there already is no error.")
@log_options
def create(
    names: tuple[str, ...], partitions: int | None, replication: int | None, settings: tuple[str, ...],
    if_missing: bool,
) -> None:
    """Create topics."""
    from headwater.client.topics import SETTINGS
    from headwater.core.errors import Conflict, UsageError

    values = _pairs(settings)
    admin = _topics()
    for name in names:
        try:
            admin.create(name, partitions or -1, values, replication or -1)
        except Conflict:
            if not if_missing:
                raise
            say(f"{name} is there already.")
        except UsageError:
            _name_typos(SETTINGS, list(values))
            raise
        else:
            say(f"created {name}")


@topics.command("describe", cls=Verb, examples="headwater topics describe orders\nheadwater topics describe a b --json")
@click.argument("names", nargs=-1, required=True, metavar="TOPIC...")
@click.option("--all-settings", is_flag=True, help="With the settings that the topic has from the broker.")
@form_options
@log_options
def describe(names: tuple[str, ...], all_settings: bool, as_json: bool, plain: bool) -> None:
    """A topic's partitions, offsets and settings."""
    admin = _topics()
    for number, name in enumerate(names):
        found = admin.describe(name)
        notes = _notes(admin, found)
        if as_json:
            write_json(_as_json(found, notes, all_settings))
        else:
            if number and not plain:
                write(b"\n")
            _print(found, notes, all_settings, plain)


def _as_json(found: TopicDescription, notes: list[str], all_settings: bool) -> dict[str, Any]:
    return {
        "topic": found.name, "topic_id": found.topic_id, "offsets": found.records,
        "partitions": [
            {"partition": part.partition, "leader": part.leader, "replicas": part.replicas, "in_sync": part.in_sync,
             "start": part.start, "end": part.end}
            for part in found.partitions
        ],
        "settings": {
            name: setting.value for name, setting in found.settings.items() if all_settings or setting.overridden
        },
        "notes": notes,
    }


def _print(found: TopicDescription, notes: list[str], all_settings: bool, plain: bool) -> None:
    import sys

    rows = [
        (part.partition, part.leader, ",".join(map(str, part.replicas)), ",".join(map(str, part.in_sync)), part.start,
         part.end)
        for part in found.partitions
    ]
    if plain:
        write_table([], [(found.name, *row) for row in rows], plain=True)
        return
    write(f"{styled(found.name, 'bold', sys.stdout)}  id {found.topic_id}\n\n".encode())
    write_table(["partition", "leader", "replicas", "in sync", "start", "end"], rows)
    settings = [
        (name, setting.value, "" if setting.overridden else "broker")
        for name, setting in found.settings.items() if all_settings or setting.overridden
    ]
    if settings:
        write(b"\n")
        write_table(["setting", "value", "from"] if all_settings else ["setting", "value"],
                    [row if all_settings else row[:2] for row in settings])
    for note in notes:
        write(f"\nNote: {note}\n".encode())


def _notes(admin: Topics, found: TopicDescription) -> list[str]:
    """What the settings promise and this broker does not do. Its own settings say so, in Kafka's names."""
    policy = found.settings.get("cleanup.policy")
    if policy is None or "compact" not in (policy.value or "").split(","):
        return []
    from headwater.core.errors import HeadwaterError

    leaders = [part.leader for part in found.partitions if part.leader >= 0]
    try:
        settings = admin.broker_settings(leaders[0]) if leaders else {}
    except HeadwaterError:
        return []  # no right to read a broker's settings: nothing is claimed
    if cleans(settings):
        return []
    return [
        "cleanup.policy=compact is kept, and records without a key are refused, but nothing is cleaned yet:"
        " this broker has no log cleaner, so old values of a key stay."
    ]


def cleans(settings: Mapping[str, Setting]) -> bool:
    """Whether a broker compacts: unless it has Kafka's settings of the cleaner, and the cleaner is off or missing."""
    cleaner = settings.get("log.cleaner.enable")
    if cleaner is not None:
        return cleaner.value != "false"
    return not any(name.startswith("log.cleaner.") for name in settings)


@topics.command("set", cls=Verb, examples="""
headwater topics set orders retention.ms=3600000 segment.ms=600000
headwater topics set orders --default retention.ms
""")
@click.argument("name", metavar="TOPIC")
@click.argument("settings", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--default", "defaults", multiple=True, metavar="NAME", help="Give a setting back to the broker.")
@log_options
def set_(name: str, settings: tuple[str, ...], defaults: tuple[str, ...]) -> None:
    """Change settings of a topic."""
    values = _pairs(settings)
    if not values and not defaults:
        raise click.UsageError("name a setting: NAME=VALUE or --default NAME", click.get_current_context())
    admin = _topics()
    _check_names(admin, name, [*values, *defaults])
    admin.configure(name, values, defaults)
    say(f"changed {name}")


def _check_names(admin: Topics, topic: str, names: list[str]) -> None:
    """A setting that the broker does not know is a typo; it would answer with a bare "unknown"."""
    _name_typos(list(admin.settings(topic)), names)


def _name_typos(known: Sequence[str], names: list[str]) -> None:
    for name in names:
        if name not in known:
            from difflib import get_close_matches

            near = get_close_matches(name, known, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise click.UsageError(f"topics have no setting {name}.{hint}", click.get_current_context())


@topics.command("grow", cls=Verb, examples="headwater topics grow orders --partitions 12")
@click.argument("name", metavar="TOPIC")
@click.option("--partitions", type=Whole(1), required=True, help="How many there are to be in all.")
@log_options
def grow(name: str, partitions: int) -> None:
    """Add partitions. New records of a key may then go to another partition than its old ones."""
    _topics().add_partitions(name, partitions)
    from headwater.client.record import counted

    say(f"{name} has {counted(partitions, 'partition')}")


@topics.command("delete", cls=Verb, examples="headwater topics delete orders --yes")
@click.argument("names", nargs=-1, required=True, metavar="TOPIC...")
@click.option("--yes", is_flag=True, help="Do it. Without, it is only said what would be deleted.")
@log_options
def delete(names: tuple[str, ...], yes: bool) -> None:
    """Delete topics with all their records. There is no way back."""
    from headwater.client.record import counted

    joined = connection()
    joined.require_topics(names, "delete")
    admin = _topics(joined)
    if yes:
        admin.delete(names)
        for name in names:
            say(f"deleted {name}")
        return
    for name in names:
        found = admin.describe(name)
        write(f"{name}: {counted(len(found.partitions), 'partition')}, {counted(found.records, 'record')}\n".encode())
    say("Nothing was deleted. Add --yes to delete.")


def _topics(joined: Connection | None = None) -> Topics:
    from headwater.client.topics import Topics

    return Topics(joined or connection())


def _pairs(settings: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name:
            raise click.UsageError(f"write NAME=VALUE, not {setting}", click.get_current_context())
        pairs[name] = value
    return pairs
