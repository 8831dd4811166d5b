"""Record batches, format v2: reading the header, checking what a client sends, stamping, building.

    0 base offset 8 | 8 batch length 4 (what follows it) | 12 partition leader epoch 4 | 16 magic 1 |
    17 crc 4 | 21 attributes 2 | 23 last offset delta 4 | 27 base timestamp 8 | 35 max timestamp 8 |
    43 producer id 8 | 51 producer epoch 2 | 53 base sequence 4 | 57 record count 4 | 61 records
    attributes: bits 0-2 codec, 3 LogAppendTime, 4 transactional, 5 control, 6 delete horizon

A batch is whole iff its length is at least 49 and its bytes are all there; it is intact iff the CRC-32C of
the bytes from 21 to its end is `crc`. Base offset and leader epoch stand before the sum, so the broker
writes them in place. check() says what a batch from a client must be beyond that: everything that Apache
Kafka 4.3 demands, and that every client will be able to read it. docs/formats/record-batch.md has the why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Any, TypeAlias

from headwater.wire import compression, kernel
from headwater.wire import records as _records
from headwater.wire.crc import crc32c
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.records import Buffer, Record

HEADER_BYTES = 61
MAGIC = 2
CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
ABORT = 0
COMMIT = 1
# When Kafka writes attributes anew, it clears what it does not know; 0x08 is set by what is wanted.
_KEPT_ATTRIBUTES = 0x77

# Of one batch's records, inflated: 64 times Kafka's default max.message.bytes. Kafka has no such limit, but
# each consumer must hold what comes out; a bomb ends here.
RECORDS_BYTES_MAX = 64 * 1024 * 1024
# Kafka names every bad record; 7 bytes received must not buy 100 bytes of answer each.
RECORD_ERRORS_MAX = 1000
INT64_MAX = 2**63 - 1

_HEADER = Struct(">qiibIhiqqqhii")
_INT64 = Struct(">q")
_INT32 = Struct(">i")
_UINT32 = Struct(">I")
_INT16 = Struct(">h")
_MARKER_KEY = Struct(">hh")  # version, type
_MARKER_VALUE = Struct(">hi")  # version, coordinator epoch

_LENGTH_MIN = HEADER_BYTES - 12
_LEGACY_LENGTH_MIN = 14  # Kafka's first look allows what the oldest format would need

KeyValue: TypeAlias = tuple[Buffer | None, Buffer | None]


class BatchHeader:
    """The 61 bytes before the records, as they stand."""

    __slots__ = (  # noqa: RUF023 - the order of the bytes
        "base_offset",
        "batch_length",
        "partition_leader_epoch",
        "magic",
        "crc",
        "attributes",
        "last_offset_delta",
        "base_timestamp",
        "max_timestamp",
        "producer_id",
        "producer_epoch",
        "base_sequence",
        "record_count",
    )

    def __init__(
        self,
        base_offset: int,
        batch_length: int,
        partition_leader_epoch: int,
        magic: int,
        crc: int,
        attributes: int,
        last_offset_delta: int,
        base_timestamp: int,
        max_timestamp: int,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        record_count: int,
    ) -> None:
        self.base_offset = base_offset
        self.batch_length = batch_length
        self.partition_leader_epoch = partition_leader_epoch
        self.magic = magic
        self.crc = crc
        self.attributes = attributes
        self.last_offset_delta = last_offset_delta
        self.base_timestamp = base_timestamp
        self.max_timestamp = max_timestamp
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.record_count = record_count

    def __repr__(self) -> str:
        return "BatchHeader(" + ", ".join(f"{name}={getattr(self, name)}" for name in self.__slots__) + ")"

    @property
    def size(self) -> int:
        return self.batch_length + 12

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL != 0

    @property
    def is_log_append_time(self) -> bool:
        return self.attributes & LOG_APPEND_TIME != 0

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Sequences run from 0 to 2^31 - 1 and begin again."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF


class InvalidRecords(KafkaError):
    """A batch refused for single records: (index in the batch, message) of each, as Produce answers them."""

    def __init__(self, code: ErrorCode, message: str, record_errors: list[tuple[int, str]]) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors


def parse_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header at `position`; the caller has seen to it that 61 bytes are there."""
    return BatchHeader(*_HEADER.unpack_from(buffer, position))


