"""A clean stop: log/ holds Kafka's files and nothing else is needed to know what they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.log import data_dir
from headwater.log.segment_writer import Operation

if TYPE_CHECKING:
    from headwater.log.log import Log
    from headwater.log.partition import Partition


def close_cleanly(log: Log) -> None:
    log.commit()
    operations: list[Operation] = []
    for topic in log.topics.values():
        for partition in topic.partitions:
            if partition.changed:
                operations += _finish(partition)
    log.writer.run(operations)
    sequence = log.checkpoint_now()
    data_dir.mark_clean(log.disk, log.root, sequence)


def _finish(partition: Partition) -> list[Operation]:
    """As Kafka closes a log: the last time index entry, a snapshot at the end, no space held in reserve."""
    operations: list[Operation] = []
    active = partition.active
    if active is None:
        return operations
    if active.size:
        active.add_time_entry()
        partition.line = ""
        operations += active.take_writes(partition.high_watermark, partition.log_end_offset)
        operations.append(("trim", active.path, active.size))
    name = f"{partition.log_end_offset:020d}.snapshot"
    kept = {f"{base:020d}.snapshot" for base in partition.bases}
    operations.append(("snapshots", partition.folder, kept | {name}))
    if partition.log_end_offset not in partition.bases:
        operations.append(("file", f"{partition.folder}/{name}", partition.producers.snapshot()))
    operations.append(partition.epochs_file())
    return operations
