"""Reading stored batches back: every byte that leaves here was verified.

From a file, a batch is served iff its header makes sense, it continues the offsets before it, its leader epoch
is the one that was current at its offset, and its CRC-32C holds. These cover every bit of it. Anything else is
a Damage that names file and byte, and CORRUPT_MESSAGE to the reader: Kafka answers a damaged batch with that
code too, and clients show it; KAFKA_STORAGE_ERROR, which they retry in silence, is kept for I/O errors.

Two ways to the bytes: `Now` takes only what memory holds and gives up otherwise (the loop), `Blocking` waits
for the disk (any thread; it opens the file itself, so that nobody can close it meanwhile).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from headwater.core.disk import Disk, Handle
from headwater.log.damage import Damage
from headwater.wire.batch import HEADER_BYTES, MAGIC
from headwater.wire.crc import crc32c
from headwater.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from headwater.log.partition import Partition
    from headwater.log.segment import Segment
    from headwater.log.segment_index import Index

READ_BYTES_MAX = 1 << 20  # a fresh buffer of 8 MB costs more than the read (measured)
SKIP_BYTES = 8192  # read beyond what was asked for: the batch may begin an index interval later

_FIELDS = Struct(">qiibIhi")  # base offset, length, leader epoch, magic, sum, attributes, last offset delta
T = TypeVar("T")


class Slice(NamedTuple):
    """Whole batches. `pieces` are views into received buffers or into one file read."""

    pieces: list[memoryview]
    size: int


EMPTY = Slice([], 0)


class ReadJob(Generic[T]):
    """A read that has to wait for the disk: run() in any thread but the loop's."""

    __slots__ = ("run",)

    def __init__(self, run: Callable[[], T]) -> None:
        self.run = run


class WouldBlock(Exception):
    """The bytes are not in memory."""