def headers(buffer: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of every whole batch; what follows the last whole batch is left alone."""
    position = 0
    end = len(buffer)
    while end - position >= HEADER_BYTES:
        header = parse_header(buffer, position)
        size = header.size
        if size < HEADER_BYTES or size > end - position or header.magic != MAGIC:
            return
        yield position, header
        position += size


def is_intact(view: memoryview, header: BatchHeader) -> bool:
    """Whether the sum is right; `view` begins with the batch of `header`."""
    return crc32c(view[21 : header.size]) == header.crc


def check(
    view: memoryview,
    *,
    max_bytes: int,
    compacted: bool = False,
    log_append_time: bool = False,
    now_ms: int | None = None,
    before_max_ms: int = INT64_MAX,
    after_max_ms: int = INT64_MAX,
) -> BatchHeader:
    """The header of the one batch that a client may append, or KafkaError with Kafka's code.

    Timestamps are held against `now_ms` where it is given (message.timestamp.before/after.max.ms), unless
    the topic stamps them itself (`log_append_time`). As in Kafka, a max timestamp that is not the greatest
    of the records and a LogAppendTime bit are not refused but put right, in place: `view` is writable then.
    """
    header = _only_batch(view)
    _check_header(view, header, max_bytes)
    data, position = _plain_records(view, header, max_bytes)
    kind, index, place, greatest, _at, least, keyless = kernel.walk(data, position, header.record_count, True)
    if kind != _records.OK:
        text = _records.ERROR_TEXTS[kind]
        raise KafkaError(ErrorCode.INVALID_RECORD, f"record {index} of the batch, at byte {place}: {text}")
    base = header.base_timestamp
    least += base
    greatest += base
    if header.is_log_append_time:
        # The client says that every record has the max timestamp, and Kafka holds it to that.
        least = min(least, header.max_timestamp)
        latest = max(greatest, header.max_timestamp)
    else:
        latest = greatest
    if log_append_time:
        faulty = header.is_log_append_time
    else:
        faulty = now_ms is not None and (latest > now_ms + after_max_ms or least < now_ms - before_max_ms)
    if faulty or (compacted and keyless >= 0):
        limits = (
            None if now_ms is None or log_append_time else (now_ms - before_max_ms, now_ms + after_max_ms)
        )
        _refuse_records(data, position, header, compacted, log_append_time, limits)
    if not log_append_time:
        _correct_timestamps(view, header, least, greatest)
    return header


def _only_batch(view: memoryview) -> BatchHeader:
    """Kafka's first look, at the request: exactly one whole batch, of magic 2."""
    end = len(view)
    if end < 12:
        raise KafkaError(ErrorCode.INVALID_RECORD, "there is no record batch")
    length = _INT32.unpack_from(view, 8)[0]
    if length < _LEGACY_LENGTH_MIN:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the batch states a length of {length}")
    if end >= 17 and view[16] > MAGIC:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the batch states magic {view[16]}")
    if length + 12 > end:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"the batch states {length + 12} bytes, {end} are there")
    if view[16] != MAGIC:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"message format {view[16]}: only format 2 is accepted")
    if length < _LENGTH_MIN:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"a batch of {length + 12} bytes has no room for its header"
        )
    if end - length - 12 >= HEADER_BYTES:
        raise KafkaError(ErrorCode.INVALID_RECORD, "a partition's records must be one batch, there are more")
    return parse_header(view)


def _check_header(view: memoryview, header: BatchHeader, max_bytes: int) -> None:
    """The same rules in the same order as Kafka, so that a batch with two faults gets the same code."""
    if header.base_offset != 0:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"the base offset is {header.base_offset}, not 0")
    if header.size > max_bytes:
        text = f"the batch has {header.size} bytes, max.message.bytes is {max_bytes}"
        raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, text)
    if crc32c(view[21 : header.size]) != header.crc:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "the checksum is wrong")
    if header.size != len(view):
        # Kafka cuts them off without a word: what a producer meant by them is not ours to guess.
        raise KafkaError(ErrorCode.INVALID_RECORD, f"{len(view) - header.size} bytes follow the batch")
    if header.last_offset_delta < 0 or header.record_count <= 0:
        text = f"{header.record_count} records, last offset delta {header.last_offset_delta}"
        raise KafkaError(ErrorCode.INVALID_RECORD, text)
    if header.last_offset_delta + 1 != header.record_count:
        text = f"{header.record_count} records cannot end at offset delta {header.last_offset_delta}"
        raise KafkaError(ErrorCode.INVALID_RECORD, text)
    if header.attributes & CONTROL:
        raise KafkaError(ErrorCode.INVALID_RECORD, "clients may not write control records")
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"producer id without sequence ({header.base_sequence})")
    if header.attributes & TRANSACTIONAL and header.producer_id < 0:
        # Kafka lets it pass, into a transaction that nobody can end.
        raise KafkaError(ErrorCode.INVALID_RECORD, "transactional records without a producer id")


