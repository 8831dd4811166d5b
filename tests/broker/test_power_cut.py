"""The power goes at the disk operations of a run of the whole broker; what clients were told holds afterwards."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headwater.broker.groups.coordinator import Groups
from headwater.broker.transactions import markers
from headwater.core.errors import HeadwaterError
from headwater.log import Log, Partition
from headwater.log.producer_state import ProducerStates
from headwater.testing.faulty_disk import FaultyDisk, PowerCut
from tests.broker.run_under_cuts import WINDOW_BYTES, CutWorld, Fenced, Run

STEPS = 1_200
GOES_ON = 120  # steps after a cut


def operations_of(seed: int) -> int:
    """A run without a cut: how many disk operations it has. It must do something worth checking."""
    run = Run(seed, FaultyDisk(seed=seed))
    run.start()
    run.run(STEPS)
    operations = run.world.disk.operations
    run.finish()
    world = CutWorld(run.world.disk.crash_image(0), run.world.clock)
    world.open()
    assert world.log.recovery.clean
    promises = run.promises
    promises.check(world, crashed=False)
    outcomes = [each.outcome for each in promises.transactions.values()]
    assert outcomes.count("committed") >= 5 and outcomes.count("aborted") >= 2
    assert sum(map(len, promises.records.values())) >= 80
    assert promises.deleted and any(promises.start_told.values()) and sum(promises.offset_told.values()) > 8
    return operations


def crash_and_check(
    seed: int, crash_at: int, images: int, window_bytes: int = WINDOW_BYTES, **disk_options: Any
) -> None:
    disk = FaultyDisk(seed=seed, crash_at=crash_at, **disk_options)
    run = Run(seed, disk, window_bytes)
    with contextlib.suppress(PowerCut):
        run.start()
        run.run(STEPS if window_bytes > 1 else STEPS * 2)
    for number in range(images):
        image_seed = crash_at * 1000 + number
        print(f"seed {seed}, power cut before operation {crash_at} ({disk.trace[-1]}), image {image_seed}")
        check_image(run, disk.crash_image(image_seed), image_seed, keep=number == images - 1)


def check_image(run: Run, image: FaultyDisk, image_seed: int, *, keep: bool) -> None:
    """Open it; cut the power once more during that; open again; let the same clients go on; stop cleanly; open."""
    image.crash_at = 1 + image_seed % 37
    world = CutWorld(image, copy.copy(run.world.clock))
    try:
        world.open()
    except PowerCut:
        world.disk = image.crash_image(image_seed)
        world.open()
    world.disk.crash_at = None
    promises = copy.deepcopy(run.promises)
    promises.check(world, crashed=True)
    if not keep:
        return
    run.go_on_with(world, promises)
    run.run(GOES_ON)
    run.finish()
    again = CutWorld(world.disk.crash_image(image_seed), world.clock)
    again.open()
    assert again.log.recovery.clean
    promises.check(again, crashed=False)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_power_cut_takes_back_nothing_that_the_broker_said(
    seed: int, plant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    operations = operations_of(seed)
    if plant in PLANTS:
        PLANTS[plant](monkeypatch)
    stride = max(operations // 20, 1)
    for crash_at in range(1 + seed * 2, operations + 1, stride):
        crash_and_check(seed, crash_at, 3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 14))
def test_a_power_cut_at_every_single_operation_with_twenty_images(seed: int) -> None:
    for crash_at in range(1, operations_of(seed) + 1):
        crash_and_check(seed, crash_at, 20)


def fail_and_check(seed: int, **failure: int) -> int | None:
    """A disk that fails once, in the middle of a run. How many requests were refused; None if it ended before."""
    disk = FaultyDisk(seed=seed, **failure)  # type: ignore[arg-type]
    run = Run(seed, disk)
    try:
        run.start()
        run.run(STEPS)
    except (Fenced, OSError, HeadwaterError):
        print(f"seed {seed}, {failure}: {disk.trace[-1]}")
        check_image(run, disk.crash_image(seed), seed, keep=True)
        return run.refused
    return None


@pytest.mark.parametrize("failure", ["fail_sync_at", "fail_write_at", "short_write_at"])
def test_an_error_of_the_disk_takes_back_nothing_that_the_broker_said(failure: str) -> None:
    refused = [fail_and_check(5, **{failure: n}) for n in [*range(1, 60, 8), *range(60, 1200, 31)]]
    failed = [each for each in refused if each is not None]
    assert len(failed) > 12 and sum(failed) > 2 * len(failed)


@pytest.mark.slow
@pytest.mark.parametrize("failure", ["fail_sync_at", "fail_write_at", "short_write_at"])
@pytest.mark.parametrize("seed", [6, 7])
def test_an_error_at_every_call_takes_back_nothing_that_the_broker_said(failure: str, seed: int) -> None:
    n = 1
    while fail_and_check(seed, **{failure: n}) is not None:
        n += 1


# --- planted faults -------------------------------------------------------------------------------------------

Plant = Callable[[pytest.MonkeyPatch], None]


def acknowledge_before_sync(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Log, "when_durable", lambda self, callback: callback())


def readers_see_what_is_not_durable(patch: pytest.MonkeyPatch) -> None:
    append = Partition._append

    def early(self: Partition, *arguments: object) -> object:
        done = append(self, *arguments)  # type: ignore[arg-type]
        self.high_watermark = self.log_end_offset
        return done

    patch.setattr(Partition, "_append", early)


def markers_in_frames_of_their_own(patch: pytest.MonkeyPatch) -> None:
    """No common frame, and no Prepare by which a restart would finish what is half done."""

    @contextlib.contextmanager
    def alone(self: Log) -> Iterator[None]:
        yield

    def end(transactions: object, transaction: object, *, commit: bool, bump: bool) -> None:
        now_ms = transactions.clock.wall_ms()  # type: ignore[attr-defined]
        markers._prepare(transactions, transaction, commit=commit, bump=bump, now_ms=now_ms)  # type: ignore[arg-type]
        markers.complete(transactions, transaction)  # type: ignore[arg-type]

    patch.setattr(Log, "together", alone)
    patch.setattr(markers, "end", end)


def offsets_are_told_before_they_are_durable(patch: pytest.MonkeyPatch) -> None:
    load = Groups.load

    def loaded(self: Groups) -> None:
        load(self)
        self.visible = self.latest

    patch.setattr(Groups, "load", loaded)


def repetitions_are_not_recognized(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProducerStates, "check", lambda self, header: None)


def producers_are_forgotten_by_a_restart(patch: pytest.MonkeyPatch) -> None:
    opened = CutWorld.open

    def forgetful(self: CutWorld) -> None:
        opened(self)
        for topic in self.log.topics.values():
            for partition in topic.partitions:
                partition.producers = ProducerStates()

    patch.setattr(CutWorld, "open", forgetful)


def leader_epochs_stay(patch: pytest.MonkeyPatch) -> None:
    opened = CutWorld.open

    def same_epoch(self: CutWorld) -> None:
        opened(self)
        for topic in self.log.topics.values():
            for partition in topic.partitions:
                del partition.epochs.entries[1:]

    patch.setattr(CutWorld, "open", same_epoch)


PLANTS: dict[str, Plant] = {
    "acknowledge-before-sync": acknowledge_before_sync,
    "readers-see-what-is-not-durable": readers_see_what_is_not_durable,
    "markers-in-frames-of-their-own": markers_in_frames_of_their_own,
    "offsets-are-told-before-they-are-durable": offsets_are_told_before_they_are_durable,
    "repetitions-are-not-recognized": repetitions_are_not_recognized,
    "producers-are-forgotten-by-a-restart": producers_are_forgotten_by_a_restart,
    "leader-epochs-stay": leader_epochs_stay,
}


@pytest.mark.parametrize("name", [*PLANTS, "a-sync-that-lies", "names-that-are-not-synced"])
def test_the_checker_notices(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lies = {"a-sync-that-lies": {"ignore_sync": True}, "names-that-are-not-synced": {"ignore_sync_dir": True}}
    operations = operations_of(4)
    if name in PLANTS:
        PLANTS[name](monkeypatch)
    window_bytes, images = WINDOW_BYTES, 2
    if name == "markers-in-frames-of-their-own":
        window_bytes, images = 1, 1  # each unit alone; what is half done is durable, whatever the image
    with pytest.raises(Exception) as caught:  # an assertion, or a directory that cannot be opened
        for crash_at in range(operations // 3, operations, 7):
            crash_and_check(4, crash_at, images, window_bytes, **lies.get(name, {}))
    assert not isinstance(caught.value, PowerCut)
    print(f"{name}: {caught.value}")
