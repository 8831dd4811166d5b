"""Which event loop: uvloop where it is; the standard loop does the same, a little slower."""

from __future__ import annotations

import asyncio


def new_loop(kind: str = "auto") -> asyncio.AbstractEventLoop:
    """``auto``, or exactly ``uvloop`` or ``asyncio``."""
    if kind != "asyncio":
        try:
            import uvloop
        except ImportError:
            if kind == "uvloop":
                raise
        else:
            made: asyncio.AbstractEventLoop = uvloop.new_event_loop()
            return made
    return asyncio.new_event_loop()
