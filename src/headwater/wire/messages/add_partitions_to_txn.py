"""AddPartitionsToTxn: partitions that a transaction is about to write to.

Clients use up to v3, brokers among themselves v4 and v5, which take several transactions. v3 is flexible.
"""

from __future__ import annotations

from headwater.wire.schema import Bool, Int16, Int32, Int64, String, field, message, struct


@struct
class AddPartitionsToTxnTopic:
    name: String = ""
    partitions: list[Int32] = field()


@struct
class AddPartitionsToTxnTransaction:
    transactional_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    verify_only: Bool = False
    topics: list[AddPartitionsToTxnTopic] = field()


@message(key=24, versions=(0, 5), flexible=3)
class AddPartitionsToTxnRequest:
    transactions: list[AddPartitionsToTxnTransaction] = field(since=4)
    v3_and_below_transactional_id: String = field(until=3)
    v3_and_below_producer_id: Int64 = field(until=3)
    v3_and_below_producer_epoch: Int16 = field(until=3)
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = field(until=3)


@struct
class AddPartitionsToTxnPartitionResult:
    partition_index: Int32 = 0
    partition_error_code: Int16 = 0


@struct
class AddPartitionsToTxnTopicResult:
    name: String = ""
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = field()


@struct
class AddPartitionsToTxnResult:
    transactional_id: String = ""
    topic_results: list[AddPartitionsToTxnTopicResult] = field()


@message(key=24, versions=(0, 5), flexible=3)
class AddPartitionsToTxnResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = field(since=4, ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = field(since=4)
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = field(until=3)
