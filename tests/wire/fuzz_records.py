"""Mutated records for both walkers, and the comparison. `python -m tests.wire.fuzz_records C_KERNEL SEED COUNT`
runs it alone, as the test under the address sanitizer does: this file imports nothing of pytest.
"""

from __future__ import annotations

import ctypes
import importlib.util
import random
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from headwater.testing import batches
from headwater.wire import batch, compression, records

SEEDS_BYTES_MAX = 3000  # long inputs add nothing to what a mutation can reach, and cost the twin
EXTREMES = [
    *(
        b"\0",
        b"\1",
        b"\2",
        b"\3",
        b"\x7e",
        b"\x7f",
        b"\x80\1",
        b"\xfe\xff\xff\xff\x0f",
        b"\xff\xff\xff\xff\x0f",
    ),
    *(b"\xff\xff\xff\xff\x1f", b"\x80\x80\x80\x80\x80\0", b"\xff" * 9 + b"\1", b"\xfe" + b"\xff" * 8 + b"\1"),
    *(b"\xff" * 9 + b"\2", b"\x80" * 10 + b"\0", b"\xff\xff\x7f", b"\x80\x80\x80\1", b"\xff" * 4),
]
LIMITS = [-(2**63), -1, 0, 1, 100, 2**31, 2**62, 2**63 - 1]


def seeds() -> list[tuple[bytes, int]]:
    """(records, count) of every case, and whole batches too: scanning is fuzzed with the same bytes."""
    found = []
    for case in batches.cases():
        if len(case.data) <= SEEDS_BYTES_MAX and len(case.data) >= batch.HEADER_BYTES:
            count = batch.parse_header(case.data).record_count
            codec = case.data[22] & 7
            found.append((case.data, count))
            if case.fault in ("", "policy", "records"):
                body = case.data[batch.HEADER_BYTES :]
                plain = bytes(compression.decompress(codec, body, 2**20)) if codec else body
                found.append((plain[:SEEDS_BYTES_MAX], count))
    return found


def valid_seeds() -> list[tuple[bytes, int]]:
    """Small records of every shape, nothing wrong with them yet."""
    some: list[records.Record] = []
    for case in batches.cases():
        if case.fault == "" and case.records:
            some += (record for record in case.records[:7] if len(record.value or b"") < 300)
    found = []
    for begin in range(0, len(some), 3):
        for count in (1, 2, 9):
            body = bytes(batch.build(some[begin : begin + count]))[batch.HEADER_BYTES :]
            found.append((body, len(some[begin : begin + count])))
    return found


def mutated(seed: int, count: int) -> Iterator[tuple[bytes, int]]:
    chance = random.Random(seed)
    corpus = seeds()
    valid = valid_seeds()
    for _ in range(count):
        data, records_count = chance.choice(chance.choice((corpus, valid)))
        wrong = bytearray(data)
        for _ in range(chance.choice((0, 1, 1, 1, 2, 3, 8))):
            _mutate(wrong, chance, corpus)
        if chance.random() < 0.2:
            records_count = chance.choice((-1, 0, 1, records_count + 1, records_count - 1, 2**31 - 1))
        yield bytes(wrong), records_count


def _mutate(data: bytearray, chance: random.Random, corpus: list[tuple[bytes, int]]) -> None:
    at = chance.randrange(len(data) + 1)
    kind = chance.randrange(6)
    if kind == 0 and at < len(data):
        data[at] ^= 1 << chance.randrange(8)
    elif kind == 1 and at < len(data):
        data[at] = chance.randrange(256)
    elif kind == 2:
        data[at : at + chance.randrange(3)] = chance.choice(EXTREMES)
    elif kind == 3:
        del data[at : at + chance.choice((1, 1, 2, 10, 1000))]
    elif kind == 4:
        other = chance.choice(corpus)[0]
        begin = chance.randrange(len(other) + 1)
        data[at:at] = other[begin : begin + chance.choice((1, 5, 50))]
    else:
        data += data[at : at + 40]


def outcome(function: Any, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except (records.Malformed, ValueError) as error:
        return type(error).__name__, str(error)


def exact(data: bytes) -> Any:
    """The bytes in memory of just their size: a read beyond them is one that the sanitizer sees."""
    return (ctypes.c_ubyte * len(data)).from_buffer_copy(data)


def compare(kernel: ModuleType, data: bytes, count: int, chance: random.Random) -> None:
    """Fails where the twins differ, or where walking and decoding disagree about what is valid."""
    place = exact(data)
    position = chance.choice((0, 0, 0, 0, chance.randrange(-1, len(data) + 2)))
    walked: Any = None
    for consecutive in (True, False):
        walked = outcome(records.walk, data, position, count, consecutive)
        assert outcome(kernel.walk, place, position, count, consecutive) == walked, (data, position, count)
    if walked[0] == records.OK:
        values = list(records.decode(data, position, count, 0, 0))
        times = [value.timestamp for value in values]
        assert len(values) == max(count, 0)
        again = b"".join(records.encode(v.offset, v.timestamp, v.key, v.value, v.headers) for v in values)
        assert list(records.decode(again, 0, len(values), 0, 0)) == values, (data, position, count)
        assert not times or (max(times), min(times)) == (walked[3], walked[5]), (data, position, count)
    elif isinstance(walked[0], int):
        assert outcome(lambda: list(records.decode(data, position, count, 0, 0)))[0] == "Malformed", (
            data,
            count,
        )
    if position >= 0:
        limit = chance.choice(LIMITS)
        scanned = outcome(records.scan_batches, data, limit, position)
        assert outcome(kernel.scan_batches, place, limit, position) == scanned, (data, limit, position)
        if position <= len(data):
            arguments = (position, count, limit)
            found = outcome(records.first_at_or_after, data, *arguments)
            assert outcome(kernel.first_at_or_after, place, *arguments) == found, (data, arguments)


def run(kernel: ModuleType, seed: int, count: int) -> int:
    """How many of the inputs were valid records: both kinds must be there for the run to mean anything."""
    chance = random.Random(seed)
    valid = 0
    for data, records_count in mutated(seed, count):
        compare(kernel, data, records_count, chance)
        valid += records.walk(data, 0, records_count, False)[0] == records.OK
    return valid


def main(path: str, seed: str, count: str) -> None:
    spec = importlib.util.spec_from_file_location("_records", path)
    assert spec is not None and spec.loader is not None
    kernel = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(kernel)
    print(f"seed {seed}: {run(kernel, int(seed), int(count))} of {count} valid, twins agree")


if __name__ == "__main__":
    main(*sys.argv[1:])
