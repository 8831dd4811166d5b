"""DescribeLogDirs: sizes of partitions on disk.

v2 is flexible, v3 has a top-level error, v4 adds the volume's total and usable bytes, v5 says whether it is
cordoned.
"""

from __future__ import annotations

from headwater.wire.schema import Bool, Int16, Int32, Int64, String, field, message, struct


@struct
class DescribableLogDirTopic:
    topic: String = ""
    partitions: list[Int32] = field()


@message(key=35, versions=(1, 5), flexible=2)
class DescribeLogDirsRequest:
    topics: list[DescribableLogDirTopic] | None = field()


@struct
class DescribeLogDirsPartition:
    partition_index: Int32 = 0
    partition_size: Int64 = 0
    offset_lag: Int64 = 0
    is_future_key: Bool = False


@struct
class DescribeLogDirsTopic:
    name: String = ""
    partitions: list[DescribeLogDirsPartition] = field()


@struct
class DescribeLogDirsResult:
    error_code: Int16 = 0
    log_dir: String = ""
    topics: list[DescribeLogDirsTopic] = field()
    total_bytes: Int64 = field(since=4, default=-1, ignorable=True)
    usable_bytes: Int64 = field(since=4, default=-1, ignorable=True)
    is_cordoned: Bool = field(since=5, ignorable=True)


@message(key=35, versions=(1, 5), flexible=2)
class DescribeLogDirsResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = field(since=3, ignorable=True)
    results: list[DescribeLogDirsResult] = field()
