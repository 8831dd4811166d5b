"""CRC-32C over any buffer, writable ones included, without a copy.

Only the extension module inside the package `crc32c` is loaded: the package's own `__init__` imports
`importlib.metadata` to learn its version, which costs every broker 30 ms of its start.
"""

from __future__ import annotations

import sys
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from typing import Any, Protocol

_NAME = "crc32c._crc32c"


class _Checksum(Protocol):
    def __call__(self, data: Any, value: int = 0, /) -> int: ...


def _load_alone() -> Any:
    """The extension module by its file, or None where it is not in a plain directory on sys.path."""
    for folder in sys.path:
        for suffix in EXTENSION_SUFFIXES:
            path = f"{folder}/crc32c/_crc32c{suffix}"
            loader = ExtensionFileLoader(_NAME, path)
            try:
                module = loader.create_module(ModuleSpec(_NAME, loader, origin=path))
                loader.exec_module(module)
            except ImportError:
                continue
            return module
    return None


def _load() -> _Checksum:
    module = sys.modules.get(_NAME) or _load_alone()
    checksum: _Checksum | None = getattr(module, "crc32c", None)
    if checksum is None:
        from crc32c import crc32c as checksum_by_import

        return checksum_by_import
    # Under its own name, so that a later `import crc32c` by somebody else shares it.
    sys.modules.setdefault(_NAME, module)
    return checksum


crc32c = _load()
