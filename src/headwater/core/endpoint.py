"""``<data>/endpoint``: where the broker that has this data directory open can be reached.

JSON: ``address`` (HOST:PORT), ``pid``, ``owner`` (``own``, ``owner`` or ``shared``, see core/processes.py). Written
when clients are served, removed at a clean stop: after a crash it names a process that is gone, so a reader
asks `is_alive` before it believes it.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import NamedTuple

FILE_NAME = "endpoint"
CONNECT_SECONDS = 2.0  # a local broker accepts at once, even while it recovers


class Endpoint(NamedTuple):
    address: str
    pid: int
    owner: str

    def is_alive(self) -> bool:
        """The process is there and something accepts at its address."""
        try:
            os.kill(self.pid, 0)
        except PermissionError:
            pass  # somebody else's, but there
        except OSError:
            return False
        host, _, port = self.address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
        except OSError:
            return False
        return True


def read_endpoint(data: str | os.PathLike[str]) -> Endpoint | None:
    """None where there is none, or nothing that can be read as one."""
    import json

    try:
        found = json.loads((Path(data) / FILE_NAME).read_text())
        return Endpoint(str(found["address"]), int(found["pid"]), str(found["owner"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_endpoint(data: str | os.PathLike[str], endpoint: Endpoint) -> None:
    """A reader sees the old file or the new one. It need not outlive a power cut, so it is not synced."""
    import json

    path = os.path.join(data, FILE_NAME)
    with open(f"{path}.tmp", "w") as file:
        file.write(json.dumps(endpoint._asdict()) + "\n")
    os.replace(f"{path}.tmp", path)


def remove_endpoint(data: str | os.PathLike[str], pid: int) -> None:
    """Only one's own: another broker may have taken over already."""
    found = read_endpoint(data)
    if found is not None and found.pid == pid:
        try:
            os.unlink(os.path.join(data, FILE_NAME))
        except OSError:
            pass
