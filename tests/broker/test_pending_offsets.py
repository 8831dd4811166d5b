"""Offsets inside transactions end with their own marker, not with another's."""

from __future__ import annotations

from headwater.broker.groups.offsets import CommittedOffset, PendingOffsets

KEY = (3, 1000)


def committed(offset: int, record_offset: int) -> CommittedOffset:
    return CommittedOffset(offset, -1, "", 0, -1, bytes(16), record_offset)


def test_the_end_of_a_transaction_leaves_the_offsets_of_the_next_one() -> None:
    pending = PendingOffsets()
    pending.put(KEY, "g", "old", 0, committed(1, record_offset=10))
    marker_end = 12
    pending.put(KEY, "g", "new", 0, committed(2, record_offset=12))
    pending.end(KEY, marker_end)
    assert [(group, topic, at.offset) for group, topic, _, at in pending.of_key(KEY)] == [("g", "new", 2)]
    assert pending.is_open("g")
    pending.end(KEY)
    assert not pending.is_open("g")
