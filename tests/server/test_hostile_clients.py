"""Clients that mean no good, over real sockets, against a real broker process.

Mutated frames of every API and version, noise, absurd lengths and counts, half-open connections, decompression
bombs. All the while a good client is answered; afterwards the broker has said no traceback, holds no more files
than before, and its memory stayed below a stated bound.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from headwater.broker import registry
from headwater.core.processes import LOG_FILE, BrokerProcess, start_broker
from headwater.wire import batch as record_batch
from headwater.wire import compression, frame
from headwater.wire.crc import crc32c
from headwater.wire.messages import request_class
from headwater.wire.messages.create_topics import CreateTopicsResponse
from headwater.wire.messages.fetch import FetchResponse
from headwater.wire.messages.produce import ProduceResponse
from headwater.wire.schema import encode, schema_of
from tests.peers.raw import ConnectionClosed, RawConnection
from tests.peers.requests import create, fetch_from, produce_to
from tests.server.load import create_topic, records, values
from tests.server.running import until
from tests.wire.reference_codec import random_message
from tests.wire.test_fuzz_messages import change, lies_told

MIB = 1 << 20
SEED = 20_261
ANSWER_SECONDS_MAX = 5.0  # of the good client, on a machine with other work; unloaded it is some milliseconds
FRAMES_RSS_MAX = 96 * MIB  # what thousands of hostile frames may leave: topics and groups that they made, codecs
BOMB_RSS_MAX = record_batch.RECORDS_BYTES_MAX + 32 * MIB  # the cap on inflated records, and the request itself
CONNECTION_RSS_MAX = 24 * 1024  # for each connection that stops in the middle of a frame: one step of 4 KiB, and itself


class Witness(threading.Thread):
    """A good client: writes and reads one record after the other, and remembers its longest wait."""

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self.address = address
        self.acknowledged: list[bytes] = []
        self.slowest = 0.0
        self.trouble: list[str] = []
        self._stop_asked = threading.Event()

    def run(self) -> None:
        try:
            with RawConnection(self.address, client_id="good") as connection:
                while not self._stop_asked.wait(0.005):
                    began = time.monotonic()
                    self._once(connection)
                    self.slowest = max(self.slowest, time.monotonic() - began)
        except (OSError, ConnectionClosed, AssertionError) as error:
            self.trouble.append(repr(error))

    def _once(self, connection: RawConnection) -> None:
        number = len(self.acknowledged)
        request = produce_to("witness", records(1, value=b"%d" % number))
        (made,) = connection.ask(request, ProduceResponse, 9).responses[0].partition_responses
        assert (made.error_code, made.base_offset) == (0, number), made
        self.acknowledged.append(b"%d-0" % number)
        (read,) = connection.ask(fetch_from("witness", number), FetchResponse, 12).responses[0].partitions
        assert read.error_code == 0 and read.records, read

    def end(self) -> None:
        before = len(self.acknowledged)
        until(lambda: self.trouble or len(self.acknowledged) > before + 10, "the good client is answered")
        self._stop_asked.set()
        self.join(30)
        assert not self.is_alive() and self.trouble == []
        assert self.slowest < ANSWER_SECONDS_MAX, self.slowest
        assert values(self.address, "witness") == self.acknowledged


class Watched:
    """A broker process with a good client; what it may have become by the end."""

    def __init__(self, data: Path, rss_max: int) -> None:
        self.broker: BrokerProcess = start_broker(data)
        self.address = self.broker.address
        create_topic(self.address, "witness")
        create_topic(self.address, "orders", partitions=2)
        self.process = psutil.Process(self.broker.pid)
        until(lambda: all(each.status == psutil.CONN_LISTEN for each in self.process.net_connections()))
        self.files = self.open_files()
        self.rss, self.rss_max = self.process.memory_info().rss, rss_max
        self.witness = Witness(self.address)

    def __enter__(self) -> Watched:
        self.witness.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self._check()
        finally:
            self.broker.stop()

    def open_files(self) -> int:
        """Sockets and the like; of the log's own files it keeps some open by itself."""
        count = 0
        for name in os.listdir(f"/proc/{self.broker.pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                count += not os.readlink(f"/proc/{self.broker.pid}/fd/{name}").startswith(str(self.broker.data))
        return count

    def grown(self) -> int:
        """By how much its resident memory was ever larger than at the start."""
        for line in Path(f"/proc/{self.broker.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 - int(self.rss)
        raise AssertionError("no VmHWM")

    def _check(self) -> None:
        self.witness.end()
        assert self.broker.is_running()
        until(lambda: self.open_files() <= self.files, f"open files are {self.files} again")
        grown = self.grown()
        print(f"rss +{grown / MIB:.1f} MiB, slowest answer {self.witness.slowest * 1000:.0f} ms")
        assert grown < self.rss_max, f"resident memory grew by {grown / MIB:.0f} MiB"
        said = (self.broker.data / LOG_FILE).read_text()
        events = [json.loads(line)["event"] for line in said.splitlines()]
        assert "bug" not in events and "Traceback" not in said, said[-5000:]
        assert len(events) < 500, "what a peer can cause at will must not fill the disk"


def apis() -> Iterator[tuple[type, int]]:
    registry.load()
    for key, handler in sorted(registry.HANDLERS.items()):
        cls = request_class(key)
        assert cls is not None
        for version in range(handler.since, handler.until + 1):
            yield cls, version


def plausible(cls: type, version: int, chance: random.Random) -> bytearray:
    """A whole frame, with its length: a random message, or a Produce of records that are sound."""
    message: Any = random_message(cls, version, chance)
    if schema_of(cls).key == 0 and version <= 12 and chance.random() < 0.7:
        message = produce_to("orders", records(chance.randrange(1, 5), value=b"v"), partition=chance.randrange(3))
    return bytearray(b"".join(frame.encode_request(message, version, chance.randrange(1 << 31), "hostile")))


def mutated(cls: type, version: int, chance: random.Random) -> bytes:
    """Its length prefix is right, unless by chance: what lies behind is what the decoder must survive."""
    whole = plausible(cls, version, chance)
    body = whole[4:]
    for _ in range(chance.choice((0, 1, 1, 2, 4))):
        change(body, chance)
    length = len(body) if chance.random() < 0.98 else chance.choice((0, -1, 1, len(body) + 3, 2**31 - 1))
    return struct.pack(">i", length) + body


def deliver(address: str, frames: list[bytes]) -> bytes:
    """On one connection, and no more; everything that comes back."""
    host, _, port = address.rpartition(":")
    answer = bytearray()
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        try:
            connection.sendall(b"".join(frames))
            connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(1 << 16):
                answer += piece
        except ConnectionError:
            pass  # closed while we were still sending
    return bytes(answer)


def is_sequence_of_frames(answer: bytes) -> bool:
    at = 0
    while at < len(answer):
        if len(answer) - at < 8:
            return False
        (size,) = struct.unpack_from(">i", answer, at)
        if not 4 <= size <= len(answer) - at - 4:
            return False
        at += 4 + size
    return True


def run_hostile_frames(data: Path, seed: int, each: int, rss_max: int) -> int:
    chance, sent, answered = random.Random(seed), 0, 0
    with Watched(data, rss_max) as watched:
        for cls, version in apis():
            for _ in range(each // 2):
                frames = [mutated(cls, version, chance) for _ in range(2)]  # one that is malformed is the last
                answer = deliver(watched.address, frames)
                assert is_sequence_of_frames(answer), (seed, cls, version, [f.hex() for f in frames])
                sent += len(frames)
                answered += bool(answer)
    print(f"seed {seed}: {sent} frames on {sent // 2} connections, of which {answered} had an answer")
    assert sent // 16 < answered < sent // 2, "the frames are too sound, or too broken, to show anything"
    return sent


@pytest.mark.timeout(180)
def test_mutated_frames_of_every_api_and_version_hurt_nobody(tmp_path: Path) -> None:
    assert run_hostile_frames(tmp_path / "data", SEED, 96, FRAMES_RSS_MAX) > 15_000


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
def test_very_many_mutated_frames_hurt_nobody(tmp_path: Path, seed: int) -> None:
    assert run_hostile_frames(tmp_path / "data", seed, 1000, 4 * FRAMES_RSS_MAX) > 100_000


@pytest.mark.timeout(180)
def test_lies_about_lengths_and_counts_cost_no_memory(tmp_path: Path) -> None:
    """Every length and count of every request set to lies, as the decoder's own tests do, here from outside."""
    chance = random.Random(SEED)
    with Watched(tmp_path / "data", FRAMES_RSS_MAX) as watched:
        for cls, version in apis():
            head = b"".join(frame.encode_request(cls(), version, 5, "liar"))
            body = b"".join(frame.encode_request(cls(), version, 5, "liar"))[4:]
            size = len(body) - len(message_bytes(cls, version))
            lies = [lie.data for lie in lies_told(cls, version) if lie.is_impossible]
            for data in chance.sample(lies, min(len(lies), 6)):
                lying = head[4 : 4 + size] + data
                answer = deliver(watched.address, [struct.pack(">i", len(lying)) + lying])
                assert answer == b"" or is_sequence_of_frames(answer)


def message_bytes(cls: type, version: int) -> bytes:
    return b"".join(encode(cls(), version))


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 100 * MIB + 1, 2**31 - 1])
def test_an_absurd_frame_length_closes_the_connection(tmp_path: Path, length: int) -> None:
    with Watched(tmp_path / "data", 16 * MIB) as watched:
        for _ in range(20):
            with RawConnection(watched.address) as bad:
                bad.send_bytes(struct.pack(">i", length) + bytes(100))
                assert bad.is_closed_by_peer()


def run_half_open(data: Path, count: int) -> None:
    """A third says nothing, a third stops in a length, a third in the middle of a frame that claims 50 MB."""
    beginnings = [b"", b"\0\0", struct.pack(">i", 50 * MIB) + b"\0\x12\0\3"]
    with Watched(data, count * CONNECTION_RSS_MAX) as watched:
        host, _, port = watched.address.rpartition(":")
        waiting: list[socket.socket] = []
        try:
            for number in range(count):
                connection = socket.create_connection((host, int(port)), timeout=20)
                connection.sendall(beginnings[number % 3])
                waiting.append(connection)
            before = len(watched.witness.acknowledged)
            until(lambda: len(watched.witness.acknowledged) > before + 20, "the good client is answered")
        finally:
            for number, connection in enumerate(waiting):
                if number % 2:  # without a farewell: reset
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.close()


@pytest.mark.timeout(120)
def test_half_open_connections_hold_little_and_leave_nothing(tmp_path: Path) -> None:
    run_half_open(tmp_path / "data", 1_000)


@pytest.mark.slow
def test_ten_thousand_half_open_connections_hold_little_and_leave_nothing(tmp_path: Path) -> None:
    run_half_open(tmp_path / "data", 10_000)


@pytest.mark.parametrize("codec", [1, 2, 3, 4], ids=lambda codec: compression.NAMES[codec])
def test_a_decompression_bomb_is_refused_and_costs_no_more_than_the_cap(tmp_path: Path, codec: int) -> None:
    """A thousand times its size where the codec can, else as much as it can; and a lie about the size."""
    bomb = batch_of(codec, compression.compress(codec, bytes(record_batch.RECORDS_BYTES_MAX + 8 * MIB)))
    lying = batch_of(codec, compression.compress(codec, bytes(1000)), lie=True)
    with Watched(tmp_path / "data", BOMB_RSS_MAX + len(bomb)) as watched, RawConnection(watched.address) as bad:
        configs = {"max.message.bytes": str(16 * MIB)}
        made = bad.ask(create("bombs", configs=configs), CreateTopicsResponse, 6)
        assert made.topics[0].error_code == 0
        for data in [bomb] * 6 + [lying] * 6:
            answer = bad.ask(produce_to("bombs", data), ProduceResponse, 9)
            assert answer.responses[0].partition_responses[0].error_code != 0
        print(f"{compression.NAMES[codec]}: {len(bomb)} bytes")
        assert values(watched.address, "bombs") == []
        # The same connection goes on, and sound data of this codec is taken.
        good = record_batch.build([(b"k", b"v" * 1000)], codec=codec, now_ms=time.time_ns() // 1_000_000)
        answer = bad.ask(produce_to("bombs", good), ProduceResponse, 9)
        assert answer.responses[0].partition_responses[0].error_code == 0


def batch_of(codec: int, compressed: bytes, *, lie: bool = False) -> bytes:
    """A batch whose header is sound and whose data is what is given; ``lie``: it states a size of nearly 2 GiB."""
    if lie:
        stated = {
            1: lambda data: data[:-4] + b"\xff\xff\xff\x7f",
            2: lambda data: data[:16] + struct.pack(">i", 2**31 - 1) + b"\xff\xff\xff\xff\x07" + data[20:],
            3: lambda data: data,
            4: lambda data: b"\x28\xb5\x2f\xfd\xa0\xff\xff\xff\x7f" + data[6:],
        }  # fmt: skip
        compressed = stated[codec](compressed)
    whole = record_batch.build([(b"k", b"v")], now_ms=time.time_ns() // 1_000_000)
    data = bytearray(whole[: record_batch.HEADER_BYTES]) + compressed
    struct.pack_into(">i", data, 8, len(data) - 12)
    struct.pack_into(">h", data, 21, codec)
    struct.pack_into(">I", data, 17, crc32c(memoryview(data)[21:]))
    return bytes(data)


# --- the checks themselves ------------------------------------------------------------------------------------


@pytest.mark.parametrize("plant", ["memory", "file", "bug", "silence"])
def test_the_watch_notices(tmp_path: Path, plant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if plant == "file":
        monkeypatch.setattr("tests.server.running.SECONDS", 1.0)  # it waits in vain
    with pytest.raises(AssertionError), Watched(tmp_path / "data", MIB if plant == "memory" else 64 * MIB) as watched:
        if plant == "memory":
            with RawConnection(watched.address) as connection:
                connection.ask(produce_to("orders", records(1, value=bytes(900_000))), ProduceResponse, 9)
                connection.send_bytes(struct.pack(">i", 60 * MIB) + bytes(40 * MIB))
                until(lambda: watched.grown() > MIB, "it took memory")
        elif plant == "file":
            watched.files -= 1
        elif plant == "bug":
            with open(watched.broker.data / LOG_FILE, "a") as file:
                file.write('{"event": "bug"}\n')
        else:
            watched.witness.slowest = 60.0
