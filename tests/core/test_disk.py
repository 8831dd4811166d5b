"""The machine's disk: short writes, exact reads, locks; and that the disk of the tests means what it says."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from pathlib import Path

import pytest

from headwater.core.disk import Buffer, RealDisk, read_file, replace_file
from headwater.testing.faulty_disk import FaultyDisk, PowerCut


class ShortWrites(RealDisk):
    """Hands the system at most seven bytes at a time."""

    def _pwritev(self, handle: int, buffers: Sequence[Buffer], position: int) -> int:
        return super()._pwritev(handle, [memoryview(b"".join(buffers))[:7]], position)


@pytest.mark.parametrize("disk", [RealDisk(), ShortWrites()])
def test_all_of_many_buffers_is_written(disk: RealDisk, tmp_path: Path) -> None:
    path = str(tmp_path / "f")
    pieces = [bytes([number % 256]) * (number % 5) for number in range(3000)]
    handle = disk.open(path, create=True, write=True)
    disk.write(handle, 3, pieces)
    disk.sync(handle)
    assert disk.size(handle) == 3 + sum(map(len, pieces))
    assert bytes(disk.read(handle, 3, 10**6)) == b"".join(pieces)
    assert disk.read(handle, 10**7, 5) == b""
    disk.close(handle)


def test_read_now_gives_all_or_nothing(tmp_path: Path) -> None:
    disk = RealDisk()
    path = str(tmp_path / "f")
    replace_file(disk, path, b"0123456789")
    handle = disk.open(path)
    found = disk.read_now(handle, 2, 5)
    assert found is None or bytes(found) == b"23456"
    assert disk.read_now(handle, 8, 5) is None
    disk.close(handle)


def test_reserved_space_does_not_change_the_size(tmp_path: Path) -> None:
    disk = RealDisk()
    handle = disk.open(str(tmp_path / "f"), create=True, write=True)
    disk.write(handle, 0, [b"abc"])
    disk.allocate(handle, 3, 1 << 20)
    assert disk.size(handle) == 3
    disk.close(handle)


@pytest.mark.parametrize("seed", range(30))
def test_a_replaced_file_is_old_or_new_after_a_power_cut_at_any_operation(seed: int) -> None:
    for crash_at in range(1, 20):
        disk = FaultyDisk()
        disk.make_dir("/d")
        disk.sync_dir("/")
        replace_file(disk, "/d/f", b"old" * 300)
        disk.crash_at = disk.operations + crash_at
        done = False
        try:
            replace_file(disk, "/d/f", b"new" * 300)
            done = True
        except PowerCut:
            pass
        content = read_file(disk.crash_image(seed), "/d/f")
        assert content == b"new" * 300 or (not done and content == b"old" * 300)


def test_what_was_not_synced_may_be_gone_torn_or_there() -> None:
    disk = FaultyDisk()
    handle = disk.open("/f", create=True, write=True)
    disk.sync_dir("/")
    disk.write(handle, 0, [b"a" * 2000])
    disk.sync(handle)
    disk.write(handle, 0, [b"b" * 2000])
    found = {disk.crash_image(seed).content("/f") for seed in range(200)}
    assert b"a" * 2000 in found and b"b" * 2000 in found
    torn = [content for content in found if b"a" in content and b"b" in content]
    assert any(content[511:513] in (b"ab", b"ba") for content in torn), "at a sector"
    assert len(torn) > 10


def test_a_name_that_was_not_synced_may_be_gone() -> None:
    disk = FaultyDisk()
    handle = disk.open("/f", create=True, write=True)
    disk.write(handle, 0, [b"x"])
    disk.sync(handle)
    assert {disk.crash_image(seed).exists("/f") for seed in range(30)} == {True, False}
    disk.sync_dir("/")
    assert {disk.crash_image(seed).exists("/f") for seed in range(30)} == {True}


def test_after_a_failed_sync_a_later_one_does_not_bring_the_bytes_back() -> None:
    disk = FaultyDisk(fail_sync_at=1)
    handle = disk.open("/f", create=True, write=True)
    disk.sync_dir("/")
    disk.write(handle, 0, [b"lost"])
    with pytest.raises(OSError) as caught:
        disk.sync(handle)
    assert caught.value.errno == errno.EIO
    disk.sync(handle)
    assert b"" in {disk.crash_image(seed).content("/f") for seed in range(30)}
