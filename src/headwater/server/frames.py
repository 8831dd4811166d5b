"""Cuts the bytes of one connection into frames. Sans-IO: it knows no socket and no loop.

    frame = int32 length | length bytes        valid iff 0 < length <= bytes_max

Bytes arrive in a scratch buffer that all connections of the loop share (a connection at rest owns no buffer).
A frame that is whole in the scratch is copied out; one that is not gets a buffer of its own, into which the
rest is received directly. Every frame is handed on as a writable memoryview over memory that nobody else uses.

Memory is taken from the budget before it is allocated. A length alone proves nothing: up to ``STEP_BYTES`` a
buffer is made at its full size, above it grows with the bytes that arrive (a frame of 1 MiB whose first
64 KiB came in one read is allocated once). Where the budget has nothing, ``wanted`` says how much is needed
and no byte may be received until ``resume``.
"""

from __future__ import annotations

import struct

from headwater.server.budget import Budget

SCRATCH_BYTES = 256 * 1024  # one read of a fast connection; larger brought nothing
TIGHT_BYTES = 4 * 1024  # a read while memory is short: enough to see what is coming
STEP_BYTES = 4 * 1024  # what four bytes may make us allocate: 10,000 half-open connections must fit in the budget
LENGTH = struct.Struct(">i").unpack_from
GROWTH = 16  # at most this many times what has arrived


class BadLength(Exception):
    """The stream is no sequence of frames; the text says why."""


class FrameReader:
    __slots__ = (
        "_budget", "_buffer", "_bytes_max", "_filled", "_head", "_held", "_reserved", "_room", "_scratch",
        "_size", "_tight", "wanted",
    )  # fmt: skip

    def __init__(self, scratch: memoryview, budget: Budget, bytes_max: int) -> None:
        self._scratch = scratch
        self._tight = scratch[:TIGHT_BYTES]
        self._budget = budget
        self._bytes_max = bytes_max
        self._head = b""  # the first one to three bytes of a length
        self._held = b""  # received, but not looked at while memory is waited for
        self._size = 0  # of the frame that has begun; 0 = none
        self._reserved = 0  # of the budget, for the frame that has begun
        self._filled = 0
        self._buffer = bytearray()
        self._room: memoryview | None = None  # the buffer of the frame that has begun
        self.wanted = 0

    @property
    def partial(self) -> bool:
        """Something has begun and is not whole."""
        return bool(self._size or self._head)

    @property
    def begun(self) -> bool:
        """Of the frame that is waited for, a part is already in memory."""
        return self._room is not None

    @property
    def progress(self) -> int:
        """Bytes of the frame that has begun."""
        return self._filled

    def get_buffer(self) -> memoryview:
        room = self._room
        if room is not None:
            return room[self._filled :]
        return self._tight if self._budget.tight else self._scratch

    def received(self, count: int) -> list[memoryview]:
        """``count`` bytes are in what ``get_buffer`` gave; the frames that are whole by them."""
        if self._room is not None:
            self._filled += count
            return self._room_filled()
        data = self._scratch[:count]
        if self._head:
            data = memoryview(self._head + bytes(data))
            self._head = b""
        return self._cut(data, [])

    def resume(self) -> list[memoryview]:
        """The budget gave what was wanted; the frames that are whole by what had been held back."""
        assert self.wanted
        self._reserved += self.wanted
        self.wanted = 0
        if self._room is not None:
            self._grow()
            return []
        held, self._held = memoryview(self._held), b""
        return self._cut(held, [])

    def close(self) -> None:
        """Give back what the half frame holds; nothing may be received any more."""
        self._budget.give(self._reserved)
        self._reserved = self._size = self._filled = self.wanted = 0
        self._head = self._held = b""
        self._room = None
        self._buffer = bytearray()

    def _cut(self, data: memoryview, frames: list[memoryview]) -> list[memoryview]:
        position, end = 0, len(data)
        while end - position >= 4:
            (size,) = LENGTH(data, position)
            if not 0 < size <= self._bytes_max:
                raise BadLength(f"a frame of {size} bytes (1 to {self._bytes_max} are taken)")
            body = position + 4
            whole = end - body >= size
            need = size if whole else self._reserved or min(size, max(STEP_BYTES, GROWTH * (end - body)))
            if self._reserved < need:
                if not self._budget.take(need - self._reserved):
                    # Memory is short: what is here must fit, the rest is asked for as it comes.
                    self._hold(data[position:], min(size, max(STEP_BYTES, end - body)))
                    return frames
                self._reserved = need
            if not whole:
                self._begin(size, need, data[body:])
                return frames + self._room_filled()
            frames.append(memoryview(bytearray(data[body : body + size])))
            self._reserved = 0
            position = body + size
        self._head = bytes(data[position:])
        return frames

    def _hold(self, rest: memoryview, need: int) -> None:
        self._held = bytes(rest)
        self.wanted = need - self._reserved

    def _begin(self, size: int, allocate: int, first: memoryview) -> None:
        self._size = size
        self._buffer = bytearray(allocate)
        self._room = memoryview(self._buffer)
        self._filled = len(first)
        self._room[: self._filled] = first

    def _room_filled(self) -> list[memoryview]:
        assert self._room is not None
        if self._filled == self._size:
            frame = self._room
            self._room = None
            self._buffer = bytearray()
            self._size = self._filled = self._reserved = 0
            return [frame]
        if self._filled == len(self._room):
            need = min(self._size, GROWTH * self._filled) - self._reserved
            if need > 0 and not self._budget.take(need):
                self.wanted = self._size - self._reserved  # all of it: whoever waits once waits for nothing more
                return []
            self._reserved += max(need, 0)
            self._grow()
        return []

    def _grow(self) -> None:
        assert self._room is not None
        larger = bytearray(min(self._size, GROWTH * self._filled))
        room = memoryview(larger)
        room[: self._filled] = self._room[: self._filled]
        self._buffer, self._room = larger, room
