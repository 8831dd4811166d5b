"""The codecs of record batches, with a hard cap on what comes out.

Refuses data that would inflate beyond the cap (TooLarge) and data that is damaged, goes on after its end,
or is framed in a way that some Kafka client cannot read (Undecodable). cramjam's `decompress` has no cap,
its `decompress_into` has: the cap is the buffer's length. cramjam is imported on first use, because most
brokers never look into a compressed batch in their first second.
"""

from __future__ import annotations

from typing import Any

from headwater.wire.records import Buffer

NONE = 0
GZIP = 1
SNAPPY = 2
LZ4 = 3
ZSTD = 4
NAMES = ("none", "gzip", "snappy", "lz4", "zstd")

_FIRST_GUESS_MIN = 16 * 1024
_FIRST_GUESS_RATIO = 4
_GROWTH = 4  # each try inflates from the start: all tries together cost 4/3 of the last

# The most that a byte can become: a stated size beyond it is a lie and must not allocate.
_GZIP_RATIO_MAX = 1032
_SNAPPY_RATIO_MAX = 22

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = 16
_XERIAL_CHUNK = 32 * 1024
_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


class TooLarge(ValueError):
    """The data would inflate beyond the cap."""


class Undecodable(ValueError):
    """The data is not what the codec writes."""


def decompress(codec: int, data: Buffer, limit: int) -> memoryview:
    """What `data` inflates to, if that is at most `limit` bytes."""
    view = memoryview(data)
    if codec == NONE:
        if len(view) > limit:
            raise _too_large(codec, limit)
        return view
    if codec == SNAPPY:
        return _snappy(view, limit)
    if codec == GZIP:
        import cramjam

        return _inflate(codec, cramjam.gzip.decompress_into, view, _gzip_guess(view), limit)
    if codec == LZ4:
        import cramjam

        return _inflate(codec, cramjam.lz4.decompress_into, view, _lz4_bound(view), limit)
    if codec == ZSTD:
        import cramjam

        return _inflate(codec, cramjam.zstd.decompress_into, view, _zstd_guess(view), limit)
    raise Undecodable(f"unknown codec {codec}")


def compress(codec: int, data: Buffer) -> bytes:
    """As the Java client frames it: xerial snappy, lz4 in independent blocks."""
    if codec == NONE:
        return bytes(data)
    import cramjam

    if codec == GZIP:
        return bytes(cramjam.gzip.compress(data))
    if codec == SNAPPY:
        return _xerial(data)
    if codec == LZ4:
        # Java reads no blocks that lean on earlier ones, and no checksum of the whole is its default.
        compressor = cramjam.lz4.Compressor(content_checksum=False, block_linked=False)
        compressor.compress(bytes(data))
        return bytes(compressor.finish())
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(data))
    raise ValueError(f"unknown codec {codec}")


def _too_large(codec: int, limit: int) -> TooLarge:
    return TooLarge(f"{NAMES[codec]} data inflates to more than {limit} bytes")


def _inflate(codec: int, into: Any, data: memoryview, guess: int, limit: int) -> memoryview:
    """Try a buffer of `guess` bytes, then larger ones up to the cap, so that small data never costs the cap."""
    import cramjam

    size = min(max(guess, 1), limit)
    while True:
        room = bytearray(size)
        try:
            return memoryview(room)[: into(data, room)]
        except cramjam.DecompressionError as error:
            if "whole buffer" not in str(error):
                raise Undecodable(f"{NAMES[codec]}: {error}") from None
        if size >= limit:
            raise _too_large(codec, limit)
        size = min(size * _GROWTH, limit)
        del room


def _guess(data: memoryview) -> int:
    return max(len(data) * _FIRST_GUESS_RATIO, _FIRST_GUESS_MIN)


def _gzip_guess(data: memoryview) -> int:
    """The trailer states the size of the last member: right for every client there is."""
    stated = int.from_bytes(data[-4:], "little")
    return stated if 0 < stated <= len(data) * _GZIP_RATIO_MAX else _guess(data)


