"""Producer ids: numbers that no two producers ever share.

They are taken from blocks. A block is reserved durably before its first number is given out, and what is
left of it at a restart is never used: Kafka's way, one write for a thousand producers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.broker.state import Broker

BLOCK = 1000
FACT = "next_producer_id"  # the first number that no block has reserved


class ProducerIds:
    """Gives out ids. Whoever tells one to a client waits for the log to be durable first."""

    __slots__ = ("_end", "_log", "_next")

    def __init__(self, broker: Broker) -> None:
        self._log = broker.log
        self._next = self._end = int(self._log.facts.get(FACT, 0))

    def take(self) -> int:
        if self._next == self._end:
            self._end += BLOCK
            self._log.set_fact(FACT, self._end)
        taken = self._next
        self._next += 1
        return taken

    def used_elsewhere(self, producer_id: int) -> None:
        """An id that stands in the log (the files may be Kafka's): never give it out again."""
        if producer_id >= self._end:
            self._end = (producer_id // BLOCK + 1) * BLOCK
            self._next = self._end
            self._log.set_fact(FACT, self._end)
