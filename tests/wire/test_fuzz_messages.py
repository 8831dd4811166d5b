"""Hostile bytes: every length and count of every message set to lies, frames with bytes changed, and plain noise.

Whatever comes, the answer is a message or `Malformed`, and little is allocated for it. The seed is in the failure.
"""

from __future__ import annotations

import random
import time
import tracemalloc
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from headwater.wire.frame import decode_request, request_header
from headwater.wire.messages import APIS, request_class
from headwater.wire.schema import Malformed, decode, encode, schema_of
from tests.wire.reference_codec import Reference, every_class, every_version, random_message

SEED = 4711
LIES = (-2, -1, 0, 1, 127, 128, 32_767, 32_768, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, (1 << 63) - 2)
KEPT_BYTES_MAX = 64 * 1024  # for a message of some hundred bytes that is refused
FRAMES = 100_000


def is_refused(cls: type, version: int, data: bytes | bytearray) -> bool:
    """Whether it is; any other exception fails the test."""
    try:
        decode(cls, version, memoryview(data))
    except Malformed:
        return True
    return False


def full_message(cls: type, version: int, seed: int) -> object:
    """Of some random messages the one with the most lengths and counts."""
    chance = random.Random(seed)
    made = [random_message(cls, version, chance) for _ in range(8)]
    return max(made, key=lambda each: len(Reference(each, version).marks))


class Lie(NamedTuple):
    what: str  # the field whose length or count it is
    number: int
    is_impossible: bool
    data: bytes


def lies_told(cls: type, version: int) -> Iterator[Lie]:
    """One message, again and again with one length or count changed.

    A small number may make another message; one larger than all bytes cannot, nor null where none may be.
    """
    message = full_message(cls, version, SEED + version)
    true = Reference(message, version)
    for place, (what, largest, nullable) in enumerate(true.marks):
        for number in (*LIES, len(true.bytes) + 1):
            data = Reference(message, version, {place: number}).bytes
            if number <= largest and data != true.bytes:
                yield Lie(what, number, number > len(data) or (number < 0 and not nullable), data)


@pytest.mark.parametrize("cls", every_class(), ids=lambda cls: cls.__name__)
def test_no_lie_about_a_length_or_a_count_gets_past_the_decoder(cls: type) -> None:
    low, high = schema_of(cls).versions
    for version in range(low, high + 1):
        for lie in lies_told(cls, version):
            accepted = not is_refused(cls, version, lie.data)
            assert not (accepted and lie.is_impossible), (SEED, version, lie)


def test_refusing_a_lie_allocates_little() -> None:
    for cls, version in every_version():
        cases = [lie.data for lie in lies_told(cls, version) if lie.number > 127]
        decode(cls, version, memoryview(b"".join(encode(cls(), version))))  # compiles the decoder
        tracemalloc.start()
        for data in cases[:: max(1, len(cases) // 12)]:
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            is_refused(cls, version, data)
            _, peak = tracemalloc.get_traced_memory()
            assert peak - before < KEPT_BYTES_MAX, (SEED, cls, version, data.hex())
        tracemalloc.stop()


def test_a_megabyte_that_claims_to_be_full_of_elements_is_refused_at_once() -> None:
    noise = {byte: bytes([byte]) * (1 << 20) for byte in (0x00, 0x01, 0x02, 0x7F, 0x80, 0xFF)}
    for cls in every_class():
        version = schema_of(cls).versions[1]
        for data in noise.values():
            began = time.process_time()
            is_refused(cls, version, data)
            assert time.process_time() - began < 1.0


def test_a_message_that_is_cut_anywhere_is_refused() -> None:
    for cls, version in every_version():
        data = b"".join(encode(full_message(cls, version, SEED), version))
        step = max(1, len(data) // 40)
        assert all(is_refused(cls, version, data[:end]) for end in range(0, len(data), step)), (cls, version)


def test_changed_bytes_give_malformed_or_a_message_that_comes_back() -> None:
    chance = random.Random(SEED)
    kinds = list(every_version())
    whole = [b"".join(encode(full_message(cls, version, SEED), version)) for cls, version in kinds]
    accepted = 0
    for _ in range(FRAMES):
        which = chance.randrange(len(kinds))
        data = bytearray(whole[which])
        for _ in range(chance.choice([1, 1, 2, 4])):
            change(data, chance)
        cls, version = kinds[which]
        if not is_refused(cls, version, data):
            accepted += 1
            message = decode(cls, version, memoryview(data))
            again = memoryview(b"".join(encode(message, version)))
            assert decode(cls, version, again) == message, (SEED, cls, version, data.hex())
    assert FRAMES * 0.05 < accepted < FRAMES * 0.95  # the changes are neither too small nor too large to tell


def change(data: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(data) + 1)
    kind = chance.randrange(4)
    if kind == 0 and at < len(data):
        data[at] = chance.choice([0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)])
    elif kind == 1:
        data[at:at] = chance.randbytes(chance.choice([1, 2, 4, 8]))
    elif kind == 2:
        del data[at : at + chance.choice([1, 2, 4, 16])]
    else:
        data[at : at + 4] = chance.choice([b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x80\x00\x00\x00", b"\x00" * 4])


def test_noise_as_a_request_gives_a_message_or_malformed() -> None:
    chance = random.Random(SEED)
    keys = [*APIS, 4, 999]
    for _ in range(FRAMES // 4):
        key = chance.choice(keys)
        head = key.to_bytes(2, "big") + chance.randrange(-1, 20).to_bytes(2, "big", signed=True)
        frame = memoryview(head + chance.choice([b"\x00", b""]) + chance.randbytes(chance.randrange(80)))
        try:
            header = request_header(frame)
            cls = request_class(header.api_key)
            assert cls is not None
            decode_request(header, frame, cls)
        except Malformed:
            continue
