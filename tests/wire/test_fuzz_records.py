"""Both walkers eat the same mutated bytes and must say the same; the C one also under the sanitizers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.wire import fuzz_records
from tests.wire.kernels import SOURCE, NoCompiler, c_kernel, compile_kernel, compiler

ROOT = Path(__file__).parents[2]
SEED = int(os.environ.get("HEADWATER_SEED", "20"))
SANITIZE = (
    "-O1",
    "-g",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
)


def fuzz(count: int, seed: int) -> None:
    print(f"seed {seed}")
    valid = fuzz_records.run(c_kernel(), seed, count)
    assert count / 20 < valid < count * 19 / 20


def test_both_walkers_say_the_same_of_mutated_records() -> None:
    fuzz(6_000, SEED)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEED + 1, SEED + 11))
def test_both_walkers_say_the_same_of_very_many_mutated_records(seed: int) -> None:
    fuzz(200_000, seed)


def test_a_walker_that_differs_is_noticed() -> None:
    """The comparison itself can fail: a kernel that misses one rule does not pass."""
    import types

    from headwater.wire import records

    def careless(buffer: bytes, position: int, count: int, consecutive: bool) -> tuple[int, ...]:
        return records.walk(bytes(buffer), position, count, False)

    kernel = types.ModuleType("careless")
    for name in ("first_at_or_after", "scan_batches"):
        setattr(kernel, name, lambda data, *rest, name=name: getattr(records, name)(bytes(data), *rest))
    kernel.walk = careless  # type: ignore[attr-defined]
    with pytest.raises(AssertionError):
        fuzz_records.run(kernel, SEED, 2_000)


def sanitized(folder: Path, source: Path) -> dict[str, str]:
    """The environment in which a sanitized kernel can be loaded; skips where it cannot be built."""
    try:
        command = compiler()
    except NoCompiler as reason:
        pytest.skip(str(reason))
    asked = subprocess.run(
        [*command, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    )
    library = asked.stdout.strip()
    if not os.path.isabs(library):
        pytest.skip("this C compiler has no address sanitizer")
    compile_kernel(folder, *SANITIZE, source=source)
    return {
        **os.environ,
        "LD_PRELOAD": library,
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
    }


def run_sanitized(folder: Path, count: int, source: Path = SOURCE) -> subprocess.CompletedProcess[str]:
    env = sanitized(folder, source)
    kernel = str(folder / "_records.abi3.so")
    command = [sys.executable, "-m", "tests.wire.fuzz_records", kernel, str(SEED), str(count)]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=1800, cwd=ROOT)


def test_the_kernel_is_clean_under_the_sanitizers(tmp_path: Path) -> None:
    done = run_sanitized(tmp_path, 2_000)
    assert done.returncode == 0, done.stderr[-4000:]
    assert "twins agree" in done.stdout


def test_the_sanitizer_sees_a_bound_that_is_missing(tmp_path: Path) -> None:
    text = SOURCE.read_text()
    bound = "if (end - at <= index) {"
    assert text.count(bound) == 1
    planted = tmp_path / "planted.c"
    planted.write_text(text.replace(bound, "if (0) {"))
    done = run_sanitized(tmp_path, 2_000, planted)
    assert done.returncode != 0
    assert "heap-buffer-overflow" in done.stderr


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_kernel_is_clean_under_the_sanitizers_for_a_long_time(tmp_path: Path) -> None:
    done = run_sanitized(tmp_path, 200_000)
    assert done.returncode == 0, done.stderr[-4000:]
