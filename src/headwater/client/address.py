"""Which log is meant: DIR or HOST:PORT, an option, HEADWATER_LOG, the broker of ./data, or 127.0.0.1:9092.

It joins and never starts: a directory without a running broker is an error that says what to type. Nothing of
librdkafka is loaded, so that a verb without a broker fails at once.
"""
from __future__ import annotations

import os
import re
import time
from typing import NamedTuple

from headwater.core.errors import Unavailable, UsageError

DEFAULT_SERVERS = "127.0.0.1:9092"
DEFAULT_DATA = "data"
_SERVER = re.compile(r"(?:[A-Za-z]+://)?(?:\[[0-9A-Fa-f:.%]+\]|[^\s/\\,:\[\]]+):\d{1,5}")
PROBE_SECONDS = 3.0  # one TCP handshake; a host that drops packets is not waited for longer


class Address(NamedTuple):
    """Where the log is, and who said so (for error messages)."""

    servers: str
    origin: str
    data: str | None = None


def command() -> str:
    """What the person types to get this program; a wrapper script may say its own name."""
    return os.environ.get("HEADWATER_COMMAND") or "headwater"


def is_servers(text: str) -> bool:
    """HOST:PORT or a comma-separated list of them; everything else is a directory."""
    return all(_SERVER.fullmatch(part.strip()) for part in text.split(","))


def resolve(log: str | None) -> Address:
    if log:
        return _named(log, "--log")
    from_environment = os.environ.get("HEADWATER_LOG")
    if from_environment:
        return _named(from_environment, "HEADWATER_LOG")
    servers = read_endpoint(DEFAULT_DATA)
    if servers is not None:
        return Address(servers, f"./{DEFAULT_DATA}/endpoint", DEFAULT_DATA)
    return Address(DEFAULT_SERVERS, "default")


def _named(log: str, origin: str) -> Address:
    if is_servers(log):
        return Address(log, origin)
    servers = read_endpoint(log)
    if servers is not None:
        return Address(servers, origin, log)
    if re.fullmatch(r"[\w.-]+", log) and not os.path.isdir(log):
        raise UsageError(
            operation="find the log",
            place=f"{origin} {log}",
            cause="this is neither HOST:PORT nor a directory with a broker",
            next_step=f"Give the port, as in --log {log}:9092, or start a broker: {command()} broker --data {log}",
        )
    raise Unavailable(
        operation="find a broker on",
        place=log,
        cause="none is running on this directory",
        next_step=f"Start one in another terminal: {command()} broker --data {log}",
    )


def refuse_host(log: str) -> None:
    """A host without a port must not become a directory of that name with a broker of its own."""
    if "/" in log or "\\" in log or is_servers(log) or os.path.isdir(log):
        return
    host, colon, _ = log.partition(":")
    if colon or host == "localhost" or re.fullmatch(r"[\d.]+|\w[\w-]*(\.\w[\w-]*)+", host):
        port = f"127.0.0.1:{host}" if host.isdecimal() else f"{host or '127.0.0.1'}:9092"
        raise UsageError(
            operation="open the log", place=repr(log),
            cause="this is neither HOST:PORT nor a directory that is there",
            next_step=f'Give the port, as in "{port}", or write a new directory as "./{host or "data"}".',
        )


def read_endpoint(data: str) -> str | None:
    """The address of the broker on this directory, or None. After a crash it may be stale: `probe` tells."""
    from headwater.core import endpoint

    found = endpoint.read_endpoint(data)
    return None if found is None else found.address


def probe(address: Address, seconds: float = PROBE_SECONDS) -> None:
    """Raise Unavailable at once when nothing listens on any of the servers; librdkafka would retry for ever."""
    import socket

    causes: list[str] = []
    deadline = time.monotonic() + seconds
    for server in address.servers.split(","):
        host, port = split_server(server)
        left = max(deadline - time.monotonic(), 0.1)
        try:
            socket.create_connection((host, port), timeout=left).close()
        except (OSError, OverflowError, UnicodeError) as error:
            causes.append(f"{host}:{port} {_reason(error)}")
        else:
            return
    raise nothing_listens(address, "; ".join(causes))


def split_server(server: str) -> tuple[str, int]:
    host, _, port = server.strip().rpartition(":")
    return host.split("://")[-1].strip("[]"), int(port)


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "did not answer"
    if isinstance(error, ConnectionRefusedError):
        return "refused the connection: nothing listens there"
    return str(getattr(error, "strerror", None) or error)


def nothing_listens(address: Address, cause: str) -> Unavailable:
    return Unavailable(
        operation="connect to",
        place=address.servers + ("" if address.origin in ("--log", "default", "open") else f" (from {address.origin})"),
        cause=cause,
        next_step=start_line(address),
    )


def start_line(address: Address) -> str:
    """The line that starts a broker where the client looked for one."""
    host, port = split_server(address.servers.split(",")[0])
    if address.origin == "open":
        return f"Close this log and open it again: headwater.open({address.data!r}) starts a broker"
    if address.data is not None:
        return f"Start a broker in another terminal: {command()} broker --data {address.data}"
    if host in ("127.0.0.1", "localhost", "::1"):
        listen = "" if port == 9092 else f" --listen {host}:{port}"
        return f"Start a broker in another terminal: {command()} broker --data ./{DEFAULT_DATA}{listen}"
    return f"Check that a broker runs on {host} and that this machine may reach port {port}"
