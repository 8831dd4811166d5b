"""Kafka's rules of idempotence and of transactions in one partition, as tables; and against a small model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.log import Partition
from headwater.log.producer_state import SEQUENCE_MASK
from headwater.testing.faulty_disk import FaultyDisk
from headwater.wire import batch as record_batch
from headwater.wire.errors import ErrorCode, KafkaError
from tests.log.workload import open_log

LAST = SEQUENCE_MASK


def new_partition(disk: FaultyDisk | None = None) -> Partition:
    return open_log(disk or FaultyDisk()).create_topic("t", 1, {}).partitions[0]


def send(
    partition: Partition,
    sequence: int,
    *,
    count: int = 1,
    epoch: int = 0,
    producer: int = 1,
    transactional: bool = False,
) -> tuple[int, bool]:
    built = memoryview(
        record_batch.build(
            [(b"k", b"v")] * count,
            producer_id=producer,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=transactional,
            now_ms=1,
        )
    )
    done = partition.append(built, record_batch.parse_header(built))
    return done.base_offset, done.duplicate


def refused(partition: Partition, *args: int, **how: int) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        send(partition, *args, **how)  # type: ignore[arg-type]
    return caught.value.code


def test_an_unknown_producer_may_begin_with_any_sequence() -> None:
    assert send(new_partition(), 77) == (0, False)


def test_a_gap_is_out_of_order_and_changes_nothing() -> None:
    partition = new_partition()
    send(partition, 0, count=3)
    assert refused(partition, 4) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(partition, 3) == (3, False)


def test_each_of_the_last_five_batches_is_answered_with_its_first_offset_and_the_sixth_is_not() -> None:
    partition = new_partition()
    for number in range(6):
        send(partition, 2 * number, count=2)
    for number in range(1, 6):
        assert send(partition, 2 * number, count=2) == (2 * number, True)
    assert refused(partition, 0, count=2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refused(partition, 2, count=1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER  # not the same batch
    assert partition.log_end_offset == 12


def test_sequences_wrap_to_zero_between_batches_and_inside_one() -> None:
    partition = new_partition()
    send(partition, LAST)
    assert send(partition, 0) == (1, False)
    assert send(partition, LAST) == (0, True)
    partition = new_partition()
    send(partition, LAST - 1, count=4)
    assert send(partition, 2) == (4, False)
    assert send(partition, LAST - 1, count=4) == (0, True)


def test_a_new_epoch_begins_at_zero_and_an_old_one_is_fenced() -> None:
    partition = new_partition()
    send(partition, 5)
    assert refused(partition, 6, epoch=1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(partition, 0, epoch=1) == (1, False)
    assert refused(partition, 6, epoch=0) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_inside_a_transaction_a_batch_outside_of_it_is_refused() -> None:
    partition = new_partition()
    send(partition, 0, transactional=True)
    assert refused(partition, 1) == ErrorCode.INVALID_TXN_STATE


def test_markers_of_a_zombie_or_of_an_old_coordinator_are_refused() -> None:
    partition = new_partition()
    send(partition, 0, epoch=3, transactional=True)
    with pytest.raises(KafkaError) as caught:
        partition.append_marker(1, 2, 0, True)
    assert caught.value.code == ErrorCode.INVALID_PRODUCER_EPOCH
    partition.append_marker(1, 3, 7, True)
    with pytest.raises(KafkaError) as caught:
        partition.append_marker(1, 3, 6, True)
    assert caught.value.code == ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_the_last_stable_offset_waits_for_the_marker_to_be_durable() -> None:
    partition = new_partition()
    log = partition._log
    send(partition, 0, producer=8)
    send(partition, 0, count=2, transactional=True)
    send(partition, 0, producer=2, transactional=True)
    log.commit()
    assert (partition.last_stable_offset, partition.high_watermark) == (1, 4)
    partition.append_marker(1, 0, 0, False)
    assert partition.last_stable_offset == 1
    log.commit()
    assert (partition.last_stable_offset, partition.high_watermark) == (3, 5)
    partition.append_marker(2, 0, 0, True)
    log.commit()
    assert partition.last_stable_offset == partition.high_watermark == 6
    assert [tuple(found) for found in partition.aborted_transactions(0, 6)] == [(1, 1)]
    assert partition.aborted_transactions(5, 6) == []


def test_five_batches_and_open_transactions_survive_a_clean_and_an_unclean_restart() -> None:
    for clean in (True, False):
        disk = FaultyDisk()
        partition = new_partition(disk)
        for number in range(7):
            send(partition, number)
        send(partition, 0, producer=2, transactional=True)
        partition._log.commit()
        if clean:
            partition._log.close()
        again = open_log(disk.crash_image(1)).topics["t"].partitions[0]
        for number in range(2, 7):
            assert send(again, number) == (number, True)
        assert refused(again, 1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert send(again, 7) == (8, False)
        assert again.last_stable_offset == 7


class Model:
    """The rules in the fewest lines: what Kafka answers."""

    def __init__(self) -> None:
        self.epoch, self.next = -1, 0
        self.last: list[tuple[int, int, int]] = []
        self.end = 0

    def send(self, sequence: int, count: int, epoch: int) -> tuple[int, bool] | ErrorCode:
        if epoch == self.epoch:
            for first, size, offset in self.last[-5:]:
                if (first, size) == (sequence, count):
                    return offset, True
            if self.epoch >= 0 and sequence != self.next:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        elif epoch < self.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        elif self.epoch >= 0 and sequence != 0:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if epoch != self.epoch:
            self.epoch, self.last = epoch, []
        self.next = (sequence + count) % 2**31
        self.last.append((sequence, count, self.end))
        self.end += count
        return self.last[-1][2], False


@given(
    st.integers(0, LAST),
    st.lists(st.tuples(st.integers(-6, 6), st.integers(1, 3), st.sampled_from((0, 0, 0, 1, -1))), max_size=25),
)
def test_any_sequence_of_sends_is_answered_as_the_model_says(start: int, sends: list[tuple[int, int, int]]) -> None:
    partition, model = new_partition(), Model()
    sequence, epoch = start, 5
    for jump, count, step in sends:
        epoch = max(epoch + step, 0)
        sequence = 0 if step > 0 else (model.next if jump in (0, 1, 2) else (sequence + jump) % 2**31)
        expected = model.send(sequence, count, epoch)
        if isinstance(expected, ErrorCode):
            assert refused(partition, sequence, count=count, epoch=epoch) == expected
        else:
            assert send(partition, sequence, count=count, epoch=epoch) == expected
