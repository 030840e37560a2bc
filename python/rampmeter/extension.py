"""Selects the extension module `rampmeter._core`: that of the package, or a custom one."""

import mmap
import os
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Final

VARIABLE: Final = "RAMPMETER_EXTENSION"
"""Environment variable with the path of a custom library; `docs/howto/add-a-protocol.md`."""
FORMER: Final = "RAMPMETER_CORE"
"""Former name of the variable, which is an error."""

_NAME: Final = "rampmeter._core"


def is_extension(file: Path) -> bool:
    """Returns true if a file has the entry point of the extension module."""
    with file.open("rb") as stream:
        if not stream.read(4):
            return False
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as contents:
            return contents.find(b"PyInit__core") >= 0


def load() -> None:
    """Loads the library that the environment names, if any, before anything imports it.

    Raises `ImportError` if there is no such file, or if it is no library of this project.
    """
    if FORMER in os.environ:
        raise ImportError(f"{FORMER}: the variable is now {VARIABLE}")
    path = os.environ.get(VARIABLE)
    if not path or _NAME in sys.modules:
        return
    # Extension modules need plain text, and this runs before anything else of the package.
    if not os.path.isfile(path):  # noqa: PTH113
        raise ImportError(f"{VARIABLE}: expected a shared library, got {path}: no such file")
    spec = spec_from_file_location(_NAME, path, loader=ExtensionFileLoader(_NAME, path))
    assert spec is not None
    assert spec.loader is not None
    try:
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError as error:
        raise ImportError(f"{VARIABLE}: {path}: {error}") from None
    sys.modules[_NAME] = module
    package, attribute = _NAME.rsplit(".", 1)
    setattr(sys.modules[package], attribute, module)
