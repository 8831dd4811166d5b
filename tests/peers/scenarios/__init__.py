"""What the differential prober asks, one file an area. Importing this package registers every scenario."""

from __future__ import annotations

from tests.peers.scenarios import (
    fetch,
    framing,
    groups,
    idempotence,
    metadata,
    offsets,
    produce,
    topics,
    transactions,
)

__all__ = [
    "fetch",
    "framing",
    "groups",
    "idempotence",
    "metadata",
    "offsets",
    "produce",
    "topics",
    "transactions",
]
