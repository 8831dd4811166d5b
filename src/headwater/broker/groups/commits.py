"""OffsetCommit, TxnOffsetCommit and OffsetDelete, once their topics are known to exist.

Who may commit is the group's decision; what is too large is refused for that partition alone; the rest is
answered when it is durable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from headwater.broker.groups.group import PREPARING, STABLE, Group
from headwater.broker.groups.offsets import NO_EXPIRY, CommittedOffset
from headwater.broker.groups.records import OffsetKey
from headwater.broker.groups.sessions import touch
from headwater.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from headwater.broker.groups.coordinator import Change, Groups

GROUP_ID_NOT_FOUND_SINCE = 9  # OffsetCommit: before, an unknown group was an illegal generation
NO_RETENTION = -1
TIMESTAMP_MAX = (1 << 63) - 1  # who asks for "for ever" with the largest number gets it


class Identity(NamedTuple):
    """Under which name something is committed."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    generation: int


class Asked(NamedTuple):
    """One offset that a client wants to be kept."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str | None
    topic_id: bytes  # of the topic as it is now: a later one of its name does not inherit the offset


Finish = Callable[[list[ErrorCode]], None]


def commit(
    groups: Groups, who: Identity, asked: Sequence[Asked], finish: Finish, *, version: int, retention_ms: int
) -> None:
    """``finish`` gets one error for each offset, once all that was accepted is durable."""
    unknown = (
        ErrorCode.GROUP_ID_NOT_FOUND if version >= GROUP_ID_NOT_FOUND_SINCE else ErrorCode.ILLEGAL_GENERATION
    )
    group = _group_for(groups, who, unknown)
    group.check_commit(who.member_id, who.group_instance_id, who.generation, transactional=False)
    member = group.members.get(who.member_id)
    if member is not None and group.state in (STABLE, PREPARING):
        touch(groups, group, member)
    errors, changes = _judge(groups, who.group_id, asked, retention_ms)
    groups.write_offsets(
        who.group_id, changes, [], lambda: finish(errors), lambda: finish(_not_here(errors))
    )  # fmt: skip


def commit_in_transaction(
    groups: Groups,
    who: Identity,
    asked: Sequence[Asked],
    finish: Finish,
    *,
    producer_id: int,
    producer_epoch: int,
) -> None:
    group = _group_for(groups, who, ErrorCode.ILLEGAL_GENERATION)
    group.check_commit(who.member_id, who.group_instance_id, who.generation, transactional=True)
    errors, changes = _judge(groups, who.group_id, asked, NO_RETENTION)
    groups.write_pending(
        who.group_id, changes, producer_id, producer_epoch,
        lambda: finish(errors), lambda: finish(_not_here(errors)),
    )  # fmt: skip


def delete(groups: Groups, group_id: str, asked: Sequence[tuple[str, int]], finish: Finish) -> None:
    """Forget single offsets. A consumer group keeps those of topics that it reads."""
    group = groups.get(group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
    group.check_offset_delete()
    errors: list[ErrorCode] = []
    changes: list[Change] = []
    for topic, partition in asked:
        if group.is_subscribed(topic):
            errors.append(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
            continue
        errors.append(ErrorCode.NONE)
        known = groups.latest.get(group_id, topic, partition) is not None
        if known or groups.pending.has(group_id, topic, partition):
            changes.append((OffsetKey(group_id, topic, partition), None))
    groups.write_offsets(group_id, changes, [], lambda: finish(errors), lambda: finish(_not_here(errors)))


def _group_for(groups: Groups, who: Identity, unknown: ErrorCode) -> Group:
    """A commit without a generation makes its group: such groups hold offsets and nothing else."""
    group = groups.get(who.group_id)
    if group is not None:
        return group
    if who.generation >= 0:
        raise KafkaError(unknown)
    return groups.create(who.group_id)


def _judge(
    groups: Groups, group_id: str, asked: Sequence[Asked], retention_ms: int
) -> tuple[list[ErrorCode], list[Change]]:
    now_ms = groups.clock.wall_ms()
    expire_ms = NO_EXPIRY if retention_ms == NO_RETENTION else min(now_ms + retention_ms, TIMESTAMP_MAX)
    errors: list[ErrorCode] = []
    changes: list[Change] = []
    for each in asked:
        if (
            each.metadata is not None
            and _java_length(each.metadata) > groups.settings.offset_metadata_max_bytes
        ):
            errors.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
            continue
        errors.append(ErrorCode.NONE)
        committed = CommittedOffset(
            each.offset, each.leader_epoch, each.metadata or "", now_ms, expire_ms, each.topic_id, -1
        )
        changes.append((OffsetKey(group_id, each.topic, each.partition), committed))
    return errors, changes


def _java_length(text: str) -> int:
    """Kafka's limit in bytes is counted in UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _not_here(errors: list[ErrorCode]) -> list[ErrorCode]:
    """The log is fenced: clients are to look for a coordinator elsewhere, or here after a restart."""
    return [ErrorCode.NOT_COORDINATOR if error == ErrorCode.NONE else error for error in errors]
