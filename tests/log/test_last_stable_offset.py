"""What read_committed may see, where transactions and deletions meet."""

from __future__ import annotations

from headwater.testing.faulty_disk import FaultyDisk
from tests.log.workload import open_log


def test_the_last_stable_offset_is_never_before_the_log_start() -> None:
    # Apache Kafka 4.3.1 answers 5 too: a consumer that is sent to 0 would find nothing there, for ever.
    log = open_log(FaultyDisk())
    partition = log.create_topic("t", 1, {}).partitions[0]
    partition.append_records([(b"k", b"v")], producer_id=7, producer_epoch=0, transactional=True)
    for _ in range(10):
        partition.append_records([(b"k", b"v")])
    log.commit()
    assert partition.last_stable_offset == 0
    partition.delete_records(5)
    log.commit()
    assert (partition.last_stable_offset, partition.high_watermark) == (5, 11)
