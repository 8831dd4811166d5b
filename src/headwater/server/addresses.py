"""Where the broker listens, and what it tells clients to connect to.

Nothing but loopback is bound without ``--insecure-listen``: there is no authentication yet. A socket listens
before the log is opened, so that a port in use is known before anything is touched; clients that come
meanwhile wait in the backlog.
"""

from __future__ import annotations

import errno
import socket
from typing import NamedTuple

from headwater.core.errors import Conflict, Denied, HeadwaterError, UsageError

BACKLOG = 1024  # a burst of reconnecting clients; the system caps it at its own limit


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str, option: str) -> Address:
    """``HOST:PORT``, ``[IPV6]:PORT``; an empty host is every interface."""
    host, colon, port = text.strip().rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        colon = ""
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise UsageError(
            "start the broker", place=f"{option} {text}", cause="an address is HOST:PORT",
            next_step=f"Type: {option} 127.0.0.1:9092",
        )  # fmt: skip
    return Address(host, int(port))


def listen(address: Address, *, insecure: bool) -> list[socket.socket]:
    """Sockets that listen; the port of the first is the port of all. ``localhost`` is both its addresses,
    because clients try ::1 first; IPv4 must work, IPv6 may be missing."""
    if address.host == "localhost":
        found: list[tuple[int, str]] = [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
    else:
        found = resolve(address)
    for _, host in found:
        if not insecure and not is_loopback(host):
            raise UsageError(
                "listen on", place=str(address),
                cause="it is reachable from other machines, and anybody there could read and write everything: "
                "this broker has no authentication yet",
                next_step=f"Type --listen 127.0.0.1:{address.port}, or add --insecure-listen on a trusted network.",
            )  # fmt: skip
    sockets: list[socket.socket] = []
    port = address.port
    for family, host in found:
        try:
            sockets.append(bound(family, host, port))
        except OSError as error:
            if sockets and address.host == "localhost":
                break  # no IPv6 here, or somebody else has this port there
            for other in sockets:
                other.close()
            raise refused(Address(address.host or host, port), error) from None
        port = sockets[0].getsockname()[1]
    return sockets


def resolve(address: Address) -> list[tuple[int, str]]:
    """The family and numeric host to bind; of a name's addresses one, IPv4 if there is one."""
    try:
        found = socket.getaddrinfo(
            address.host or "0.0.0.0", address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (OSError, UnicodeError) as error:
        raise UsageError(
            "listen on", place=str(address), cause=f"no such host: {error}", next_step="Type --listen 127.0.0.1:9092"
        ) from None
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)
    return [(int(found[0][0]), str(found[0][4][0]))]


def is_loopback(host: str) -> bool:
    return host.startswith("127.") or host == "::1"


def bound(family: int, host: str, port: int) -> socket.socket:
    # The protocol is named because the standard loop sets TCP_NODELAY only on sockets that say TCP.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # inherited: finds half-open clients
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.bind((host, port))
        listening.listen(BACKLOG)
        listening.setblocking(False)
    except BaseException:
        listening.close()
        raise
    return listening


def refused(address: Address, error: OSError) -> HeadwaterError:
    if error.errno == errno.EADDRINUSE:
        return Conflict(
            "listen on", place=str(address), cause=f"port {address.port} is in use by another program",
            next_step=f"Type --listen {Address(address.host, 0)} for any free port, or stop the other program "
            f"(ss -ltnp 'sport = :{address.port}' shows it).",
        )  # fmt: skip
    if error.errno == errno.EACCES:
        return Denied(
            "listen on", place=str(address), cause=f"this user may not use port {address.port}",
            next_step=f"Type --listen {Address(address.host, 9092)}: ports above 1023 are free for everybody.",
        )  # fmt: skip
    return UsageError(
        "listen on", place=str(address), cause=error.strerror or error, next_step="Type --listen 127.0.0.1:9092"
    )
