"""One broker for the tests of unmodified clients: ours, or the Kafka that HEADWATER_TEST_KAFKA names."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from headwater.core import processes


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    named = os.environ.get("HEADWATER_TEST_KAFKA")
    if named:
        yield named
        return
    with processes.start_broker() as broker:
        yield broker.address


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses, also not one of an earlier run against the same Kafka."""
    return f"{request.node.name[:60].translate(str.maketrans('[]', '__'))}-{os.urandom(4).hex()}"
