"""Addresses as people type them, and which of them may be bound."""

from __future__ import annotations

import socket

import pytest

from headwater.core.errors import Conflict, UsageError
from headwater.server.addresses import Address, listen, parse_address

GOOD = {
    "127.0.0.1:9092": ("127.0.0.1", 9092),
    "localhost:0": ("localhost", 0),
    "[::1]:9092": ("::1", 9092),
    ":9092": ("", 9092),
    " host.example:1 ": ("host.example", 1),
}


@pytest.mark.parametrize("text, expected", GOOD.items())
def test_an_address_is_host_and_port(text: str, expected: tuple[str, int]) -> None:
    assert parse_address(text, "--listen") == Address(*expected)


@pytest.mark.parametrize("text", ["", "9092", "host", "host:", "host:x", "host:65536", "::1:9092", "host:-1"])
def test_what_is_no_address_is_refused_with_one_that_is(text: str) -> None:
    with pytest.raises(UsageError, match=r"--listen 127\.0\.0\.1:9092"):
        parse_address(text, "--listen")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "localhost"])
def test_loopback_may_be_bound(host: str) -> None:
    sockets = listen(Address(host, 0), insecure=False)
    try:
        assert len({listening.getsockname()[1] for listening in sockets}) == 1, "all have the same port"
    finally:
        for listening in sockets:
            listening.close()


@pytest.mark.parametrize("host", ["0.0.0.0", "", "::"])
def test_anything_else_needs_consent(host: str) -> None:
    with pytest.raises(UsageError, match="--insecure-listen"):
        listen(Address(host, 0), insecure=False)
    for listening in listen(Address(host, 0), insecure=True):
        listening.close()


def test_a_name_that_does_not_exist_is_said_so() -> None:
    with pytest.raises(UsageError, match=r"nowhere\.invalid"):
        listen(Address("nowhere.invalid", 9092), insecure=True)


def test_a_port_in_use_is_a_conflict_also_where_the_other_only_just_bound_it() -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(Conflict, match="in use"):
            listen(Address("127.0.0.1", taken.getsockname()[1]), insecure=False)
