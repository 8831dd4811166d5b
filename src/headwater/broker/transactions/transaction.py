"""One transactional id: who owns it, which state it is in, and which states may follow.

The table is Kafka's. Complete states are reached in the same frame of the journal as their Prepare states,
so a Prepare is seen only in files that Apache Kafka wrote.
"""

from __future__ import annotations

from enum import IntEnum

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_TIMESTAMP = -1
EPOCH_MAX = 32767
EPOCH_EXHAUSTED = EPOCH_MAX - 1  # the last one is kept for fencing

TopicPartition = tuple[str, int]


class State(IntEnum):
    """The numbers are at rest, the names on the wire."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def shown(self) -> str:
        return NAMES[self]


EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT, DEAD, PREPARE_EPOCH_FENCE = (
    State
)
NAMES: dict[State, str] = {state: state.name.title().replace("_", "") for state in State}
BY_NAME: dict[str, State] = {name: state for state, name in NAMES.items()}
FROM: dict[State, tuple[State, ...]] = {  # target: where it may come from
    EMPTY: (EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT),
    ONGOING: (ONGOING, EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT),
    PREPARE_COMMIT: (ONGOING,),
    # The second protocol may abort what never began: its client cannot know.
    PREPARE_ABORT: (ONGOING, EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT),
    COMPLETE_COMMIT: (PREPARE_COMMIT,),
    COMPLETE_ABORT: (PREPARE_ABORT,),
    DEAD: (EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT),
    PREPARE_EPOCH_FENCE: (ONGOING,),
}
MAY_EXPIRE = frozenset((EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT))


class Transaction:
    """State of one transactional id. Who may change it is decided in ``coordinator`` and ``ending``."""

    __slots__ = (
        "client_version", "deadline_ms", "last_producer_epoch", "last_update_ms", "next_producer_id",
        "partitions", "previous_producer_id", "producer_epoch", "producer_id", "start_ms", "state",
        "timeout_ms", "transactional_id",
    )  # fmt: skip

    def __init__(self, transactional_id: str, producer_id: int, timeout_ms: int, now_ms: int) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.previous_producer_id = NO_PRODUCER_ID
        self.next_producer_id = NO_PRODUCER_ID  # takes over when an exhausted epoch's transaction is complete
        self.producer_epoch = NO_PRODUCER_EPOCH
        self.last_producer_epoch = NO_PRODUCER_EPOCH  # not at rest: a retry across a restart is refused
        self.timeout_ms = timeout_ms
        self.state = EMPTY
        self.partitions: dict[TopicPartition, None] = {}
        self.start_ms = NO_TIMESTAMP  # wall clock, as it is written
        self.last_update_ms = now_ms
        self.deadline_ms = 0  # monotonic: the wall clock may jump
        self.client_version = 0

    def become(self, state: State, now_ms: int) -> None:
        assert self.state in FROM[state], (
            f"transaction {self.transactional_id}: {self.state.shown} may not become {state.shown}"
        )
        self.state = state
        self.last_update_ms = now_ms

    @property
    def epoch_exhausted(self) -> bool:
        return self.producer_epoch >= EPOCH_EXHAUSTED

    @property
    def is_completing(self) -> bool:
        return self.state in (PREPARE_COMMIT, PREPARE_ABORT)
