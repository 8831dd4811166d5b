"""`python -m headwater` is the command `headwater`."""
from __future__ import annotations

from headwater.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
