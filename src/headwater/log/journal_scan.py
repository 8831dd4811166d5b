"""Looking through journal files at a start: which frames are there after the checkpoint, and which are missing.

Torn and damaged are two things. One frame is in flight at a time, so only the last one can be torn: it was
never acknowledged and is cut. A frame that does not hold although a later one was begun had been acknowledged:
that is damage, it gets a name and a place, and what can be had of it is had from the segments.
"""

from __future__ import annotations

from typing import NamedTuple

from headwater.core.disk import Disk, read_file
from headwater.log import journal_frame
from headwater.log.journal import SUFFIX
from headwater.log.journal_frame import ALIGNMENT, HEADER_BYTES, KEY_BYTES, MAGIC, Header


class Found(NamedTuple):
    """A frame whose header holds."""

    path: str
    position: int
    header: Header
    holds: bool  # its payload does too


class Broken(NamedTuple):
    """A place where a frame was written and its header does not hold. `after`: the sequence before it, -1 unknown."""

    path: str
    position: int
    after: int


class Scan:
    """`frames`: by sequence, only those after the checkpoint. `missing`: sequence -> (file, position, reason)."""

    def __init__(self) -> None:
        self.files: dict[str, int] = {}  # path -> size
        self.frames: dict[int, Found] = {}
        self.torn: Found | Broken | None = None
        self.missing: dict[int, tuple[str, int, str]] = {}
        self.contents: dict[str, memoryview] = {}

    @property
    def last(self) -> int:
        return max(self.frames, default=-1)


def journal_paths(disk: Disk, folder: str) -> list[str]:
    return sorted(f"{folder}/{name}" for name in disk.list(folder) if name.endswith(SUFFIX))


def begun_after(disk: Disk, folder: str, key: bytes, sequence: int) -> bool:
    """Whether any file begins with a frame after `sequence`: all of a run's first frames stand at position 0."""
    for path in journal_paths(disk, folder):
        handle = disk.open(path)
        try:
            head = memoryview(disk.read(handle, 0, HEADER_BYTES))
        finally:
            disk.close(handle)
        header = journal_frame.parse_header(head, 0, key)
        if header is not None and header.sequence > sequence:
            return True
    return False


def scan(disk: Disk, folder: str, key: bytes, sequence: int, chain: int) -> Scan:
    """Everything that the journal holds after the checkpoint's `sequence`."""
    result = Scan()
    candidates: dict[int, list[Found]] = {}
    broken: list[Broken] = []
    for path in journal_paths(disk, folder):
        content = memoryview(read_file(disk, path))
        result.files[path] = len(content)
        _scan_file(path, content, key, sequence, candidates, broken)
        result.contents[path] = content
    _choose(result, candidates, sequence, chain)
    _judge(result, candidates, broken, sequence)
    used = {frame.path for frame in result.frames.values()}
    if result.torn is not None:
        used.add(result.torn.path)
    result.contents = {path: content for path, content in result.contents.items() if path in used}
    return result


def _scan_file(
    path: str, content: memoryview, key: bytes, sequence: int, candidates: dict[int, list[Found]], broken: list[Broken]
) -> None:
    position, before = 0, -1
    while position + HEADER_BYTES <= len(content):
        header = journal_frame.parse_header(content, position, key)
        if header is None:
            its_key = content[position + 32 : position + 32 + KEY_BYTES]
            if content[position : position + 8] == MAGIC or its_key == key:
                broken.append(Broken(path, position, before))
            before = -1
            position += ALIGNMENT
            continue
        holds = True
        if header.sequence > sequence:
            holds = journal_frame.payload_holds(content, position, header)
            candidates.setdefault(header.sequence, []).append(Found(path, position, header, holds))
        before = header.sequence
        # Behind a frame that does not hold, the next one may begin anywhere: its length may be the lie.
        position += header.span if holds else ALIGNMENT


def _choose(result: Scan, candidates: dict[int, list[Found]], sequence: int, chain: int) -> None:
    """One frame for each sequence. Where the frame before is known, the chain must fit."""
    known: int | None = chain
    for number in sorted(candidates):
        if number != sequence + 1:
            known = None
        fitting = [f for f in candidates[number] if f.holds and known in (None, f.header.chain)]
        if fitting:
            result.frames[number] = fitting[0]
            known = fitting[0].header.own_chain
        else:
            known = None
        sequence = number


def _judge(result: Scan, candidates: dict[int, list[Found]], broken: list[Broken], sequence: int) -> None:
    """What of the rest is the torn last frame, and what is damage."""
    last_begun = max(candidates, default=sequence)
    unknown = {item.after + 1: item for item in broken if item.after >= sequence}
    for number in range(sequence + 1, last_begun + 1):
        if number in result.frames:
            continue
        if number == last_begun:
            result.torn = candidates[number][0]
        elif number in candidates:
            found = candidates[number][0]
            result.missing[number] = (found.path, found.position, f"frame {number} of the journal is damaged")
        elif number in unknown:
            place = unknown[number]
            result.missing[number] = (place.path, place.position, f"the header of frame {number} is damaged")
        else:
            result.missing[number] = ("", 0, f"frame {number} of the journal is missing")
    if result.torn is None and last_begun + 1 in unknown:
        result.torn = unknown[last_begun + 1]
