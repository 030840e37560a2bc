"""Selects the library of `rampmeter._core`: the package's own, or one with further transports."""

import os
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from typing import Final

VARIABLE: Final = "RAMPMETER_CORE"
"""The environment variable that names another library; `docs/howto/add-a-protocol.md`."""

_NAME: Final = "rampmeter._core"


def load() -> None:
    """Load the library that the environment names, if it names one, before anything imports it.

    Raises `ImportError` if there is no such file, or if it is not a core.
    """
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
