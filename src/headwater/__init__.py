"""headwater: an event-streaming broker that speaks Kafka, and a small client for any Kafka.

    import headwater

    with headwater.open("./data") as log:
        log.append("orders", '{"id": 1}', key="1")
        log.flush()
        for record in log.read("orders", until="latest"):
            print(record.offset, record.text)

Every name is loaded on first use: importing the package costs a few milliseconds and loads nothing else.
"""
from __future__ import annotations

TYPE_CHECKING = False  # type checkers take this name for true; importing typing would double the cost
if TYPE_CHECKING:
    from typing import Any

    from headwater.client.asynchronous import AsyncReader as AsyncReader
    from headwater.client.log import Log as Log
    from headwater.client.log import open as open  # noqa: A004
    from headwater.client.reader import Reader as Reader
    from headwater.client.record import Record as Record
    from headwater.client.transaction import Transaction as Transaction
    from headwater.client.writer import Appended as Appended
    from headwater.core.errors import Conflict as Conflict
    from headwater.core.errors import Denied as Denied
    from headwater.core.errors import HeadwaterError as HeadwaterError
    from headwater.core.errors import NotFound as NotFound
    from headwater.core.errors import Unavailable as Unavailable
    from headwater.core.errors import UsageError as UsageError
    from headwater.core.position import Position as Position

__version__ = "0.1.0"

_HOMES = {
    "Appended": "headwater.client.writer",
    "AsyncReader": "headwater.client.asynchronous",
    "Conflict": "headwater.core.errors",
    "Denied": "headwater.core.errors",
    "HeadwaterError": "headwater.core.errors",
    "Log": "headwater.client.log",
    "NotFound": "headwater.core.errors",
    "Position": "headwater.core.position",
    "Reader": "headwater.client.reader",
    "Record": "headwater.client.record",
    "Transaction": "headwater.client.transaction",
    "Unavailable": "headwater.core.errors",
    "UsageError": "headwater.core.errors",
    "open": "headwater.client.log",
}
__all__ = [
    "Appended", "AsyncReader", "Conflict", "Denied", "HeadwaterError", "Log", "NotFound", "Position", "Reader",
    "Record", "Transaction", "Unavailable", "UsageError", "__version__", "open",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'headwater' has no attribute {name!r}")
    import sys

    __import__(home)
    value = getattr(sys.modules[home], name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