def _plain_records(view: memoryview, header: BatchHeader, max_bytes: int) -> tuple[Buffer, int]:
    """The records uncompressed, and where they begin."""
    codec = header.attributes & CODEC_MASK
    if codec == compression.NONE:
        return view, HEADER_BYTES
    if codec > compression.ZSTD:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"unknown compression codec {codec}")  # Kafka's answer
    try:
        return compression.decompress(codec, view[HEADER_BYTES:], max(RECORDS_BYTES_MAX, max_bytes)), 0
    except compression.TooLarge as error:
        raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, str(error)) from None
    except compression.Undecodable as error:
        # Kafka's answer. CORRUPT_MESSAGE would make producers send the same bytes again.
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from None


def _correct_timestamps(view: memoryview, header: BatchHeader, least: int, greatest: int) -> None:
    if greatest > INT64_MAX or least < -INT64_MAX - 1:
        raise KafkaError(ErrorCode.INVALID_TIMESTAMP, "a timestamp does not fit in 64 bits")
    # Kafka counts from -1, "no timestamp", upwards, whatever stands below it.
    greatest = max(greatest, -1)
    if header.max_timestamp != greatest or header.is_log_append_time:
        _set_max_timestamp(view, header, header.attributes & _KEPT_ATTRIBUTES, greatest)


def _refuse_records(
    data: Buffer,
    position: int,
    header: BatchHeader,
    compacted: bool,
    log_append_time: bool,
    limits: tuple[int, int] | None,
) -> None:
    """InvalidRecords with every record that is at fault, as Kafka lists them; nothing if none is."""
    errors = []
    code = ErrorCode.INVALID_RECORD
    stamped = header.max_timestamp if header.is_log_append_time else None
    found = _records.decode(data, position, header.record_count, 0, header.base_timestamp)
    for index, record in enumerate(found):
        timestamp = record.timestamp if stamped is None else stamped
        if compacted and record.key is None:
            errors.append((index, "Compacted topic cannot accept message without key"))
        elif log_append_time and stamped is not None:
            code = ErrorCode.INVALID_TIMESTAMP
            errors.append((index, "Producer should not set timestamp type to LogAppendTime"))
        # -1 says "no timestamp" and is not held against the clock.
        elif limits is not None and timestamp != -1 and not limits[0] <= timestamp <= limits[1]:
            code = ErrorCode.INVALID_TIMESTAMP
            text = f"Timestamp {timestamp} is out of range: not within [{limits[0]}, {limits[1]}]"
            errors.append((index, text))
        if len(errors) == RECORD_ERRORS_MAX:
            break
    if errors:
        reason = (
            "invalid timestamp" if code is ErrorCode.INVALID_TIMESTAMP else f"{len(errors)} record errors"
        )
        raise InvalidRecords(code, f"One or more records have been rejected due to {reason}", errors)


def _set_max_timestamp(view: memoryview, header: BatchHeader, attributes: int, timestamp: int) -> None:
    header.attributes = attributes
    header.max_timestamp = timestamp
    _INT16.pack_into(view, 21, attributes)
    _INT64.pack_into(view, 35, timestamp)
    header.crc = crc32c(view[21 : header.size])
    _UINT32.pack_into(view, 17, header.crc)


def stamp(view: memoryview, base_offset: int, leader_epoch: int) -> None:
    """Give the batch its place in the log. Neither field is under the checksum."""
    _INT64.pack_into(view, 0, base_offset)
    _INT32.pack_into(view, 12, leader_epoch)


def stamp_log_append_time(view: memoryview, now_ms: int) -> None:
    """Make `now_ms` the timestamp of every record: the bit and max timestamp say so, the deltas stay."""
    header = parse_header(view)
    attributes = header.attributes & _KEPT_ATTRIBUTES | LOG_APPEND_TIME
    _set_max_timestamp(view, header, attributes, now_ms)


