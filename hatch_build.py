"""The build hook: compiles the C kernel of `wire` where a compiler is, and never fails an install.

No compiler, no Python.h, an error in the compiler or a binary that does not load: one line on stderr, and the
package is installed without it, so that its pure-Python twin runs. With the binary in, the wheel is tagged
cp311-abi3-<platform> (one for every Python from 3.11 on), without it py3-none-any. An editable install gets
the binary next to its module. It knows no network and downloads nothing.

Environment: CC (the compiler, with arguments); HEADWATER_KERNEL=off (do not compile) or =required (a release:
fail when it does not compile); HEADWATER_WHEEL_PLATFORM (cross-building: the platform tag, not loaded here).
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = Path("src/headwater/wire/_records.c")
BINARY = "_records.abi3.so"
COMPILE_SECONDS_MAX = 120  # the file takes one or two seconds; a stuck compiler must not hang an install


LOAD = """import sys, importlib.util as util
spec = util.spec_from_file_location("_records", sys.argv[1])
spec.loader.exec_module(util.module_from_spec(spec))"""


class NotBuilt(Exception):
    """Why there is no binary; the text is the line that the user sees."""


class KernelHook(BuildHookInterface):  # type: ignore[type-arg]
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        mode = os.environ.get("HEADWATER_KERNEL", "")
        source = Path(self.root) / SOURCE
        self.scratch = tempfile.mkdtemp(prefix="headwater-kernel-")
        binary = Path(self.scratch) / BINARY
        try:
            if mode == "off":
                raise NotBuilt("HEADWATER_KERNEL=off")
            compile_kernel(source, binary)
        except NotBuilt as why:
            if mode == "required":
                raise
            print(f"headwater: C kernel not built ({why}); the pure-Python twin is used.", file=sys.stderr)
            if version == "editable":
                source.with_name(BINARY).unlink(missing_ok=True)
            return
        self.take_in(version, binary, build_data)

    def take_in(self, version: str, binary: Path, build_data: dict[str, Any]) -> None:
        """Next to the module if editable, else into the wheel only: no binary stays in the tree."""
        beside = Path(self.root) / SOURCE.with_name(BINARY)
        if version == "editable":
            staged = beside.with_name(BINARY + ".new")
            try:
                shutil.copy(binary, staged)
                staged.replace(beside)  # a running process keeps the file it has mapped
            except OSError as error:  # a clone that may only be read
                print(f"headwater: C kernel not put beside its module: {error}", file=sys.stderr)
                return
        else:
            build_data["force_include"][str(binary)] = f"headwater/wire/{BINARY}"
        build_data["pure_python"] = False
        build_data["tag"] = f"cp311-abi3-{platform_tag()}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        shutil.rmtree(getattr(self, "scratch", ""), ignore_errors=True)


def platform_tag() -> str:
    here = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return os.environ.get("HEADWATER_WHEEL_PLATFORM") or here


def compiler() -> list[str]:
    chosen = os.environ.get("CC")
    if chosen:
        return shlex.split(chosen)
    for name in ("cc", "gcc", "clang"):
        found = shutil.which(name)
        if found:
            return [found]
    raise NotBuilt("no C compiler: cc, gcc or clang")


def compile_kernel(source: Path, binary: Path) -> None:
    """The limited API of Python 3.11: the one binary runs on every CPython from there on."""
    cross = bool(os.environ.get("HEADWATER_WHEEL_PLATFORM"))
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise NotBuilt("this Python has no limited C API")
    if os.name != "posix":
        raise NotBuilt("not done on this system yet")
    if not source.exists():
        raise NotBuilt(f"{SOURCE} is missing")
    include = Path(sysconfig.get_paths()["include"])
    if not (include / "Python.h").exists():
        raise NotBuilt("Python.h is missing; on Debian: apt install python3-dev")
    command = [*compiler(), "-O3", "-shared", "-fPIC", "-std=c11", "-fvisibility=hidden", "-DNDEBUG"]
    command += ["-DPy_LIMITED_API=0x030B0000", f"-I{include}", f"-I{sysconfig.get_paths()['platinclude']}"]
    if "macos" in platform_tag():
        command += ["-undefined", "dynamic_lookup"]
    run([*command, str(source), "-o", str(binary)], "the compiler")
    if not cross:
        run([sys.executable, "-I", "-c", LOAD, str(binary)], "loading it")


def run(command: list[str], what: str) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=COMPILE_SECONDS_MAX, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotBuilt(f"{what}: {error}") from error
    if done.returncode:
        said = done.stderr.splitlines() or ["no message"]
        reason = next((line for line in said if "error" in line.lower()), said[-1])
        raise NotBuilt(f"{what} failed: {reason.strip()[:300]}")
