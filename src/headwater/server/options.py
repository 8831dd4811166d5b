"""What a broker process is told. Parsed by hand: argparse costs more than everything else in this package.

The command line is meant for core/processes.py and service files; people type ``headwater broker``, which
fills the same object.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from headwater.core.errors import UsageError

MODES = ("own", "owner", "shared")
LOOPS = ("auto", "uvloop", "asyncio")

USAGE = """\
usage: python -m headwater.server [--data DIR] [--listen HOST:PORT] [--advertise HOST:PORT]
           [--insecure-listen] [--set NAME=VALUE]... [--mode own|owner|shared]
           [--loop auto|uvloop|asyncio] [--ready-fd N] [--alive-fd N] [--temporary]
"""
VALUED = ("--data", "--listen", "--advertise", "--set", "--mode", "--loop", "--ready-fd", "--alive-fd")


class Options:
    """``mode``: ``own`` runs until it is stopped, ``owner`` until the process that holds the other end of
    ``alive_fd`` is gone, ``shared`` until nobody holds a shared lock on ``<data>/users``."""

    __slots__ = (
        "advertise", "alive_fd", "data", "insecure_listen", "listen", "loop", "mode", "ready_fd", "settings",
        "temporary",
    )  # fmt: skip

    def __init__(
        self,
        *,
        data: str = "data",
        listen: str = "127.0.0.1:9092",
        advertise: str | None = None,
        insecure_listen: bool = False,
        settings: dict[str, str] | None = None,
        mode: str = "own",
        loop: str | None = None,
        ready_fd: int | None = None,
        alive_fd: int | None = None,
        temporary: bool = False,
    ) -> None:
        self.data = data
        self.listen = listen
        self.advertise = advertise
        self.insecure_listen = insecure_listen
        self.settings = dict(settings or {})
        self.mode = one_of("--mode", mode, MODES)
        self.loop = one_of("--loop", loop or os.environ.get("HEADWATER_LOOP") or "auto", LOOPS)
        self.ready_fd = ready_fd  # "HOST:PORT\n" is written there once clients are served, then it is closed
        self.alive_fd = alive_fd
        self.temporary = temporary  # the data directory goes with the process that made it


def parse(arguments: Sequence[str]) -> Options:
    """``--name value`` and ``--name=value``."""
    given: dict[str, str | int | bool] = {}
    settings: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if name in ("--insecure-listen", "--temporary"):
            given[name[2:].replace("-", "_")] = True
            continue
        if name not in VALUED:
            raise UsageError("start the broker", place=name, cause="there is no such option", next_step=USAGE)
        if not equals:
            if not rest:
                raise UsageError("start the broker", place=name, cause="it needs a value", next_step=USAGE)
            value = rest.pop(0)
        if name == "--set":
            setting, equals, value = value.partition("=")
            if not equals:
                raise UsageError("start the broker", place=f"--set {setting}", cause="write --set NAME=VALUE")
            settings[setting] = value
        else:
            given[name[2:].replace("-", "_")] = number(name, value) if name.endswith("-fd") else value
    return Options(settings=settings, **given)  # type: ignore[arg-type]


def number(name: str, text: str) -> int:
    if not text.isdecimal():
        raise UsageError("start the broker", place=f"{name} {text}", cause="it must be an open file's number")
    return int(text)


def one_of(name: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        known = ", ".join(allowed)
        raise UsageError("start the broker", place=f"{name} {value}", cause=f"must be one of {known}")
    return value
