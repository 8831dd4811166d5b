"""The log's own limits. Each is a size or a time with a reason; tests make them small."""

from __future__ import annotations

from collections.abc import Mapping

KIB = 1024
MIB = 1024 * KIB


class LogSettings:
    __slots__ = (
        "checkpoint_bytes",
        "first_journal_bytes",
        "handles_max",
        "index_memory_bytes",
        "journal_file_bytes",
        "producer_id_expiration_ms",
        "retention_check_ms",
        "tail_batches",
        "tail_bytes",
        "topic_defaults",
        "window_bytes",
    )

    def __init__(
        self,
        *,
        window_bytes: int = 4 * MIB,  # unbounded windows feed on themselves: 200 MB were seen
        journal_file_bytes: int = 16 * MIB,
        first_journal_bytes: int = MIB,  # a small first file, so that a start does not write 16 MB of zeros
        checkpoint_bytes: int = 64 * MIB,  # of journal between two checkpoints; a restart reads at most a bit more
        tail_bytes: int = 32 * MIB,
        tail_batches: int = 20_000,  # objects that the cycle collector must visit
        handles_max: int = 512,  # of segment files open for writing; and as many for reading
        index_memory_bytes: int = 64 * MIB,
        retention_check_ms: int = 10_000,
        producer_id_expiration_ms: int = 86_400_000,  # Kafka's producer.id.expiration.ms
        topic_defaults: Mapping[str, str] | None = None,  # by topic setting name, where they differ from Kafka's
    ) -> None:
        self.window_bytes = window_bytes
        self.journal_file_bytes = journal_file_bytes
        self.first_journal_bytes = min(first_journal_bytes, journal_file_bytes)
        self.checkpoint_bytes = checkpoint_bytes
        self.tail_bytes = tail_bytes
        self.tail_batches = tail_batches
        self.handles_max = handles_max
        self.index_memory_bytes = index_memory_bytes
        self.retention_check_ms = retention_check_ms
        self.producer_id_expiration_ms = producer_id_expiration_ms
        self.topic_defaults = dict(topic_defaults or {})
