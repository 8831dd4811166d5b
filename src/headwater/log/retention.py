"""Old segments go: by age, by size, or because the log start passed them. Rules of Kafka's UnifiedLog.

A segment is as old as its newest record (one without timestamps: as its file). Whole segments only; when all
have expired, a new active one is begun first. Nothing is done while the wall clock cannot be believed: when
it and the monotonic clock drift apart by more than a day between two ticks, somebody set it, and a wrong year
must not empty every topic. A clock that stays there for a day is believed again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.log.log import Log
    from headwater.log.partition import Partition
    from headwater.log.segment import Segment

JUMP_MAX_MS = 24 * 3_600_000


class Retention:
    def __init__(self, log: Log) -> None:
        self._log = log
        self._difference = log.clock.wall_ms() - log.clock.monotonic_ms()
        self._jumped_at: int | None = None  # monotonic
        self._due = 0
        self.held = ""  # why nothing is removed at the moment; "" if nothing is wrong

    def tick(self) -> None:
        now = self._log.clock.monotonic_ms()
        if not self._clock_is_sane(now) or now < self._due:
            return
        self._due = now + self._log.settings.retention_check_ms
        wall = self._log.clock.wall_ms()
        for topic in list(self._log.topics.values()):
            settings = topic.settings
            for partition in topic.partitions:
                if partition.active is not None:
                    if settings.delete:
                        self._expire(partition, wall, settings.retention_ms, settings.retention_bytes)
                    self._below_start(partition)
                if len(partition.producers):
                    expiration = self._log.settings.producer_id_expiration_ms
                    if partition.producers.expire(wall, expiration):
                        partition.line = ""

    def _clock_is_sane(self, now: int) -> bool:
        difference = self._log.clock.wall_ms() - now
        if abs(difference - self._difference) <= JUMP_MAX_MS:
            # A clock that is slewed or stepped a little takes its new difference with it.
            self._difference = difference
            self._jumped_at = None
            self.held = ""
            return True
        if self._jumped_at is None:
            self._jumped_at = now
            hours = (difference - self._difference) // 3_600_000
            self.held = f"the wall clock jumped by {hours} hours; no segment is removed by age or size for a day"
        elif now - self._jumped_at >= JUMP_MAX_MS:
            self._difference = difference
        return False

    def _expire(self, partition: Partition, wall: int, retention_ms: int, retention_bytes: int) -> None:
        gone = self._by_age(partition, wall - retention_ms) if retention_ms >= 0 else 0
        if retention_bytes >= 0:
            gone = max(gone, self._by_size(partition, retention_bytes))
        if not gone:
            return
        segments = partition.segments
        rolled = gone == len(segments)
        if rolled:
            partition.roll()
        target = partition.bases[gone]
        # A roll is told to the journal even if the start stays: a replay must cut segments where this run did.
        if rolled or target > partition.log_start_offset:
            self._log.move_log_start(partition, target, rolled=rolled)

    def _by_age(self, partition: Partition, oldest_kept: int) -> int:
        """How many of the oldest segments have only records from before `oldest_kept`."""
        gone = 0
        for place, segment in enumerate(partition.segments):
            if not segment.size or self._newest(segment) >= oldest_kept or not self._is_durable(partition, place):
                break
            gone += 1
        return gone

    def _by_size(self, partition: Partition, most: int) -> int:
        surplus = partition.size - most
        gone = 0
        for place, segment in enumerate(partition.segments[:-1]):
            if surplus < segment.size or not self._is_durable(partition, place):
                break
            surplus -= segment.size
            gone += 1
        return gone

    def _is_durable(self, partition: Partition, place: int) -> bool:
        """Kafka: only what lies below the high watermark is deleted."""
        ends = partition.bases[place + 1] if place + 1 < len(partition.bases) else partition.log_end_offset
        return ends <= partition.high_watermark

    def _newest(self, segment: Segment) -> int:
        if segment.max_timestamp >= 0:
            return segment.max_timestamp
        if not segment.written:
            return segment.created_ms
        return self._log.disk.modified_ms(segment.path)

    def _below_start(self, partition: Partition) -> None:
        """Segments that DeleteRecords left behind because they were active then; when its start is durable, they go."""
        start = partition.log_start_offset
        if len(partition.bases) > 1 and partition.bases[1] <= start:
            self._log.when_durable(lambda: None if partition.deleted else self._log.drop_segments(partition, start))
