"""The C kernel for tests: the installed one, or one compiled for this run where a compiler is."""

from __future__ import annotations

import functools
import importlib.util
import os
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from types import ModuleType

import pytest

import headwater.wire

SOURCE = Path(headwater.wire.__file__).with_name("_records.c")
COMPILE_SECONDS_MAX = 120


class NoCompiler(Exception):
    pass


def compiler() -> list[str]:
    command = shlex.split(os.environ.get("CC", "")) or ["cc"]
    headers = Path(sysconfig.get_path("include"), "Python.h")
    if shutil.which(command[0]) is None or not headers.exists():
        raise NoCompiler("neither a built C kernel nor a C compiler with Python.h is here")
    return command


def compile_kernel(folder: Path, *options: str, source: Path = SOURCE) -> Path:
    """Compile `_records.c` with every warning an error."""
    target = folder / "_records.abi3.so"
    warnings = [
        "-Wall",
        "-Wextra",
        "-Wconversion",
        "-Wno-sign-conversion",
        "-Wno-unused-parameter",
        "-Werror",
    ]
    include = sysconfig.get_path("include")
    command = [
        *compiler(),
        *warnings,
        *options,
        "-shared",
        "-fPIC",
        f"-I{include}",
        str(source),
        "-o",
        str(target),
    ]
    subprocess.run(command, check=True, timeout=COMPILE_SECONDS_MAX)
    return target


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("_records", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.cache
def _find() -> ModuleType | str:
    try:
        # Compiled afresh where that is possible: what is installed may be older than the source.
        with tempfile.TemporaryDirectory() as folder:
            return load(compile_kernel(Path(folder), "-O3"))
    except NoCompiler as reason:
        built = SOURCE.with_name("_records.abi3.so")
        return load(built) if built.exists() else str(reason)


def c_kernel() -> ModuleType:
    """The module, or the test is skipped by name."""
    found = _find()
    if isinstance(found, str):
        pytest.skip(found)
    return found
