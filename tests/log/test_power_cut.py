"""The power goes at every disk operation of a run; several disks that could be left are opened each time."""

from __future__ import annotations

import pytest

from headwater.testing.faulty_disk import FaultyDisk, PowerCut
from tests.log.workload import Workload, open_log

STEPS = 220


def crash_and_check(
    seed: int, crash_at: int, images: int, *, disk_options: dict[str, bool], early: bool = False
) -> None:
    disk = FaultyDisk(seed=seed, crash_at=crash_at, **disk_options)
    run = Workload(seed, disk, acknowledge_early=early)
    with pytest.raises(PowerCut):
        run.start()
        run.run(STEPS)
        run.finish()
    for number in range(images):
        image_seed = crash_at * 1000 + number
        print(f"seed {seed}, power cut before operation {crash_at} ({disk.trace[-1]}), image {image_seed}")
        check_image(run, disk.crash_image(image_seed), image_seed, keep=number == images - 1)


def check_image(run: Workload, disk: FaultyDisk, image_seed: int, *, keep: bool) -> None:
    """Open it; cut the power once more during that; open again; let the run go on, stop cleanly, open."""
    disk.crash_at = 1 + image_seed % 23
    try:
        log = open_log(disk, run.clock)
    except PowerCut:
        disk = disk.crash_image(image_seed)
        log = open_log(disk, run.clock)
    disk.crash_at = None
    held = run.check(log)
    if not keep:
        return
    run.go_on_with(log, disk, held)
    run.run(40)
    run.finish()
    log = open_log(disk.crash_image(image_seed), run.clock)
    assert log.recovery.clean
    assert run.check(log) == len(run.units)


def operations_of(seed: int) -> int:
    disk = FaultyDisk(seed=seed)
    run = Workload(seed, disk)
    run.start()
    run.run(STEPS)
    run.finish()
    operations = disk.operations
    log = open_log(disk)
    assert log.recovery.clean
    assert run.check(log) == len(run.units) == run.acknowledged
    return operations


PLANTS: dict[str, tuple[dict[str, bool], bool]] = {
    "a-sync-that-lies": ({"ignore_sync": True}, False),
    "no-dir-sync": ({"ignore_sync_dir": True}, False),
    "ack-before-sync": ({}, True),
}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_power_cut_at_every_disk_operation_keeps_what_was_acknowledged(seed: int, plant: str) -> None:
    options, early = PLANTS.get(plant, ({}, False))
    operations = operations_of(seed)
    stride = max(operations // 60, 1)
    for crash_at in range(1 + seed, operations + 1, stride):
        crash_and_check(seed, crash_at, 3, disk_options=options, early=early)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 20))
def test_power_cut_at_every_single_operation_with_six_images(seed: int) -> None:
    for crash_at in range(1, operations_of(seed) + 1):
        crash_and_check(seed, crash_at, 6, disk_options={})


@pytest.mark.parametrize(("options", "early"), PLANTS.values(), ids=PLANTS)
def test_the_checker_notices(options: dict[str, bool], early: bool) -> None:
    """Planted faults: what the checks above are worth."""
    operations = operations_of(4)
    with pytest.raises(Exception) as caught:  # an assertion, or a directory that cannot be opened
        for crash_at in range(operations // 3, operations, 7):
            crash_and_check(4, crash_at, 4, disk_options=options, early=early)
    assert not isinstance(caught.value, PowerCut)
