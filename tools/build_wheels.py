"""Builds the release wheels: one per platform with the C kernel in it, one without for everybody else.

`python tools/build_wheels.py [PLATFORM ...]` writes to dist/. It needs `ziglang` and `hatchling` in the Python
that runs it (./hw never installs the former): zig is a C compiler for every target in one package, so no machine
of each kind is needed. Each wheel is opened again to check its binary's kind; this machine's is also loaded.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
# platform tag -> zig's target, and what the file has to begin with (kind and processor)
ELF_X86, ELF_ARM = (
    b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\0\x3e\0",
    b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\0\xb7\0",
)
MACHO_X86, MACHO_ARM = b"\xcf\xfa\xed\xfe\x07\0\0\x01", b"\xcf\xfa\xed\xfe\x0c\0\0\x01"
PLATFORMS = {
    "manylinux_2_17_x86_64.manylinux2014_x86_64": ("x86_64-linux-gnu.2.17", ELF_X86),
    "manylinux_2_17_aarch64.manylinux2014_aarch64": ("aarch64-linux-gnu.2.17", ELF_ARM),
    "musllinux_1_2_x86_64": ("x86_64-linux-musl", ELF_X86),
    "musllinux_1_2_aarch64": ("aarch64-linux-musl", ELF_ARM),
    "macosx_11_0_x86_64": ("x86_64-macos.11.0", MACHO_X86),
    "macosx_11_0_arm64": ("aarch64-macos.11.0", MACHO_ARM),
}
BINARY = "headwater/wire/_records.abi3.so"


def build(platform: str | None) -> Path:
    """One wheel; without a platform the pure one."""
    environment = {**os.environ, "HEADWATER_KERNEL": "off"}
    if platform is not None:
        target, _ = PLATFORMS[platform]
        environment |= {
            "CC": f"{sys.executable} -m ziglang cc -target {target}",
            "HEADWATER_KERNEL": "required",
            "HEADWATER_WHEEL_PLATFORM": platform,
        }
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(DIST)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{platform or 'pure'}: {done.stderr.strip().splitlines()[-1]}")
    (wheel,) = DIST.glob(f"*-{'cp311-abi3' if platform else 'py3-none'}-{platform or 'any'}.whl")
    return wheel


def check(platform: str, wheel: Path) -> str:
    """The binary is what the tag says; where it is this machine's kind, it also loads."""
    content = zipfile.ZipFile(wheel).read(BINARY)
    _, beginning = PLATFORMS[platform]
    if not content.startswith(beginning):
        raise SystemExit(f"{wheel.name}: the binary begins with {content[:20]!r}")
    machine = sysconfig.get_platform().replace("-", "_")
    if (
        machine.startswith("linux")
        and "manylinux" in platform
        and platform.endswith(machine.removeprefix("linux"))
    ):
        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / "_records.abi3.so"
            path.write_bytes(content)
            spec = importlib.util.spec_from_file_location("_records", path)
            assert spec is not None
            assert spec.loader is not None
            spec.loader.exec_module(importlib.util.module_from_spec(spec))
        return "loads here"
    return "not of this machine's kind, not loaded"


def main(wanted: list[str]) -> int:
    unknown = [name for name in wanted if name not in PLATFORMS]
    if unknown:
        print(f"unknown: {', '.join(unknown)}; known: {', '.join(PLATFORMS)}", file=sys.stderr)
        return 2
    if importlib.util.find_spec("ziglang") is None:
        print("tools/build_wheels.py needs zig. Type: pip install ziglang hatchling", file=sys.stderr)
        return 2
    DIST.mkdir(exist_ok=True)
    for old in DIST.glob("headwater-*.whl"):
        old.unlink()
    for platform in wanted or PLATFORMS:
        wheel = build(platform)
        print(f"{wheel.name}: {wheel.stat().st_size // 1024} kB, {check(platform, wheel)}")
    print(f"{build(None).name}: pure")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
