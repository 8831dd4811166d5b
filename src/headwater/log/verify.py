"""The deep check: every byte that the log is responsible for, read and compared. For tools; it takes its time.

Segments batch by batch (checksum, offsets, leader epochs), indexes by their checksums, and the files that only
Kafka reads: snapshots by their own checksum, metadata and epochs against what they must say. Nothing is changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.core.disk import read_file
from headwater.log.damage import Damage
from headwater.log.producer_state import snapshot_holds
from headwater.log.reads import READ_BYTES_MAX, Batches, Blocking, Corrupt
from headwater.wire.crc import crc32c

if TYPE_CHECKING:
    from headwater.log.log import Log
    from headwater.log.partition import Partition
    from headwater.log.segment import Segment
    from headwater.log.segment_index import Index


def verify(log: Log) -> list[Damage]:
    """What is wrong now, beyond the holes that are known already. Commit first: what is not in files is not checked."""
    found: list[Damage] = []
    for topic in log.topics.values():
        for partition in topic.partitions:
            for segment in partition.segments:
                if segment.on_disk:
                    _segment(partition, segment, found)
            if partition.on_disk:
                _small_files(partition, found)
    return found


def _note(found: list[Damage], partition: Partition, path: str, position: int, reason: str) -> None:
    found.append(Damage(path, position, reason, partition.topic.name, partition.index))


def _segment(partition: Partition, segment: Segment, found: list[Damage]) -> None:
    try:
        with Blocking(partition, segment) as source:
            batches = Batches(partition, segment, source, 0)
            batches.expected = segment.base_offset
            batches.fill(READ_BYTES_MAX)
            for _ in batches:
                pass
    except Corrupt as error:
        _note(found, partition, segment.path, error.position, error.reason)
    except OSError as error:
        _note(found, partition, segment.path, 0, error.strerror or str(error))
    for index in (segment.offsets, segment.times, segment.aborted):
        _index(partition, segment, index, found)


def _index(partition: Partition, segment: Segment, index: Index, found: list[Damage]) -> None:
    if not index.taken:
        return
    path = segment.stem + index.suffix
    try:
        content = read_file(partition.disk, path)
    except OSError as error:
        _note(found, partition, path, 0, error.strerror or str(error))
        return
    written = bytes(index.data[: index.taken - index.base])
    if crc32c(content[: index.base]) != index.file_sum or content[index.base : index.taken] != written:
        _note(found, partition, path, 0, "the index is damaged")


def _small_files(partition: Partition, found: list[Damage]) -> None:
    for _, path, expected in partition.small_files():
        if partition.disk.file_size(path) is None or read_file(partition.disk, path) != expected:
            _note(found, partition, path, 0, "the file does not say what it should")
    for name in partition.disk.list(partition.folder):
        path = f"{partition.folder}/{name}"
        if name.endswith(".snapshot") and not snapshot_holds(read_file(partition.disk, path)):
            _note(found, partition, path, 0, "the producer snapshot is damaged")
