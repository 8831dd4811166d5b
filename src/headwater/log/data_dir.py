"""The data directory: its lock, its format, and the mistakes that people make with directories.

    version            JSON {"format": 1, "cluster_id": ...}
    lock               held while a process uses the directory
    log/               Kafka's files, one directory for each partition
    journal/           the commit journal
    checkpoint, .copy  what log/ is known to hold
    clean              after a clean stop: the sequence of the checkpoint
    quarantine/        what was damaged or cut, never removed by us
Other names (endpoint, users, ...) belong to the server and are left alone. docs/formats/data-directory.md.
"""

from __future__ import annotations

import json
import os

from headwater.core.disk import Disk, read_file, replace_file
from headwater.core.errors import Conflict, HeadwaterError, UsageError

FORMAT = 1
_OPEN = "open the data directory"


def lock(disk: Disk, root: str) -> None:
    """Make the directory if need be, and take its lock."""
    parent = os.path.dirname(root)
    try:
        if not disk.exists(root):
            if parent and not disk.exists(parent):
                _make_parents(disk, parent)
            disk.make_dir(root)
            disk.sync_dir(parent or ".")
        locked = disk.lock(f"{root}/lock")
    except OSError as error:
        step = "Give a directory that this user may write to (--data DIR)."
        raise HeadwaterError(_OPEN, place=root, cause=error.strerror or error, next_step=step) from error
    if not locked:
        raise Conflict(
            _OPEN,
            place=root,
            cause=f"another process uses it{_holder(disk, root)}",
            next_step="Stop that process, or give another directory (--data DIR).",
        )


def _make_parents(disk: Disk, path: str) -> None:
    parent = os.path.dirname(path)
    if parent and not disk.exists(parent):
        _make_parents(disk, parent)
    disk.make_dir(path)
    disk.sync_dir(parent or ".")


def _holder(disk: Disk, root: str) -> str:
    try:
        text = read_file(disk, f"{root}/lock").decode().strip()
    except (OSError, UnicodeDecodeError):
        return ""
    return f" (process {text})" if text.isdigit() else ""


def identify(disk: Disk, root: str) -> str | None:
    """The cluster id of the directory; None if it is new. HeadwaterError if it is not ours, or too new."""
    path = f"{root}/version"
    if disk.file_size(path) is None:
        _check_new(disk, root)
        return None
    try:
        content = json.loads(read_file(disk, path))
        written, cluster_id = content["format"], content["cluster_id"]
        if not isinstance(written, int) or not isinstance(cluster_id, str):
            raise ValueError("fields of the wrong type")
    except (ValueError, KeyError, TypeError) as error:
        raise HeadwaterError(
            _OPEN,
            place=root,
            cause=f"the file {path} is damaged",
            next_step="Nothing was changed. Restore it from a backup, or write"
            f' {{"format": {FORMAT}, "cluster_id": "…"}} into it, with the cluster_id of {root}/checkpoint.',
        ) from error
    if written > FORMAT:
        raise UsageError(
            _OPEN,
            place=root,
            cause=f"it was written by a newer headwater (format {written}; this one knows up to {FORMAT})",
            next_step="Nothing was changed. Use the newer version: pip install --upgrade headwater.",
        )
    return cluster_id


def _check_new(disk: Disk, root: str) -> None:
    """A directory without version file must be empty, or one that we were interrupted in making."""
    foreign = [name for name in disk.list(root) if name not in _OURS and not name.endswith(".tmp")]
    if disk.exists(f"{root}/log") and disk.list(f"{root}/log"):
        foreign.append("log/")
    if foreign:
        some = ", ".join(sorted(foreign)[:3])
        raise UsageError(
            _OPEN,
            place=root,
            cause=f"it is not empty and was not made by headwater (it holds {some})",
            next_step="Give a new or empty directory (--data DIR).",
        )


_OURS = frozenset(
    ("version", "lock", "log", "journal", "checkpoint", "checkpoint.copy", "clean", "quarantine", "endpoint", "users",
     "owner", "server.log", "broker.log", "lost+found")
)  # fmt: skip


def create(disk: Disk, root: str) -> None:
    for name in ("log", "journal"):
        disk.make_dir(f"{root}/{name}")
    disk.sync_dir(root)


def seal(disk: Disk, root: str, cluster_id: str) -> None:
    """The last step of making a directory: from now on it is one."""
    replace_file(disk, f"{root}/version", json.dumps({"format": FORMAT, "cluster_id": cluster_id}).encode() + b"\n")


def mark_clean(disk: Disk, root: str, sequence: int) -> None:
    replace_file(disk, f"{root}/clean", b"%d\n" % sequence)


def take_clean_mark(disk: Disk, root: str, sequence: int) -> bool:
    """Whether the last stop was clean and left exactly this checkpoint. The mark is gone, for good, afterwards."""
    path = f"{root}/clean"
    if disk.file_size(path) is None:
        return False
    content = read_file(disk, path)
    disk.unlink(path)
    disk.sync_dir(root)
    return content == b"%d\n" % sequence
