"""The codecs: what goes in comes out, nothing more than the cap comes out, and lies cost no memory."""

from __future__ import annotations

import functools
import gzip
import random
import tracemalloc
from collections.abc import Callable

import cramjam
import pytest

from headwater.testing import batches
from headwater.testing.batches import T, around
from headwater.wire import batch, compression
from headwater.wire.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD, TooLarge, Undecodable
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.records import encode

MIB = 1024 * 1024
CODECS = (NONE, GZIP, SNAPPY, LZ4, ZSTD)
BOMBS = {GZIP: 1000, SNAPPY: 20, LZ4: 200, ZSTD: 1000}  # the most, about, that a byte of each can become


def samples() -> list[bytes]:
    noise = random.Random(3)
    lengths = [1, 2, 61, 1000, 16 * 1024, 32 * 1024, 32 * 1024 + 1, 65_536, 100_000, 700_001]
    found = [b"ab" * (length // 2) + b"x" * (length % 2) for length in lengths]
    found += [noise.randbytes(length) for length in lengths]
    return [*found, b"", bytes(5 * MIB)]


def peak_of(action: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("codec", CODECS)
def test_what_goes_in_comes_out(codec: int) -> None:
    for data in samples():
        if not data and codec == SNAPPY:
            continue  # no block: a batch of no record is refused before
        for source in (data, bytearray(data), memoryview(data)):
            assert compression.decompress(codec, compression.compress(codec, source), len(data)) == data


@pytest.mark.parametrize("codec", CODECS)
def test_the_cap_is_exact(codec: int) -> None:
    for data in (b"a" * 1000, bytes(300_000), random.Random(1).randbytes(200_000)):
        packed = compression.compress(codec, data)
        assert len(compression.decompress(codec, packed, len(data))) == len(data)
        with pytest.raises(TooLarge):
            compression.decompress(codec, packed, len(data) - 1)


@pytest.mark.parametrize("codec", BOMBS)
def test_a_bomb_ends_at_the_cap(codec: int) -> None:
    size = 64 * MIB
    bomb = compression.compress(codec, bytes(size))
    assert size / len(bomb) > BOMBS[codec]
    cap = 4 * MIB

    def explode() -> None:
        with pytest.raises(TooLarge):
            compression.decompress(codec, bomb, cap)

    explode()  # once untraced: imports
    assert peak_of(explode) < cap + 2 * MIB


def refused(codec: int, data: bytes | bytearray) -> None:
    with pytest.raises(Undecodable):
        compression.decompress(codec, data, 2**30)


def test_a_thousandfold_bomb_of_snappy_is_a_lie_about_its_size() -> None:
    """No block of snappy can be one, so the stated size gives it away before any memory is taken."""
    stated = b"\x80\x80\x80\x20"  # 64 MiB
    for data in (stated + b"\0" * 60, b"\x82SNAPPY\0" + bytes(8) + b"\0\0\0\x40" + stated + bytes(60)):
        refused(SNAPPY, data)
        assert peak_of(functools.partial(refused, SNAPPY, data)) < MIB


@pytest.mark.parametrize("codec", BOMBS)
def test_check_refuses_a_bomb_with_kafka_s_code_for_too_much(codec: int) -> None:
    value = bytes(batch.RECORDS_BYTES_MAX)
    body = compression.compress(codec, encode(0, 0, None, value, None))
    view = memoryview(bytearray(around(body, 1, codec)))
    with pytest.raises(KafkaError) as caught:
        batch.check(view, max_bytes=len(view))
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", BOMBS)
def test_small_data_does_not_cost_the_cap(codec: int) -> None:
    packed = compression.compress(codec, b"record " * 2000)
    compression.decompress(codec, packed, 2**30)
    assert peak_of(lambda: compression.decompress(codec, packed, 2**30)) < MIB


def test_stated_sizes_that_lie_cost_nothing_and_change_nothing() -> None:
    data = b"0123456789" * 40
    packed = bytearray(gzip.compress(data))
    for lie in (0, 1, 399, 401, 2**32 - 1):
        packed[-4:] = lie.to_bytes(4, "little")
        assert peak_of(functools.partial(refused, GZIP, packed)) < MIB
    frame = bytearray(cramjam.zstd.compress(data))
    assert frame[4] >> 6 == 1  # a content size of two bytes follows
    for lie in (0, 143, 145, 65_535):
        frame[5:7] = lie.to_bytes(2, "little")
        with pytest.raises((Undecodable, TooLarge)):
            compression.decompress(ZSTD, frame, 2**30)


def test_java_s_snappy_framing_is_taken_apart_and_every_length_checked() -> None:
    data = bytes(range(256)) * 500
    framed = compression.compress(SNAPPY, data)
    assert framed[:16] == b"\x82SNAPPY\0" + b"\0\0\0\1" * 2
    assert compression.decompress(SNAPPY, framed, len(data)) == data
    for cut in (8, 15, 17, 19, 20, 30, len(framed) - 1):
        with pytest.raises(Undecodable):
            compression.decompress(SNAPPY, framed[:cut], 2**30)
    for length in (b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff"):
        with pytest.raises(Undecodable):
            compression.decompress(SNAPPY, framed[:16] + length + framed[20:], 2**30)


def test_lz4_is_read_as_java_reads_it() -> None:
    data = b"some records " * 20_000
    compressor = cramjam.lz4.Compressor(content_checksum=True, block_linked=False)
    compressor.compress(data)
    assert compression.decompress(LZ4, bytes(compressor.finish()), len(data)) == data
    linked = bytes(cramjam.lz4.compress(data))
    good = compression.compress(LZ4, data)
    for bad in (linked, good + good, good + b"\0", good[:-1], good[:10], good[:4] + b"\xe0" + good[5:], b""):
        with pytest.raises(Undecodable):
            compression.decompress(LZ4, bad, 2**30)


def test_an_unknown_codec_is_nobody_s() -> None:
    with pytest.raises(Undecodable):
        compression.decompress(5, b"x", 10)
    with pytest.raises(ValueError, match="unknown codec"):
        compression.compress(5, b"x")


def test_damage_is_found_or_changes_the_data_and_never_crashes() -> None:
    chance = random.Random(11)
    data = bytes(batch.build(((None, b"%d" % i) for i in range(400)), now_ms=T))
    for codec in BOMBS:
        packed = compression.compress(codec, data)
        for _ in range(200):
            wrong = bytearray(packed)
            for _ in range(chance.randint(1, 3)):
                wrong[chance.randrange(len(wrong))] = chance.randrange(256)
            try:
                assert len(compression.decompress(codec, wrong, MIB)) <= MIB
            except (TooLarge, Undecodable):
                pass


def test_every_codec_case_of_the_table_is_refused_here() -> None:
    for case in batches.cases():
        if case.fault == "codec":
            with pytest.raises((TooLarge, Undecodable)):
                compression.decompress(case.data[22] & 7, case.data[batch.HEADER_BYTES :], 2**30)
