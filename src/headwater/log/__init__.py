"""The durable partitioned log. Synchronous; one thread ("the loop") owns all of its memory.

    changes (append, create_topic, …)  -> queue            [loop]
    take_window -> write_window -> window_durable          [loop, journal thread, loop]   now it is acknowledged
    take_segment_work -> write_segments -> segments_written [loop, segment thread, loop]  now it is in Kafka's files
    commit() does all of it at once, for tests, tools and the end
"""
from __future__ import annotations

from headwater.log.damage import Damage, RecoveryReport
from headwater.log.log import Log
from headwater.log.lookup import TimeAnswer
from headwater.log.partition import Appended, Partition
from headwater.log.reads import ReadJob, Slice
from headwater.log.settings import LogSettings
from headwater.log.topic import Topic
from headwater.log.txn_index import AbortedTransaction

__all__ = [
    "AbortedTransaction",
    "Appended",
    "Damage",
    "Log",
    "LogSettings",
    "Partition",
    "ReadJob",
    "RecoveryReport",
    "Slice",
    "TimeAnswer",
    "Topic",
]