class Corrupt(Exception):
    """The batch at this position of the file is not what was written."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(position, reason)
        self.position = position
        self.reason = reason


class Source(Protocol):
    def at(self, position: int, count: int) -> memoryview: ...
    def index(self, index: Index) -> bytes: ...


class Now:
    def __init__(self, disk: Disk, handle: Handle) -> None:
        self._disk = disk
        self._handle = handle

    def at(self, position: int, count: int) -> memoryview:
        found = self._disk.read_now(self._handle, position, count)
        if found is None:
            raise WouldBlock
        return found

    def index(self, index: Index) -> bytes:
        if index.prefix is None:
            raise WouldBlock
        return index.prefix


class Blocking:
    """A context manager: it holds the file open."""

    def __init__(self, partition: Partition, segment: Segment) -> None:
        self._partition = partition
        self._segment = segment
        self._disk = partition.disk
        self._handle: Handle = -1

    def __enter__(self) -> Blocking:
        self._handle = self._disk.open(self._segment.path)
        return self

    def __exit__(self, *_: object) -> None:
        self._disk.close(self._handle)

    def at(self, position: int, count: int) -> memoryview:
        found = memoryview(self._disk.read(self._handle, position, count))
        if len(found) < count:
            raise Corrupt(position + len(found), f"the file ends here; {count - len(found)} bytes are missing")
        return found

    def index(self, index: Index) -> bytes:
        return self._partition.load_index(self._segment, index)


class Batches:
    """Batches of one segment from a file position on, verified as they go by."""

    def __init__(self, partition: Partition, segment: Segment, source: Source, position: int) -> None:
        self._epoch_at = partition.epochs.epoch_at
        self._source = source
        self._end = segment.written
        self._data = memoryview(b"")
        self._start = position  # of _data in the file
        self.position = position  # of the next batch
        self.expected = -1  # offset that it must begin with, once known

    def fill(self, count: int) -> None:
        """The next `count` bytes from the current position on, or what there is."""
        self._start = self.position
        count = min(count, self._end - self.position)
        self._data = self._source.at(self.position, count) if count > 0 else memoryview(b"")

    def start_at(self, last_offset: int, base_offset: int) -> None:
        """What the index says of the first batch: its last offset, or (-1) that it is the first of the segment."""
        if last_offset < 0:
            self.expected = base_offset
        elif self.position < self._end and (last := self._look()[2]) != last_offset:
            raise Corrupt(self.position, f"the batch says it ends at offset {last}, it ended at {last_offset}")

    def skip_to(self, offset: int) -> None:
        """Go to the batch that holds `offset`. What is passed over is verified too: it says where to go."""
        while self.position < self._end:
            base, size, last = self._look()
            if last >= offset:
                if base > offset:  # offsets have no gaps inside a segment
                    raise Corrupt(self.position, f"the batch says offset {base}, it should hold {offset}")
                return
            self.take(base, size, last)

    def _look(self) -> tuple[int, int, int]:
        """(base offset, size, last offset) of the next batch, whose header is then in memory."""
        at = self.position - self._start
        if len(self._data) - at < HEADER_BYTES:
            self.fill(READ_BYTES_MAX)
            at = 0
        if len(self._data) - at < HEADER_BYTES:
            raise Corrupt(self.position, "half a batch header ends the segment")
        base, length, _epoch, magic, _sum, _attributes, delta = _FIELDS.unpack_from(self._data, at)
        if magic != MAGIC or length < HEADER_BYTES - 12 or delta < 0:
            raise Corrupt(self.position, "no batch begins here")
        if self.expected >= 0 and base != self.expected:
            raise Corrupt(self.position, f"the batch says offset {base}, it should be {self.expected}")
        if self.position + length + 12 > self._end:
            raise Corrupt(self.position, f"the batch says {length + 12} bytes, the segment ends before")
        return base, length + 12, base + delta

    def take(self, base: int, size: int, last: int) -> memoryview:
        """The next batch, as _look() saw it, verified."""
        at = self.position - self._start
        if at + size > len(self._data):
            self.fill(max(size, READ_BYTES_MAX))
            at = 0
        view = self._data[at : at + size]
        fields = _FIELDS.unpack_from(view)
        if crc32c(view[21:]) != fields[4]:
            raise Corrupt(self.position, "the checksum of the batch is wrong")
        epoch = self._epoch_at(last)
        if fields[2] != epoch >= 0:  # -1: before the log start, where epochs are forgotten
            raise Corrupt(self.position, f"the batch says leader epoch {fields[2]}, it was {epoch}")
        self.position += size
        self.expected = last + 1
        return view

    def slice(self, max_bytes: int, limit_offset: int) -> memoryview:
        """The batches that follow, one at least, as one view; whatever is wrong with the first one is raised.

        A later one that is wrong, or not whole in memory, ends the view: the next read begins with it.
        """
        if self.position >= self._end:
            return _NOTHING
        base, size, last = self._look()
        if base >= limit_offset:
            return _NOTHING
        self.take(base, size, last)
        data, unpack, epoch_at = self._data, _FIELDS.unpack_from, self._epoch_at
        at, expected = self.position - self._start, self.expected
        first = at - size
        end = min(len(data), first + max_bytes)
        while end - at >= HEADER_BYTES and expected < limit_offset:
            base, length, epoch, magic, checksum, _attributes, delta = unpack(data, at)
            stop = at + length + 12
            if base != expected or magic != MAGIC or length < HEADER_BYTES - 12 or delta < 0 or stop > end:
                break
            if crc32c(data[at + 21 : stop]) != checksum or epoch != epoch_at(base + delta):
                break
            at, expected = stop, base + delta + 1
        self.position, self.expected = self._start + at, expected
        return data[first:at]

    def __iter__(self) -> Iterator[memoryview]:
        while self.position < self._end:
            yield self.take(*self._look())


_NOTHING = memoryview(b"")


def read_slice(
    partition: Partition, segment: Segment, source: Source, offset: int, max_bytes: int, limit_offset: int
) -> Slice:
    """Whole batches of one segment file from the one that holds `offset`."""
    hint = segment.hints.get(offset)
    wanted = min(max(max_bytes, HEADER_BYTES), READ_BYTES_MAX)
    if hint is not None:
        batches = Batches(partition, segment, source, hint)
        batches.fill(wanted)
        batches.expected = offset
    else:
        position, last_offset = segment.position_before(source.index(segment.offsets), offset)
        batches = Batches(partition, segment, source, position)
        batches.fill(wanted + SKIP_BYTES)
        batches.start_at(last_offset, segment.base_offset)
    batches.skip_to(offset)
    view = batches.slice(max_bytes, limit_offset)
    if batches.expected >= 0 and batches.position < segment.size:
        segment.hint(batches.expected, batches.position)
    return Slice([view], len(view)) if len(view) else EMPTY


def read_blocking(partition: Partition, segment: Segment, read: Callable[[Blocking], T]) -> T:
    """`read` with the segment's file open; what goes wrong becomes an answer and a named damage."""
    try:
        with Blocking(partition, segment) as source:
            return read(source)
    except Corrupt as error:
        raise corrupt(partition, segment, error) from error
    except OSError as error:
        raise unreadable(partition, segment, error) from error


def corrupt(partition: Partition, segment: Segment, error: Corrupt) -> KafkaError:
    place = Damage(segment.path, error.position, error.reason, partition.topic.name, partition.index)
    partition.note_damage(place)
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, str(place))


def unreadable(partition: Partition, segment: Segment, error: OSError) -> KafkaError:
    if partition.deleted:
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if segment not in partition.segments:  # retention was faster than this read
        return KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    place = Damage(segment.path, 0, error.strerror or str(error), partition.topic.name, partition.index)
    partition.note_damage(place)
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(place))
