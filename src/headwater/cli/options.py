"""Options that mean the same on every verb: which log, librdkafka's settings, the deadline, the form of the output.

They may stand at the noun or at the verb (`topics --log X list`, `topics list --log X`): values travel in the
context's `meta`. `connection()` joins; no verb ever starts a broker.
"""
from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from headwater.client.connection import Connection

F = TypeVar("F", bound=Callable[..., Any])
ADVICE = "Check the broker, then try again; --timeout SECONDS waits longer"
_LOG, _X, _TIMEOUT = "headwater.log", "headwater.X", "headwater.timeout"
TIMEOUT_SECONDS = 30.0


class Whole(click.IntRange):
    """A whole number, called so in errors and in help."""

    name = "whole number"

    def get_metavar(self, *_: Any, **__: Any) -> str:
        return "N"


class Seconds(click.FloatRange):
    """A number with a fraction, called so in errors."""

    name = "number"


def _keep(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value is None or value == ():
        return
    if parameter.name == "librdkafka":
        settings = ctx.meta.setdefault(_X, {})
        for setting in value:
            name, equals, content = setting.partition("=")
            if not equals or not name:
                raise click.BadParameter("write -X NAME=VALUE", ctx, parameter)
            settings[name.strip()] = content
        return
    ctx.meta[_LOG if parameter.name == "log" else _TIMEOUT] = value


def log_options(function: F) -> F:
    """--log, -X and --timeout."""
    for option in (
        click.option("--timeout", type=Seconds(0.1), metavar="SECONDS", expose_value=False, callback=_keep,
                     help=f"How long the log may take to answer. [default: {TIMEOUT_SECONDS:g}]"),
        click.option("-X", "librdkafka", multiple=True, metavar="NAME=VALUE", expose_value=False, callback=_keep,
                     help="A setting of librdkafka; may be given several times."),
        click.option("--log", metavar="DIR|HOST:PORT", expose_value=False, callback=_keep,
                     help="A broker's directory, or any Kafka. [default: HEADWATER_LOG, the broker of ./data, or"
                          " 127.0.0.1:9092]"),
    ):
        function = option(function)
    return function


def form_options(function: F) -> F:
    """--json and --plain."""
    plain = click.option("--plain", is_flag=True, help="Tabs and no heading, for cut and awk.")
    return click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")(plain(function))


def connection() -> Connection:
    """The log that the command line names; somebody listens there, or this raises with the line to type."""
    from headwater.client.address import probe, resolve
    from headwater.client.connection import Connection

    meta = click.get_current_context().meta
    timeout = meta.get(_TIMEOUT, TIMEOUT_SECONDS)
    address = resolve(meta.get(_LOG))
    probe(address, min(timeout, 3.0))
    return Connection(address, meta.get(_X), timeout, advice=ADVICE)


def as_typed(line: str) -> str:
    """An example as this person types it: the command's own name, and nothing inside a path."""
    from headwater.client.address import command

    return re.sub(r"(?<![\w./-])headwater(?=\s|$)", lambda _: command(), line)


def print_help(ctx: click.Context) -> None:
    click.echo(ctx.get_help())


class Noun(click.Group):
    """A group of verbs on one kind of thing, with suggestions for typos. Alone it shows its help, as the root does."""

    def __init__(self, *args: Any, **more: Any) -> None:
        more["invoke_without_command"] = True
        super().__init__(*args, **more)

    def invoke(self, ctx: click.Context) -> Any:
        found = super().invoke(ctx)
        if ctx.invoked_subcommand is None:
            print_help(ctx)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in self.commands and not name.startswith("-"):
            from headwater.cli.root import no_such_verb

            raise no_such_verb(ctx, name, list(self.commands))
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


class Verb(click.Command):
    """A command whose help begins with its examples (the docstring's first paragraph is the summary)."""

    def __init__(self, *args: Any, examples: str = "", **more: Any) -> None:
        super().__init__(*args, **more)
        self.examples = examples

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.width = max(formatter.width, 90)
        self.format_usage(ctx, formatter)
        if self.examples:
            with formatter.section("Examples"):
                for line in self.examples.strip().splitlines():
                    formatter.write(f"  {as_typed(line.strip())}\n")
        self.format_help_text(ctx, formatter)
        self.format_options(ctx, formatter)
        self.format_epilog(ctx, formatter)
