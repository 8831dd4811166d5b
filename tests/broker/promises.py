"""What a broker has told its clients, and what must therefore be there after a power cut.

`told` is what was answered, `asked` what was sent and may have happened. A check opens nothing: it asks a broker,
as a client would, compares, and takes over what it found (an answer that was lost is no longer in doubt then).

What is checked: acknowledged records are there, byte by byte, at their offsets; what a reader was given is still
there; offsets have no holes; nothing stands twice; log starts and group offsets lie between what was told and what
was asked; a transaction is seen whole or not at all; producers' repetitions are recognized; members go on; leader
epochs moved.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from headwater.log import Partition
from headwater.wire import batch as record_batch
from headwater.wire.errors import ErrorCode
from headwater.wire.messages.heartbeat import HeartbeatRequest
from headwater.wire.messages.init_producer_id import InitProducerIdRequest
from tests.broker.conftest import Client, World, produce_request
from tests.broker.members import committed

Place = tuple[bytes, int]  # topic id, partition
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
KEPT = 5  # batches of a producer whose repetition is recognized


class Stored(NamedTuple):
    base: int
    last: int
    content: bytes  # the whole batch
    tag: bytes  # what makes it unlike every other; empty for a marker


def content_of(batch: bytes) -> bytes:
    """Of a batch what the broker must not change: all but base offset, leader epoch."""
    return batch[8:12] + batch[16:]


def tag_of(batch: bytes) -> bytes:
    first = next(iter(record_batch.records(memoryview(batch))))
    return bytes(first.value or b"").partition(b"|")[0]


def stored_in(records: Any) -> list[Stored]:
    whole, found = bytes(records or b""), []
    for position, header in record_batch.headers(whole):
        one = whole[position : position + header.size]
        tag = b"" if header.is_control else tag_of(one)
        found.append(Stored(header.base_offset, header.last_offset, one, tag))
    return found


def transactions_in(answer: Any) -> set[int]:
    """The numbers of the transactions that a read_committed consumer takes from this answer."""
    aborted = sorted((each.first_offset, each.producer_id) for each in answer.aborted_transactions or ())
    dropped: set[int] = set()
    numbers: set[int] = set()
    whole = bytes(answer.records or b"")
    for position, header in record_batch.headers(whole):
        while aborted and aborted[0][0] <= header.last_offset:
            dropped.add(aborted.pop(0)[1])
        if header.is_control:
            dropped.discard(header.producer_id)
        elif header.is_transactional and header.producer_id not in dropped:
            numbers.add(int(tag_of(whole[position : position + header.size]).rpartition(b":")[2]))
    return numbers


class Sequenced:
    """An idempotent producer."""

    def __init__(self, producer_id: int, epoch: int) -> None:
        self.producer_id, self.epoch = producer_id, epoch
        self.next: dict[int, int] = {}  # partition: sequence
        self.answered: dict[int, list[tuple[bytes, int]]] = {}  # partition: the last batches and their offsets
        self.unanswered: list[tuple[int, bytes]] = []  # (partition, batch), oldest first


class Owner:
    """A transactional producer."""

    def __init__(self, bump: bool) -> None:
        self.bump = bump  # the second protocol (KIP-890)
        self.producer_id = self.epoch = -1
        self.next: dict[int, int] = {}


class Transaction:
    def __init__(self, owner: str, number: int) -> None:
        self.owner, self.number = owner, number
        self.offsets: dict[int, int] = {}  # partition: the last of its batch
        self.group_offset = False
        self.outcome = "open"  # open | commit? | abort? | committed | aborted

    @property
    def may_be_seen(self) -> bool:
        return self.outcome in ("commit?", "committed")


class Promises:
    """Transactions and idempotent producers write to the topic `home`, which is never deleted."""

    def __init__(self, home: str) -> None:
        self.home = home
        self.names: dict[bytes, str] = {}  # topics, by id
        self.deletion_asked: set[bytes] = set()
        self.deleted: set[bytes] = set()
        self.creation_asked: set[str] = set()
        self.records: dict[Place, dict[int, bytes]] = {}
        self.seen: dict[Place, dict[int, bytes]] = {}
        self.seen_transactions: set[int] = set()
        self.start_told: dict[Place, int] = {}
        self.start_asked: dict[Place, int] = {}
        self.epochs: dict[Place, int] = {}
        self.offset_told: dict[tuple[str, int], int] = {}  # (group, partition of home)
        self.offset_asked: dict[tuple[str, int], int] = {}
        self.member: tuple[str, str, int] | None = None  # group, member id, generation
        self.sequenced: dict[str, Sequenced] = {}
        self.owners: dict[str, Owner] = {}
        self.transactions: dict[int, Transaction] = {}
        self.producer_ids: set[int] = set()

    # what clients are told

    def acknowledged(self, place: Place, base: int, batch: bytes) -> None:
        self.records.setdefault(place, {})[base] = content_of(batch)

    def given(self, place: Place, answer: Any, isolation: int) -> None:
        """A reader got this."""
        seen = self.seen.setdefault(place, {})
        for one in stored_in(answer.records):
            before = seen.setdefault(one.base, one.content)
            assert before == one.content, f"{self.named(place)} offset {one.base} was read twice, and differently"
        if isolation == READ_COMMITTED:
            for number in transactions_in(answer):
                assert self.transactions[number].may_be_seen, f"transaction {number} was read, and nobody committed it"
                self.seen_transactions.add(number)

    def new_producer_id(self, producer_id: int) -> None:
        assert producer_id not in self.producer_ids, f"producer id {producer_id} was given twice"
        self.producer_ids.add(producer_id)

    def named(self, place: Place) -> str:
        return f"{self.names.get(place[0], '?')}-{place[1]}"

    # the check

    def check(self, world: World, *, crashed: bool) -> None:
        """AssertionError if a promise is broken; afterwards `self` is of the broker in `world`."""
        assert not world.log.damage, [str(damage) for damage in world.log.damage]
        client = world.client("checker")
        self._check_topics(world)
        for topic in world.log.topics.values():
            if not topic.name.startswith("__"):
                for partition in topic.partitions:
                    self._check_partition(client, partition, crashed=crashed)
        self._check_seen_transactions(client)
        self._check_group(client)
        self._check_transactions(world, client)
        self._check_producers(world, client)
        assert not world.bugs, world.bugs

    def _check_topics(self, world: World) -> None:
        there = {topic.topic_id: name for name, topic in world.log.topics.items() if not name.startswith("__")}
        for topic_id, name in self.names.items():
            if topic_id in self.deleted:
                assert topic_id not in there, f"the deleted topic {name} is back"
            elif topic_id not in self.deletion_asked:
                assert topic_id in there, f"topic {name} is gone"
        for topic_id, name in there.items():
            assert topic_id in self.names or name in self.creation_asked, f"nobody made topic {name}"
        self.deleted |= self.deletion_asked - set(there)
        self.deletion_asked &= set(there)
        self.names.update(there)

    def _check_partition(self, client: Client, partition: Partition, *, crashed: bool) -> None:
        place = (partition.topic.topic_id, partition.index)
        start, end = partition.log_start_offset, partition.log_end_offset
        where = f"{self.named(place)} ({start}..{end})"
        assert partition.high_watermark == end
        assert self.start_told.get(place, 0) <= start <= self.start_asked.get(place, 0), f"{where}: log start"
        stored = read_all(client, partition)
        expected = stored[0].base if stored else end
        assert expected <= start
        for one in stored:
            assert one.base == expected, f"{where}: a hole before {one.base}"
            expected = one.last + 1
        assert expected == end, f"{where}: it ends at {expected}"
        there = {one.base: one for one in stored}
        for base, content in self.records.get(place, {}).items():
            if base >= start:
                assert base in there, f"{where}: the acknowledged batch at {base} is gone"
                assert content_of(there[base].content) == content, f"{where}: another batch at {base}"
        for base, content in self.seen.get(place, {}).items():
            if base >= start:
                same = base in there and there[base].content == content
                assert same, f"{where}: what was read at {base} is not there"
        tags = [one.tag for one in stored if one.tag]
        assert len(tags) == len(set(tags)), f"{where}: stored twice: {sorted(t for t in tags if tags.count(t) > 1)}"
        before = self.epochs.get(place)
        if crashed and before is not None:
            assert partition.leader_epoch > before, f"{where}: the leader epoch did not move"
            assert partition.end_offset_for_epoch(before) == (before, end) or start == end
        self.epochs[place] = partition.leader_epoch
        self.start_told[place] = start

    def _home(self, client: Client) -> list[Partition]:
        topic = client.world.log.topics.get(self.home)
        return [] if topic is None else topic.partitions

    def _committed_numbers(self, client: Client) -> dict[int, set[int]]:
        return {partition.index: committed_in(client, partition) for partition in self._home(client)}

    def _check_seen_transactions(self, client: Client) -> None:
        """What is read before anything is cleared up."""
        for numbers in self._committed_numbers(client).values():
            for number in numbers:
                transaction = self.transactions[number]
                assert transaction.may_be_seen, f"transaction {number} is read ({transaction.outcome})"

    def _check_group(self, client: Client) -> None:
        for (group, partition), asked in self.offset_asked.items():
            found = committed(client, group, self.home, partition)
            told = self.offset_told.get((group, partition), -1)
            assert told <= found <= asked, f"group {group} is at {found}, told {told}, asked {asked}"
            self.offset_told[group, partition] = found
        if self.member is not None:
            group, member_id, generation = self.member
            request = HeartbeatRequest(group_id=group, generation_id=generation, member_id=member_id)
            assert client.ask(request, 3).error_code == 0, "the member is not known any more"

    def _check_transactions(self, world: World, client: Client) -> None:
        for name, owner in self.owners.items():
            take_ownership(client, name, owner)
        visible = self._committed_numbers(client)
        starts = {p.index: p.log_start_offset for p in self._home(client)}
        last = dict.fromkeys(self.owners, -1)
        for number, transaction in sorted(self.transactions.items()):
            places = {index for index, offset in transaction.offsets.items() if offset >= starts[index]}
            seen = {index for index, numbers in visible.items() if number in numbers}
            what = f"transaction {number} ({transaction.outcome}) is read in {seen} of {places}"
            assert seen in (set(), places), f"half of it: {what}"
            if transaction.outcome == "committed" or number in self.seen_transactions:
                assert seen == places, what
                transaction.outcome = "committed"
            elif transaction.outcome == "commit?":
                group = committed(client, group_of(transaction.owner), self.home, stable=True)
                whole = bool(seen) or (not places and transaction.group_offset and group == number)
                transaction.outcome = "committed" if whole else "aborted"
            else:
                assert not seen, what
                transaction.outcome = "aborted"
            if transaction.outcome == "committed" and transaction.group_offset:
                last[transaction.owner] = number
        for name, number in last.items():
            group = committed(client, group_of(name), self.home, stable=True)
            known = self.transactions.get(group)
            what = f"group offset of {name} is {group} ({known and known.outcome}), its last commit was {number}"
            assert group == number, what

    def _check_producers(self, world: World, client: Client) -> None:
        """Answers were lost, so clients send again: what is there is found, what is not is taken."""
        for producer in self.sequenced.values():
            self.send_again(client, producer)
            for partition, batches in producer.answered.items():
                end = world.log.topics[self.home].partitions[partition].log_end_offset
                for batch, offset in batches:
                    answer = client.produce(self.home, batch, partition)
                    found = (ErrorCode(answer.error_code), answer.base_offset)
                    assert found == (0, offset), f"a repetition of {tag_of(batch)!r} at {offset}: {found}"
                assert world.log.topics[self.home].partitions[partition].log_end_offset == end, "appended again"
        for home in self._home(client):
            tags = [one.tag for one in read_all(client, home) if one.tag]
            assert len(tags) == len(set(tags)), "a repetition was stored twice"

    def send_again(self, client: Client, producer: Sequenced) -> None:
        topic_id = client.world.log.topics[self.home].topic_id if producer.unanswered else b""
        for partition, batch in producer.unanswered:
            answer = client.produce(self.home, batch, partition)
            assert answer.error_code == 0, f"{tag_of(batch)!r} again: {ErrorCode(answer.error_code)!r}"
            self.sequence_answered(producer, (topic_id, partition), batch, answer.base_offset)
        producer.unanswered = []

    def sequence_answered(self, producer: Sequenced, place: Place, batch: bytes, offset: int) -> None:
        self.acknowledged(place, offset, batch)
        answered = producer.answered.setdefault(place[1], [])
        if (batch, offset) not in answered:
            answered.append((batch, offset))
            del answered[:-KEPT]


def group_of(owner: str) -> str:
    return f"of-{owner}"


def take_ownership(client: Client, name: str, owner: Owner) -> None:
    request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=900_000)
    for _ in range(3):
        answer = client.ask(request, 4)
        if answer.error_code != ErrorCode.CONCURRENT_TRANSACTIONS:
            break
    assert answer.error_code == 0, ErrorCode(answer.error_code)
    owner.producer_id, owner.epoch, owner.next = answer.producer_id, answer.producer_epoch, {}


def fetch(client: Client, partition: Partition, isolation: int, offset: int | None = None) -> Any:
    at = partition.log_start_offset if offset is None else offset
    answer = client.fetch(partition.topic.name, at, partition.index, isolation_level=isolation, max_bytes=1 << 22)
    assert answer.error_code == 0, ErrorCode(answer.error_code)
    return answer


def read_all(client: Client, partition: Partition) -> list[Stored]:
    found: list[Stored] = []
    at = partition.log_start_offset
    while at < partition.high_watermark:
        more = stored_in(fetch(client, partition, READ_UNCOMMITTED, at).records)
        assert more, f"{partition}: nothing is given at {at}"
        found += more
        at = more[-1].last + 1
    return found


def committed_in(client: Client, partition: Partition) -> set[int]:
    """The transactions that a read_committed consumer sees, as far as it is let."""
    numbers: set[int] = set()
    at = partition.log_start_offset
    while True:
        answer = fetch(client, partition, READ_COMMITTED, at)
        stored = stored_in(answer.records)
        if not stored:
            assert at >= partition.last_stable_offset, f"{partition}: nothing is given at {at}"
            return numbers
        numbers |= transactions_in(answer)
        at = stored[-1].last + 1


def produce(home: str, batch: bytes, partition: int, **fields: Any) -> Any:
    """Of a copy: the broker stamps the batch that it is given."""
    return produce_request(home, bytes(batch), partition, **fields)