def _zstd_guess(data: memoryview) -> int:
    """The content size where the frame header states it and it is not far from usual; else a guess."""
    if len(data) < 14 or data[:4] != _ZSTD_MAGIC:
        return _guess(data)
    descriptor = data[4]
    width = (1 if descriptor & 0x20 else 0, 2, 4, 8)[descriptor >> 6]
    at = 5 + (0 if descriptor & 0x20 else 1) + (0, 1, 2, 4)[descriptor & 3]
    stated = int.from_bytes(data[at : at + width], "little") + (256 if width == 2 else 0)
    return stated if 0 < stated <= 64 * len(data) + _FIRST_GUESS_MIN else _guess(data)


def _lz4_bound(data: memoryview) -> int:
    """What the frame's blocks can hold at most, after checking what the Java client demands of a frame.

    Java reads one frame, of format 1, in independent blocks, and takes no dictionary.
    """
    if len(data) < 11 or data[:4] != _LZ4_MAGIC:
        raise Undecodable("lz4: no frame begins here")
    flags, sizes = data[4], data[5]
    if flags & 0xE3 != 0x60 or sizes & 0x8F or sizes >> 4 < 4:
        raise Undecodable(f"lz4: frame flags {flags:#x} {sizes:#x}: not independent blocks of format 1")
    at = 15 if flags & 0x08 else 7
    block_max = 1 << (8 + 2 * (sizes >> 4))
    bound = 0
    while True:
        if at + 4 > len(data):
            raise Undecodable("lz4: the frame has no end")
        size = int.from_bytes(data[at : at + 4], "little")
        at += 4
        if size == 0:
            break
        stored = size & 0x7FFFFFFF
        # A block of n bytes holds n, stored as it is, or at most 255 n.
        bound += stored if size >> 31 else min(block_max, 255 * stored)
        at += stored + (4 if flags & 0x10 else 0)
    if at + (4 if flags & 0x04 else 0) != len(data):
        raise Undecodable("lz4: bytes follow the frame")
    return bound


def _snappy(data: memoryview, limit: int) -> memoryview:
    if data[:8] != _XERIAL_MAGIC:
        blocks = [data]
    else:
        blocks = _xerial_blocks(data)
    sizes = [_snappy_size(block) for block in blocks]
    total = sum(sizes)
    if total > limit:
        raise _too_large(SNAPPY, limit)
    return _snappy_into(memoryview(bytearray(total)), blocks, sizes)


def _snappy_into(room: memoryview, blocks: list[memoryview], sizes: list[int]) -> memoryview:
    import cramjam

    at = 0
    for block, size in zip(blocks, sizes, strict=True):
        try:
            written = cramjam.snappy.decompress_raw_into(block, room[at : at + size])
        except cramjam.DecompressionError as error:
            raise Undecodable(f"snappy: {error}") from None
        if written != size:
            raise Undecodable(f"snappy: a block states {size} bytes and holds {written}")
        at += size
    return room


def _snappy_size(block: memoryview) -> int:
    """What a raw block states that it inflates to."""
    import cramjam

    try:
        size = int(cramjam.snappy.decompress_raw_len(block))
    except cramjam.DecompressionError as error:
        raise Undecodable(f"snappy: {error}") from None
    if len(block) == 0 or size > len(block) * _SNAPPY_RATIO_MAX:
        raise Undecodable(f"snappy: a block of {len(block)} bytes states {size}")
    return size


def _xerial_blocks(data: memoryview) -> list[memoryview]:
    """The raw blocks inside the framing of Java's snappy library: a header, then length and block each."""
    blocks = []
    at = _XERIAL_HEADER
    if len(data) < at:
        raise Undecodable("snappy: the header is cut off")
    while at < len(data):
        length = int.from_bytes(data[at : at + 4], "big", signed=True)
        at += 4
        if length <= 0 or length > len(data) - at:
            raise Undecodable(f"snappy: a block states a length of {length}")
        blocks.append(data[at : at + length])
        at += length
    return blocks


def _xerial(data: Buffer) -> bytes:
    import cramjam

    parts = [_XERIAL_MAGIC, b"\0\0\0\1\0\0\0\1"]
    view = memoryview(data)
    for at in range(0, len(view), _XERIAL_CHUNK):
        block = bytes(cramjam.snappy.compress_raw(view[at : at + _XERIAL_CHUNK]))
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)
