"""Which of the twins walks records: the C kernel where it was built, else the Python one.

HEADWATER_PURE=1 forces the Python one. `NAME` says which it is; `headwater version` shows it.
"""

from __future__ import annotations

import os

from headwater.wire import records as _twin

NAME = "Python"
walk = _twin.walk
first_at_or_after = _twin.first_at_or_after
scan_batches = _twin.scan_batches

if os.environ.get("HEADWATER_PURE", "") in ("", "0"):
    try:
        from headwater.wire import _records
    except ImportError:
        pass
    else:
        if getattr(_records, "INTERFACE", 0) == _twin.INTERFACE:
            NAME = "C"
            walk = _records.walk
            first_at_or_after = _records.first_at_or_after
            scan_batches = _records.scan_batches
