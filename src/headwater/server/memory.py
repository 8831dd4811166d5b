"""The C library's allocator under large requests.

By default every buffer of a large request is mapped anew, faulted in page by page, and unmapped: at 1 MiB a
request that was a third of the loop's time in the kernel. Once there is such traffic, freed buffers are kept for
the next ones, and given back when it has been quiet for a while. Where the C library has no such settings nothing
happens. It is not done at the start, because ctypes costs 8 ms of it.
"""

from __future__ import annotations

from typing import Any

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h
MAPPED_FROM_BYTES = 8 << 20  # smaller buffers come from memory that is kept
KEPT_BYTES = 64 << 20
QUIET_TICKS = 10


class Memory:
    def __init__(self) -> None:
        self._library: Any = None
        self._busy = False
        self._quiet = 0

    def large_traffic(self) -> None:
        """Large requests are coming in."""
        self._quiet = 0
        if self._busy:
            return
        self._busy = True
        if self._library is None:
            import ctypes

            try:
                self._library = ctypes.CDLL(None)
                self._library.mallopt(M_MMAP_THRESHOLD, MAPPED_FROM_BYTES)
                self._library.mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
            except (AttributeError, OSError):
                self._library = None

    def tick(self) -> None:
        """Every second."""
        if not self._busy:
            return
        self._quiet += 1
        if self._quiet >= QUIET_TICKS:
            self._busy = False
            trim = getattr(self._library, "malloc_trim", None)
            if trim is not None:
                trim(0)
