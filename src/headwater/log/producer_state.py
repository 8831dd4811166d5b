"""What one partition knows of its producers: the rules of idempotence and of transactions.

The semantics are those of Apache Kafka 4.3's ProducerAppendInfo and ProducerStateManager with
transaction.version 1: the last five batches of a producer are remembered, an exact repetition is answered
with the original offset, the next batch must continue the sequence (which wraps from 2^31 - 1 to 0), a new
epoch begins at 0, an unknown producer may begin anywhere. No clock and no I/O here.

Two steps: check() refuses or finds the repetition and changes nothing; record() notes what was appended. What
comes from the coordinators (group offsets in a transaction, markers) has epochs but no sequences.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from struct import Struct
from typing import Any, NamedTuple

from headwater.log import txn_index
from headwater.wire.batch import BatchHeader
from headwater.wire.crc import crc32c
from headwater.wire.errors import ErrorCode, KafkaError

BATCHES_KEPT = 5  # Kafka's: a producer has at most five requests in flight
SEQUENCE_MASK = 0x7FFFFFFF

_SNAPSHOT_VERSION = 1
_SNAPSHOT_HEAD = Struct(">hI")
_SNAPSHOT_COUNT = Struct(">i")
_SNAPSHOT_ENTRY = Struct(">qhiqiqiq")


class Batch(NamedTuple):
    """One remembered batch."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) & SEQUENCE_MASK

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ProducerEntry:
    """One producer id. `txn_first_offset` is -1 outside of a transaction."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_timestamp", "producer_id", "txn_first_offset")

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.epoch = -1
        self.coordinator_epoch = -1
        self.last_timestamp = -1
        self.txn_first_offset = -1
        self.batches: list[Batch] = []

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else -1

    def set_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()

    def to_json(self) -> list[Any]:
        head = [self.producer_id, self.epoch, self.coordinator_epoch, self.last_timestamp, self.txn_first_offset]
        return [*head, [list(batch) for batch in self.batches]]

    @classmethod
    def from_json(cls, fields: list[Any]) -> ProducerEntry:
        entry = cls(fields[0])
        entry.epoch, entry.coordinator_epoch, entry.last_timestamp, entry.txn_first_offset = fields[1:5]
        entry.batches = [Batch(*batch) for batch in fields[5]]
        return entry


class ProducerStates:
    """producer id -> ProducerEntry, and which transactions hold back the last stable offset."""

    __slots__ = ("_ended", "_open", "entries")

    def __init__(self, entries: Iterable[ProducerEntry] = ()) -> None:
        self.entries: dict[int, ProducerEntry] = {entry.producer_id: entry for entry in entries}
        self._open = sorted(e.txn_first_offset for e in self.entries.values() if e.txn_first_offset >= 0)
        self._ended: list[tuple[int, int]] = []  # (first offset, marker's offset): the marker is not yet durable

    def __len__(self) -> int:
        return len(self.entries)

    def get(self, producer_id: int) -> ProducerEntry | None:
        return self.entries.get(producer_id)

    def check(self, header: BatchHeader) -> Batch | None:
        """A client's batch: the remembered batch that it repeats, None if it may be appended, or KafkaError."""
        entry = self.entries.get(header.producer_id)
        if entry is None:
            return None
        first = header.base_sequence
        epoch = header.producer_epoch
        if epoch == entry.epoch:
            last = (first + header.last_offset_delta) & SEQUENCE_MASK
            for batch in entry.batches:
                if batch.last_sequence == last and batch.first_sequence == first:
                    return batch
            self._check_next(entry, header, first)
        elif epoch < entry.epoch:
            raise _stale_epoch(header.producer_id, epoch, entry.epoch)
        elif first != 0 and entry.epoch >= 0:
            text = f"producer {header.producer_id} begins epoch {epoch} with sequence {first}, not with 0"
            raise KafkaError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, text)
        if entry.txn_first_offset >= 0 and not header.attributes & 0x10:
            text = f"producer {header.producer_id} has an open transaction here; this batch is not part of it"
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, text)
        return None

    def _check_next(self, entry: ProducerEntry, header: BatchHeader, first: int) -> None:
        last = entry.last_sequence
        if first != last + 1 and not (first == 0 and last == SEQUENCE_MASK):
            text = f"producer {header.producer_id} sends sequence {first} after {last}"
            raise KafkaError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, text)

    def check_epoch(self, producer_id: int, epoch: int) -> None:
        """A coordinator's batch: only the epoch counts."""
        entry = self.entries.get(producer_id)
        if entry is not None and epoch < entry.epoch:
            raise _stale_epoch(producer_id, epoch, entry.epoch)

    def check_marker(self, producer_id: int, epoch: int, coordinator_epoch: int) -> None:
        self.check_epoch(producer_id, epoch)
        entry = self.entries.get(producer_id)
        if entry is not None and coordinator_epoch < entry.coordinator_epoch:
            text = f"coordinator epoch {coordinator_epoch} is older than {entry.coordinator_epoch}"
            raise KafkaError(ErrorCode.TRANSACTION_COORDINATOR_FENCED, text)

    def record(self, header: BatchHeader, first_offset: int) -> None:
        """A batch of records was appended at `first_offset`."""
        producer_id = header.producer_id
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(producer_id)
        if header.producer_epoch != entry.epoch:
            entry.set_epoch(header.producer_epoch)
        delta = header.last_offset_delta
        batches = entry.batches
        if len(batches) >= BATCHES_KEPT:
            del batches[0]
        base = header.base_sequence
        last = (base + delta) & SEQUENCE_MASK if base >= 0 else -1
        batches.append(Batch(last, first_offset + delta, delta, header.max_timestamp))
        entry.last_timestamp = header.max_timestamp
        if header.attributes & 0x10 and entry.txn_first_offset < 0:
            entry.txn_first_offset = first_offset
            insort(self._open, first_offset)

    def record_marker(
        self, producer_id: int, epoch: int, coordinator_epoch: int, offset: int, timestamp: int, commit: bool
    ) -> bytes:
        """A marker was appended at `offset`. The entry for the transaction index, b"" if there is none to make."""
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(producer_id)
        entry.set_epoch(epoch)
        entry.coordinator_epoch = coordinator_epoch
        entry.last_timestamp = timestamp
        first, entry.txn_first_offset = entry.txn_first_offset, -1
        if first < 0:
            return b""
        self._open.remove(first)
        self._ended.append((first, offset))
        if commit:
            return b""
        return txn_index.pack(producer_id, first, offset, self._open[0] if self._open else offset + 1)

    def last_stable_offset(self, high_watermark: int) -> int:
        """The first offset that read_committed must not see: an open transaction, or one whose end is not durable."""
        ended = self._ended
        while ended and ended[0][1] < high_watermark:
            del ended[0]
        stable = high_watermark
        if self._open and self._open[0] < stable:
            stable = self._open[0]
        if ended:
            stable = min(stable, min(first for first, _ in ended))
        return stable

    def has_open_transaction(self, producer_id: int) -> bool:
        entry = self.entries.get(producer_id)
        return entry is not None and entry.txn_first_offset >= 0

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers that have been silent for long; the number of them."""
        gone = [
            entry.producer_id
            for entry in self.entries.values()
            if entry.txn_first_offset < 0 and now_ms - entry.last_timestamp >= expiration_ms
        ]
        for producer_id in gone:
            del self.entries[producer_id]
        return len(gone)

    def to_json(self) -> list[list[Any]]:
        return [entry.to_json() for entry in self.entries.values()]

    def snapshot(self) -> bytes:
        """Kafka's producer snapshot: version 2, CRC-32C 4, count 4, then 46 bytes for each producer."""
        parts = [_SNAPSHOT_COUNT.pack(len(self.entries))]
        for entry in self.entries.values():
            last = entry.batches[-1] if entry.batches else Batch(-1, -1, 0, -1)
            fields = (entry.producer_id, entry.epoch, last.last_sequence, last.last_offset, last.offset_delta)
            end = (entry.last_timestamp, entry.coordinator_epoch, entry.txn_first_offset)
            parts.append(_SNAPSHOT_ENTRY.pack(*fields, *end))
        body = b"".join(parts)
        return _SNAPSHOT_HEAD.pack(_SNAPSHOT_VERSION, crc32c(body)) + body


def snapshot_holds(content: bytes) -> bool:
    """Whether a snapshot file is what snapshot() wrote."""
    if len(content) < 10 or _SNAPSHOT_HEAD.unpack_from(content) != (_SNAPSHOT_VERSION, crc32c(content[6:])):
        return False
    count: int = _SNAPSHOT_COUNT.unpack_from(content, 6)[0]
    return len(content) == 10 + count * _SNAPSHOT_ENTRY.size


def _stale_epoch(producer_id: int, epoch: int, current: int) -> KafkaError:
    text = f"producer {producer_id} writes with epoch {epoch}, epoch {current} was seen already"
    return KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, text)
