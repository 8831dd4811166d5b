"""The root of the command line: the table of verbs, what a failure looks like, and the exit codes.

A verb is named by an import string and loaded when it is typed; `--help` loads none. Whatever goes wrong ends here:
a person's mistake is a paragraph without traceback, a bug is a paragraph and the place of its traceback.
"""
from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from headwater.cli.options import as_typed, print_help
from headwater.cli.output import OutputClosed, abandon_stdout, flush, say
from headwater.client.address import command
from headwater.core.errors import HeadwaterError

PARTLY_DONE = 7
INTERRUPTED = 130
EXIT_CODES = {
    0: "done", 1: "failed", 2: "usage: what was typed makes no sense", 3: "not found",
    4: "conflict: it exists already, or somebody holds it", 5: "denied", 6: "unavailable or timed out: try again",
    PARTLY_DONE: "partly done", INTERRUPTED: "interrupted by Ctrl-C",
}
VERBS: dict[str, tuple[str, str, str]] = {  # name: (section, import string, one line)
    "demo": ("Begin", "headwater.cli.demo:demo", "Kill a broker while clients write, count what is there (20 s)."),
    "broker": ("Begin", "headwater.cli.broker:broker", "Run a broker here until Ctrl-C."),
    "produce": ("Records", "headwater.cli.produce:produce", "Write lines, arguments or NDJSON to a topic."),
    "consume": ("Records", "headwater.cli.consume:consume", "Print a topic's records and wait for more."),
    "topics": ("Manage", "headwater.cli.topics:topics", "List, create, describe, change, delete topics."),
    "groups": ("Manage", "headwater.cli.groups:groups", "List groups, show their lag, move or delete them."),
    "version": ("Manage", "headwater.cli.version:version", "Show the versions of everything that runs here."),
}
EXAMPLES = """\
headwater broker --data ./data            start a broker (Ctrl-C stops it)
seq 10 | headwater produce numbers        write ten records
headwater consume numbers --exit-at-end   read them
headwater groups describe billing         who reads, and how far behind"""


class Root(click.Group):
    """Verbs by import string, in sections, with suggestions for typos."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        module, _, attribute = VERBS[cmd_name][1].partition(":")
        __import__(module)
        found: click.Command = getattr(sys.modules[module], attribute)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in VERBS and not name.startswith("-"):
            raise no_such_verb(ctx, name, list(VERBS))
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.width = max(formatter.width, 90)
        formatter.write_usage(ctx.command_path, "VERB [OPTIONS] [ARGUMENTS]")
        formatter.write("\nAn event-streaming broker that speaks Kafka, and verbs for any Kafka.\n\n")
        own = command()
        with formatter.section("Examples"):
            for line in EXAMPLES.splitlines():
                formatter.write(f"  {as_typed(line)}\n")
        for section in dict.fromkeys(section for section, _, _ in VERBS.values()):
            with formatter.section(section):
                formatter.write_dl([(name, line) for name, (kind, _, line) in VERBS.items() if kind == section])
        with formatter.section("Everywhere"):
            formatter.write_dl([
                ("--log DIR|HOST:PORT", "which log: a broker's directory, or any Kafka. Default: HEADWATER_LOG, else"
                                        " the broker of ./data, else 127.0.0.1:9092"),
                ("-X NAME=VALUE", "a setting of librdkafka, for example -X security.protocol=ssl"),
                (f"{own} VERB --help", "what a verb can do, examples first"),
            ])


def no_such_verb(ctx: click.Context, name: str, known: list[str]) -> click.UsageError:
    from difflib import get_close_matches

    near = get_close_matches(name, known, n=1, cutoff=0.5)
    path = ctx.command_path
    if near:
        return click.UsageError(f"there is no {path} {name}. Did you mean {path} {near[0]}?", ctx)
    return click.UsageError(f"there is no {path} {name}. There are: {', '.join(known)}.", ctx)


@click.command(cls=Root, context_settings={"help_option_names": ["-h", "--help"]}, invoke_without_command=True)
@click.option("--version", "show_version", is_flag=True, hidden=True)
@click.pass_context
def root(ctx: click.Context, show_version: bool) -> None:
    if show_version:
        from headwater import __version__

        click.echo(f"headwater {__version__}")
    elif ctx.invoked_subcommand is None:
        print_help(ctx)


def run(arguments: Sequence[str] | None = None) -> int:
    """One command line from beginning to end."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if "_HEADWATER_COMPLETE" in os.environ:
        root.main(given, prog_name="headwater", complete_var="_HEADWATER_COMPLETE")
    try:
        code = _invoke(given)
        _finish()
        return code
    except (OutputClosed, BrokenPipeError):
        abandon_stdout()
        return 0
    except (KeyboardInterrupt, click.Abort):
        return _interrupted()
    except HeadwaterError as error:  # stdout takes nothing any more
        say(f"error: {error}")
        abandon_stdout()
        return error.exit_code


def _finish() -> None:
    if sys.stdout is not None:
        flush()


def _invoke(given: list[str]) -> int:
    try:
        with root.make_context(command(), given) as ctx:
            result = root.invoke(ctx)
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as wanted:
        return wanted.exit_code
    except click.ClickException as mistake:
        _show_mistake(mistake)
        return mistake.exit_code
    except HeadwaterError as error:
        say(f"error: {error}")
        return error.exit_code
    except (OutputClosed, BrokenPipeError, KeyboardInterrupt, click.Abort):
        raise
    except Exception as bug:
        if isinstance(bug, OSError):
            _finish()  # raises where the trouble is stdout's: a screen of the demo, the text of --help
        return _show_bug(bug)


def _show_mistake(mistake: click.ClickException) -> None:
    text = mistake.format_message()
    ctx = getattr(mistake, "ctx", None)
    say(f"error: {text[:1].lower()}{text[1:]}")
    if ctx is not None and isinstance(mistake, click.UsageError):
        say(f"See: {ctx.command_path} --help")


def _show_bug(bug: Exception) -> int:
    """Our mistake, not the person's: one paragraph, and where the rest is."""
    import tempfile
    import traceback

    if os.environ.get("HEADWATER_DEBUG"):
        traceback.print_exc()
        return 1
    with tempfile.NamedTemporaryFile("w", prefix="headwater-bug-", suffix=".txt", delete=False) as file:
        traceback.print_exc(file=file)
    say(
        f"error: this is a bug in headwater, not your mistake: {type(bug).__name__}: {bug}. "
        f"The traceback is in {file.name}; HEADWATER_DEBUG=1 shows it here. Please report it."
    )
    return 1


def _interrupted() -> int:
    """At once: no thread of librdkafka is waited for."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        pass
    os._exit(INTERRUPTED)
