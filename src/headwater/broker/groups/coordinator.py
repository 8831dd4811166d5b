"""All groups of the broker: finds them, makes them, writes them, loads them.

What a group does is in the modules beside this one; here is what they share: the table of groups, the two
views of committed offsets, and the one way to the log. Whoever answers for something written waits for it
to be durable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from headwater.broker.groups import expiry, joining, membership, records
from headwater.broker.groups.group import DEAD, Group
from headwater.broker.groups.offsets import NO_TOPIC_ID, CommittedOffset, OffsetView, PendingOffsets
from headwater.broker.groups.rebalance import prepare
from headwater.broker.groups.records import OffsetKey, Record
from headwater.broker.groups.sessions import touch
from headwater.broker.internal_topics import CONSUMER_OFFSETS, Durable, InternalTopic
from headwater.wire import batch
from headwater.wire.schema import Malformed

if TYPE_CHECKING:
    from headwater.broker.groups.members import Member
    from headwater.broker.registry import Context
    from headwater.broker.state import Broker
    from headwater.broker.waiting import Later
    from headwater.log import Appended, Partition
    from headwater.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

Change = tuple[OffsetKey, CommittedOffset | None]


def nothing() -> None:
    """Nobody waits."""


class Groups:
    """The group coordinator."""

    def __init__(self, broker: Broker) -> None:
        self.clock = broker.clock
        self.timers = broker.timers
        self.settings = broker.settings
        self.log = broker.log
        self.durable = Durable(broker)
        self.topic = InternalTopic(
            broker,
            CONSUMER_OFFSETS,
            broker.settings.offsets_topic_num_partitions,
            {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(broker.settings.offsets_topic_segment_bytes),
            },
        )
        self.by_id: dict[str, Group] = {}
        self.latest = OffsetView()
        self.visible = OffsetView()
        self.pending = PendingOffsets()

    # ------------------------------------------------------------------- groups

    def get(self, group_id: str) -> Group | None:
        """KafkaError if what was known of the group could not be loaded."""
        self.topic.check(group_id)
        return self.by_id.get(group_id)

    def create(self, group_id: str) -> Group:
        group = self.by_id[group_id] = Group(group_id, self.clock.wall_ms())
        return group

    def forget(self, group: Group) -> None:
        """The group is deleted: its tombstones are written."""
        group.stop_timers()
        group.become(DEAD, self.clock.wall_ms())
        del self.by_id[group.group_id]

    def join(self, request: JoinGroupRequest, context: Context, promise: Later[JoinGroupResponse]) -> None:
        joining.join(self, request, context, promise)

    def member_expired(self, group: Group, member: Member) -> None:
        membership.expire(self, group, member)

    def pending_expired(self, group: Group, member_id: str) -> None:
        membership.expire_pending(self, group, member_id)

    # ------------------------------------------------------------------ writing

    def append(
        self,
        group_id: str,
        changes: Sequence[Record],
        done: Callable[[], None] = nothing,
        failed: Callable[[], None] = nothing,
    ) -> None:
        """Write records of one group; ``done`` when they are durable, ``failed`` if they never will be."""
        if self.log.fenced is not None:
            failed()
            return
        self.topic.partition_of(group_id).append_records(changes)
        if done is not nothing:
            self.durable.then(done, failed)

    def write_offsets(
        self, group_id: str, changes: Sequence[Change], more: Sequence[Record], done: Callable[[], None],
        failed: Callable[[], None],
    ) -> None:  # fmt: skip
        """Commit or delete offsets of a group, with ``more`` beside; ``visible`` follows when durable."""
        if self.log.fenced is not None:
            failed()
            return
        written = [records.offset_record(key, committed) for key, committed in changes]
        applied = list(changes)
        if written or more:
            appended = self.topic.partition_of(group_id).append_records([*written, *more])
            applied = self._at(changes, appended)
        for key, committed in applied:
            self.latest.put(*key, committed)
            if committed is None:
                self.pending.discard(*key)

        def durable() -> None:
            for key, committed in applied:
                self.visible.put(*key, committed)
            done()

        self.durable.then(durable, failed)

    def write_pending(
        self, group_id: str, changes: Sequence[Change], producer_id: int, producer_epoch: int,
        done: Callable[[], None], failed: Callable[[], None],
    ) -> None:  # fmt: skip
        """Offsets inside a transaction: kept apart until its marker."""
        if self.log.fenced is not None:
            failed()
            return
        if changes:
            partition = self.topic.partition_of(group_id)
            appended = partition.append_records(
                [records.offset_record(key, committed) for key, committed in changes],
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                transactional=True,
            )
            for key, committed in self._at(changes, appended):
                assert committed is not None
                self.pending.put((partition.index, producer_id), *key, committed)
        self.durable.then(done, failed)

    def end_transaction(self, partition: Partition, producer_id: int, *, commit: bool) -> None:
        """The marker of this producer was appended to ``partition``: its offsets count, or never were."""
        key = (partition.index, producer_id)
        ended, after = self.pending.of_key(key), partition.log_end_offset
        if commit:
            for group, topic, index, committed in ended:
                self._commit_pending(self.latest, group, topic, index, committed)

        def durable() -> None:
            if commit:
                for group, topic, index, committed in ended:
                    self._commit_pending(self.visible, group, topic, index, committed)
            self.pending.end(key, after)

        self.durable.then(durable, nothing)

    @staticmethod
    def _commit_pending(
        view: OffsetView, group: str, topic: str, partition: int, committed: CommittedOffset
    ) -> None:
        before = view.get(group, topic, partition)
        if before is None or committed.record_offset > before.record_offset:
            view.put(group, topic, partition, committed)

    @staticmethod
    def _at(changes: Sequence[Change], appended: Appended) -> list[Change]:
        return [
            (key, None if committed is None else committed._replace(record_offset=appended.base_offset + i))
            for i, (key, committed) in enumerate(changes)
        ]

    # ------------------------------------------------------------------ deletion

    def is_stale(self, topic: str, committed: CommittedOffset) -> bool:
        """Whether this was committed for a topic that is gone, even if there is a new one of its name."""
        current = self.log.topics.get(topic)
        return current is None or committed.topic_id not in (NO_TOPIC_ID, current.topic_id)

    def delete(self, group: Group) -> None:
        """The group with everything it committed."""
        changes = expiry.all_offsets(self, group.group_id)
        self.forget(group)
        self.write_offsets(
            group.group_id, changes, [records.group_tombstone(group.group_id)], nothing, nothing
        )

    def topic_deleted(self, name: str) -> None:
        """Nobody may go on at an offset of a topic that is gone, least of all in a new one of its name."""
        expiry.drop_topic(self, name)

    # ------------------------------------------------------------------- loading

    def load(self) -> None:
        """Everything as ``__consumer_offsets`` has it; then the deadlines begin to run."""
        self.topic.load(self._load_partition, self._forget_partition)
        self.visible = self.latest.copy()
        for group in list(self.by_id.values()):
            for member in group.members.values():
                touch(self, group, member)
            if len(group.members) > self.settings.group_max_size:
                prepare(self, group)
        expiry.schedule(self)

    def _load_partition(self, partition: Partition) -> None:
        for view in partition.batches():
            header = batch.parse_header(view)
            if header.is_control:
                committed = batch.marker_type(view) == batch.COMMIT
                self._load_marker((partition.index, header.producer_id), commit=committed)
                continue
            producer_id = header.producer_id if header.is_transactional else -1
            for record in batch.records(view):
                if record.key is None:
                    continue
                try:
                    records.load_record(
                        self, partition.index, record.offset, producer_id, record.key, record.value
                    )
                except (ValueError, AssertionError, Malformed) as error:
                    self.topic.name_bad_record(partition, record, error)

    def _forget_partition(self, index: int) -> None:
        for group_id in [name for name in self.by_id if self.topic.index_of(name) == index]:
            del self.by_id[group_id]
        for group_id in [name for name in self.latest.groups if self.topic.index_of(name) == index]:
            self.latest.remove_group(group_id)
        self.pending.forget_partition(index)

    def _load_marker(self, key: tuple[int, int], *, commit: bool) -> None:
        if commit:
            for group, topic, index, committed in self.pending.of_key(key):
                self._commit_pending(self.latest, group, topic, index, committed)
        self.pending.end(key)

    def load_offset(
        self, index: int, producer_id: int, key: OffsetKey, committed: CommittedOffset | None
    ) -> None:
        if committed is None:
            self.latest.put(*key, None)
            self.pending.discard(*key)
            return
        if key.group not in self.by_id:
            self.create(key.group)
        if producer_id == -1:
            self.latest.put(*key, committed)
        else:
            self.pending.put((index, producer_id), *key, committed)

    def load_group(self, group_id: str, group: Group | None) -> None:
        if group is None:
            self.by_id.pop(group_id, None)
        else:
            self.by_id[group_id] = group