def build(
    records: Iterable[Record | KeyValue],
    *,
    codec: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    base_offset: int = 0,
    leader_epoch: int = -1,
    log_append_time: bool = False,
    now_ms: int = -1,
) -> bytearray:
    """One batch of `records`, which get consecutive offsets from `base_offset` on, whatever they say.

    A (key, value) pair gets the timestamp `now_ms` and no headers. With `log_append_time` every record does.
    """
    body = bytearray()
    count = 0
    base_timestamp = max_timestamp = now_ms
    for record in records:
        if len(record) == 2:
            key, value = record
            timestamp, record_headers = now_ms, None
        else:
            _, timestamp, key, value, record_headers = record
        if count == 0:
            base_timestamp = max_timestamp = timestamp
        elif timestamp > max_timestamp:
            max_timestamp = timestamp
        body += _records.encode(count, timestamp - base_timestamp, key, value, record_headers)
        count += 1
    content = compression.compress(codec, body) if codec else body
    attributes = codec | (transactional and TRANSACTIONAL) | (control and CONTROL)
    if log_append_time:
        attributes |= LOG_APPEND_TIME
        max_timestamp = now_ms
    batch = bytearray(HEADER_BYTES)
    batch += content
    fields = (base_offset, len(batch) - 12, leader_epoch, MAGIC, 0, attributes, count - 1, base_timestamp)
    _HEADER.pack_into(batch, 0, *fields, max_timestamp, producer_id, producer_epoch, base_sequence, count)
    _UINT32.pack_into(batch, 17, crc32c(memoryview(batch)[21:]))
    return batch


def _stored_records(view: Buffer, position: int, header: BatchHeader) -> tuple[Buffer, int]:
    """Records of a stored batch; those of a client that sends this to us are checked by check() instead."""
    whole = memoryview(view)[position : position + header.size]
    if header.codec == compression.NONE:
        return whole, HEADER_BYTES
    try:
        return compression.decompress(header.codec, whole[HEADER_BYTES:], _STORED_BYTES_MAX), 0
    except (compression.TooLarge, compression.Undecodable) as error:
        raise _records.Malformed(str(error)) from None


_STORED_BYTES_MAX = 2**31 - 1  # a batch from somewhere else may hold as much as its format can say


def records(view: Buffer) -> Iterator[Record]:
    """Every record of every whole batch in `view`, control records included; Malformed if one is damaged."""
    for position, header in headers(view):
        data, start = _stored_records(view, position, header)
        found = _records.decode(data, start, header.record_count, header.base_offset, header.base_timestamp)
        if header.is_log_append_time:
            yield from (record._replace(timestamp=header.max_timestamp) for record in found)
        else:
            yield from found


def first_at_or_after(view: memoryview, timestamp: int) -> tuple[int, int] | None:
    """(timestamp, offset) of the first record of one stored batch that is not older than `timestamp`."""
    header = parse_header(view)
    if header.max_timestamp < timestamp or header.record_count <= 0:
        return None
    if header.is_log_append_time:
        return header.max_timestamp, header.base_offset
    data, start = _stored_records(view, 0, header)
    wanted = min(max(timestamp - header.base_timestamp, -INT64_MAX), INT64_MAX)
    found = kernel.first_at_or_after(data, start, header.record_count, wanted)
    return None if found is None else (header.base_timestamp + found[0], header.base_offset + found[1])


def max_timestamp_record(view: memoryview) -> tuple[int, int] | None:
    """(timestamp, offset) of the first record of one stored batch that has its greatest timestamp."""
    header = parse_header(view)
    if header.record_count <= 0:
        return None
    if header.is_log_append_time:
        return header.max_timestamp, header.base_offset
    return first_at_or_after(view, header.max_timestamp)


def end_marker(
    commit: bool, producer_id: int, producer_epoch: int, coordinator_epoch: int, now_ms: int
) -> bytearray:
    """The control batch that ends a transaction in one partition."""
    key = _MARKER_KEY.pack(0, COMMIT if commit else ABORT)
    value = _MARKER_VALUE.pack(0, coordinator_epoch)
    return build(
        [(key, value)],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
        now_ms=now_ms,
    )


def marker_type(view: Buffer) -> int:
    """COMMIT, ABORT or another of Kafka's control types; -1 for a batch that is not a readable control batch."""
    header = parse_header(view)
    if not header.is_control or header.record_count < 1:
        return -1
    key = next(records(view)).key
    return -1 if key is None or len(key) < _MARKER_KEY.size else int(_MARKER_KEY.unpack_from(key)[1])


def marker_coordinator_epoch(view: Buffer) -> int:
    """The coordinator epoch that a transaction marker carries; -1 if it is none."""
    if marker_type(view) not in (ABORT, COMMIT):
        return -1
    value: Any = next(records(view)).value
    return (
        -1 if value is None or len(value) < _MARKER_VALUE.size else int(_MARKER_VALUE.unpack_from(value)[1])
    )
