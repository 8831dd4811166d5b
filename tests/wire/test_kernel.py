"""Which twin runs, and what the modules cost a broker's start."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from headwater.wire import records
from tests.wire.kernels import NoCompiler, c_kernel, compile_kernel, load

SOURCE_ROOT = Path(records.__file__).parents[2]


def python(program: str, **environment: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(SOURCE_ROOT), **environment}
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_headwater_pure_forces_the_python_twin() -> None:
    show = "from headwater.wire import kernel; print(kernel.NAME, kernel.walk.__module__)"
    assert python(show, HEADWATER_PURE="1") == "Python headwater.wire.records"


def test_the_c_kernel_runs_where_it_was_built() -> None:
    built = any(Path(records.__file__).parent.glob("_records*.so"))
    name = python("from headwater.wire import kernel; print(kernel.NAME)", HEADWATER_PURE="0")
    assert name == ("C" if built else "Python")


def test_a_kernel_of_another_interface_is_not_used() -> None:
    program = """
import sys, types
stale = types.ModuleType("headwater.wire._records")
stale.INTERFACE = 0
sys.modules["headwater.wire._records"] = stale
import headwater.wire
headwater.wire._records = stale
from headwater.wire import kernel
print(kernel.NAME)
"""
    assert python(program, HEADWATER_PURE="") == "Python"


def test_both_twins_are_of_one_interface() -> None:
    module = c_kernel()
    assert module.INTERFACE == records.INTERFACE


def test_the_kernel_compiles_without_warnings_for_the_limited_api(tmp_path: Path) -> None:
    try:
        path = compile_kernel(tmp_path, "-O3", "-DPy_LIMITED_API=0x030B0000")
    except NoCompiler:
        c_kernel()  # skips by name, or what is installed must do
        return
    assert load(path).INTERFACE == records.INTERFACE


def test_importing_batches_loads_no_codec_and_nothing_slow() -> None:
    loaded = python("import headwater.wire.batch, sys; print(*sys.modules)").split()
    slow = {
        "cramjam",
        "importlib.metadata",
        "dataclasses",
        "inspect",
        "argparse",
        "logging",
        "email",
        "asyncio",
    }
    assert not slow & set(loaded)
    assert "crc32c._crc32c" in loaded
    assert "crc32c" not in loaded


def test_the_checksum_is_castagnoli_s_takes_views_and_shares_its_module() -> None:
    program = """
from headwater.wire.crc import crc32c
assert crc32c(b"123456789") == 0xE3069283
assert crc32c(memoryview(bytearray(b"x123456789"))[1:]) == 0xE3069283
import crc32c as package
assert package.crc32c is crc32c
print("fine")
"""
    assert python(program) == "fine"


def test_the_checksum_falls_back_to_the_package_where_its_file_is_not_found() -> None:
    program = """
import importlib.machinery
importlib.machinery.EXTENSION_SUFFIXES.clear()
from headwater.wire.crc import crc32c
print(hex(crc32c(b"123456789")))
"""
    assert python(program) == "0xe3069283"
