"""Cutting a byte stream into frames, without any socket."""

from __future__ import annotations

import random

import pytest

from headwater.server.budget import Budget
from headwater.server.frames import SCRATCH_BYTES, STEP_BYTES, TIGHT_BYTES, BadLength, FrameReader
from tests.server.running import framed

BYTES_MAX = 8 << 20


def reader(limit: int = 64 << 20) -> tuple[FrameReader, Budget]:
    budget = Budget(limit)
    return FrameReader(memoryview(bytearray(SCRATCH_BYTES)), budget, BYTES_MAX), budget


def feed(frames: FrameReader, data: bytes) -> list[memoryview]:
    """As a transport does: as much as there is room for, again and again."""
    found: list[memoryview] = []
    while data and not frames.wanted:
        room = frames.get_buffer()
        count = min(len(room), len(data))
        room[:count] = data[:count]
        found += frames.received(count)
        data = data[count:]
    return found


def test_frames_are_the_same_wherever_the_stream_is_cut() -> None:
    stream = framed(b"a") + framed(b"bc" * 20) + framed(b"d" * 7)
    for cut in range(len(stream) + 1):
        frames, _ = reader()
        found = feed(frames, stream[:cut]) + feed(frames, stream[cut:])
        assert [bytes(frame) for frame in found] == [b"a", b"bc" * 20, b"d" * 7], cut
        assert not frames.partial


def test_frames_come_out_byte_by_byte() -> None:
    frames, _ = reader()
    found = [frame for byte in framed(b"hello") + framed(b"x") for frame in feed(frames, bytes([byte]))]
    assert [bytes(frame) for frame in found] == [b"hello", b"x"]


@pytest.mark.parametrize("seed", range(20))
def test_frames_of_all_sizes_survive_random_cuts(seed: int) -> None:
    chance = random.Random(seed)
    sizes = [1, 3, 4, 5, STEP_BYTES - 1, STEP_BYTES, STEP_BYTES + 1, SCRATCH_BYTES, SCRATCH_BYTES + 1, 3 << 20]
    payloads = [chance.randbytes(chance.choice(sizes)) for _ in range(8)]
    stream = b"".join(map(framed, payloads))
    frames, budget = reader()
    found: list[memoryview] = []
    while stream:
        count = chance.choice([1, 2, 3, 4, 100, 65536, 262144, 1 << 20])
        found += feed(frames, stream[:count])
        stream = stream[count:]
    assert [bytes(frame) for frame in found] == payloads
    assert budget.taken == sum(map(len, payloads))


def test_a_frame_is_writable_and_nobody_else_uses_its_memory() -> None:
    frames, _ = reader()
    small, large = feed(frames, framed(b"s" * 10) + framed(b"l" * (STEP_BYTES * 3)))
    feed(frames, framed(b"z" * 1000) + framed(b"y" * (STEP_BYTES * 3)))
    assert bytes(small) == b"s" * 10
    assert bytes(large) == b"l" * (STEP_BYTES * 3)
    small[0:1] = large[0:1] = b"!"
    assert not small.readonly and not large.readonly


@pytest.mark.parametrize("size", [-(2**31), -2, -1, 0, BYTES_MAX + 1, 2**31 - 1])
def test_a_length_that_no_frame_has_is_refused_before_anything_is_taken(size: int) -> None:
    frames, budget = reader()
    with pytest.raises(BadLength, match=str(size)):
        feed(frames, size.to_bytes(4, "big", signed=True))
    assert budget.taken == 0


def test_four_bytes_make_us_allocate_one_step_and_no_more() -> None:
    frames, budget = reader()
    feed(frames, BYTES_MAX.to_bytes(4, "big"))
    assert budget.taken == STEP_BYTES
    assert len(frames.get_buffer()) == STEP_BYTES


def test_memory_grows_with_what_arrives() -> None:
    frames, budget = reader()
    stream = framed(b"x" * BYTES_MAX)
    arrived = 0
    while arrived < len(stream):
        feed(frames, stream[arrived : arrived + 1000])
        arrived += 1000
        assert budget.taken <= max(STEP_BYTES, 16 * arrived)


def test_a_frame_for_which_there_is_no_memory_waits_and_comes_out_whole() -> None:
    frames, budget = reader(limit=100)
    assert budget.take(90)
    found = feed(frames, framed(b"a" * 5) + framed(b"b" * 50) + framed(b"c" * 3))
    assert [bytes(frame) for frame in found] == [b"a" * 5]
    assert frames.wanted == 50
    granted: list[bool] = []
    budget.wait(frames.wanted, lambda: granted.append(True), begun=frames.begun)
    assert len(frames.get_buffer()) == TIGHT_BYTES, "while memory is short, reads are small"
    budget.give(90)
    assert granted
    assert [bytes(frame) for frame in frames.resume()] == [b"b" * 50, b"c" * 3]
    assert budget.taken == 58


@pytest.mark.parametrize("seed", range(20))
def test_many_connections_share_a_small_budget_and_all_finish(seed: int) -> None:
    """Whatever the pieces: never a full buffer that wants to be read into, never all waiting."""
    chance = random.Random(seed)
    budget = Budget(1 << 20)
    scratch = memoryview(bytearray(SCRATCH_BYTES))
    streams = [framed(chance.randbytes(chance.choice([10, 70_000, 300_000, 3 << 20]))) * 2 for _ in range(6)]
    readers = [FrameReader(scratch, budget, BYTES_MAX) for _ in streams]
    waiting: set[int] = set()
    found: list[list[bytes]] = [[] for _ in streams]

    def took(number: int, frames: list[memoryview]) -> None:
        found[number] += [bytes(frame) for frame in frames]
        for frame in frames:
            budget.give(len(frame))
        if readers[number].wanted and number not in waiting:
            waiting.add(number)
            budget.wait(readers[number].wanted, lambda: granted(number), begun=readers[number].begun)

    def granted(number: int) -> None:
        waiting.discard(number)
        took(number, readers[number].resume())

    while any(streams):
        ready = [number for number, stream in enumerate(streams) if stream and number not in waiting]
        assert ready, "all of them wait"
        number = chance.choice(ready)
        room = readers[number].get_buffer()
        assert len(room)
        count = min(len(room), len(streams[number]), chance.choice([1, 3000, 65_536, 1 << 20]))
        room[:count] = streams[number][:count]
        streams[number] = streams[number][count:]
        took(number, readers[number].received(count))
    assert [len(frames) for frames in found] == [2] * 6
    assert budget.taken == 0


def test_closing_in_the_middle_gives_everything_back() -> None:
    stream = framed(b"x" * 500_000)
    for cut in (0, 1, 3, 4, 5, 65_000, 66_000, 200_000, 499_999):
        frames, budget = reader()
        feed(frames, stream[:cut])
        frames.close()
        assert budget.taken == 0, cut
