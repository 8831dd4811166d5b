"""What is dropped without a client asking: offsets nobody has used for long, groups nobody is in, and
offsets of deleted topics. Dropping is writing tombstones; so a restart does not bring anything back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.broker import wall_clock
from headwater.broker.groups import records
from headwater.broker.groups.group import EMPTY, NO_TIMESTAMP, STABLE, Group
from headwater.broker.groups.records import OffsetKey

if TYPE_CHECKING:
    from headwater.broker.groups.coordinator import Change, Groups
    from headwater.broker.groups.offsets import CommittedOffset

MINUTE_MS = 60_000


def schedule(groups: Groups) -> None:
    def due() -> None:
        schedule(groups)  # first: a fault in one round must not be the last round
        clean(groups)

    interval_ms = groups.settings.offsets_retention_check_interval_ms
    groups.timers.at(groups.clock.monotonic_ms() + interval_ms, due)


def clean(groups: Groups) -> None:
    """One round over all groups: expired offsets go; an empty group without offsets goes with them."""
    if groups.log.fenced is not None or not wall_clock.is_believed(groups.log):
        return
    now_ms = groups.clock.wall_ms()
    for group in list(groups.by_id.values()):
        expired, all_gone = _expired(groups, group, now_ms)
        over = all_gone and group.state is EMPTY and not groups.pending.is_open(group.group_id)
        if over:
            groups.forget(group)
        more = [records.group_tombstone(group.group_id)] if over else []
        if expired or more:
            groups.write_offsets(group.group_id, expired, more, _nobody_waits, _nobody_waits)


def _expired(groups: Groups, group: Group, now_ms: int) -> tuple[list[Change], bool]:
    """(tombstones, whether nothing is left)"""
    expired: list[Change] = []
    left = False
    for topic, partition, committed in groups.latest.of_group(group.group_id):
        if groups.is_stale(topic, committed):
            expired.append((OffsetKey(group.group_id, topic, partition), None))
        elif (
            group.is_subscribed(topic)
            or not _is_expired(groups, group, committed, now_ms)
            or groups.pending.has(group.group_id, topic, partition)
        ):
            left = True
        else:
            expired.append((OffsetKey(group.group_id, topic, partition), None))
    return expired, not left


def _is_expired(groups: Groups, group: Group, committed: CommittedOffset, now_ms: int) -> bool:
    """Offsets of a live group do not expire, but for topics that a stable consumer group no longer reads."""
    if group.protocol_type is None:
        base_ms = committed.commit_timestamp_ms
    elif group.state is EMPTY:
        known = group.state_timestamp_ms != NO_TIMESTAMP
        base_ms = group.state_timestamp_ms if known else committed.commit_timestamp_ms
    elif group.uses_consumer_protocol and group.subscribed is not None and group.state is STABLE:
        base_ms = committed.commit_timestamp_ms
    else:
        return False
    if committed.expire_timestamp_ms >= 0:
        return now_ms >= committed.expire_timestamp_ms
    retention_ms: int = groups.settings.offsets_retention_minutes * MINUTE_MS
    return now_ms - base_ms >= retention_ms


def all_offsets(groups: Groups, group_id: str) -> list[Change]:
    """Tombstones for everything that the group has committed or is committing."""
    names = {(topic, partition) for topic, partition, _ in groups.latest.of_group(group_id)}
    names.update(groups.pending.of_group(group_id))
    return [(OffsetKey(group_id, topic, partition), None) for topic, partition in sorted(names)]


def drop_topic(groups: Groups, name: str) -> None:
    found = {*groups.latest.of_topic(name), *groups.pending.of_topic(name)}
    by_group: dict[str, list[Change]] = {}
    for group_id, partition in sorted(found):
        by_group.setdefault(group_id, []).append((OffsetKey(group_id, name, partition), None))
    for group_id, changes in by_group.items():
        groups.write_offsets(group_id, changes, [], _nobody_waits, _nobody_waits)


def _nobody_waits() -> None:
    pass
