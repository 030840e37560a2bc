"""Transports in Python: slow, for experiments on small networks.

An endpoint is the transport of one host. The simulator calls its methods; the endpoint chooses the
next packet and its time. The simulator itself records arrivals, and checks them as for every
transport: no byte is delivered twice, no message is completed before it is delivered.

>>> class Blast(Endpoint):
...     '''Sends every packet once, and believes that all arrive.'''
...     def __init__(self, host):
...         super().__init__(host)
...         self.waiting = []
...     def submit(self, now, message):
...         self.waiting += [(message, index) for index in range(message.packets)]
...     def on_packet(self, now, packet):
...         pass
...     def poll_transmit(self, now):
...         if not self.waiting:
...             return None
...         message, index = self.waiting.pop(0)
...         return self.host.data(message.id, index)

`docs/howto/python-transport.md` describes a complete one.
"""

import hashlib
import inspect
import json
import random
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import CellType, CodeType, ModuleType
from typing import Any, Final

from rampmeter._core import Host, MessageToSend, Packet
from rampmeter.plan.base import Transport, table_of
from rampmeter.plan.endpoint_files import BUILTIN, sibling_files
from rampmeter.plan.schema import PYTHON
from rampmeter.text.toml import Table, TomlValue


class Endpoint(ABC):
    """The transport of one host. All times are in picoseconds since the start of the run.

    The simulator calls `submit`, `on_packet` and `on_timeout`. It then calls `poll_transmit` while
    the link is idle and the call returns a packet. An exception ends the run with `EndpointError`.
    """

    deadline: int | None = None
    """Time of the next call of `on_timeout`; `None` if there is none, and during that call."""

    def __init__(self, host: Host) -> None:
        """Initialises the endpoint. Subclasses may have parameters, keywords of `transport`."""
        self.host = host
        self.random = random.Random(host.seed)
        """Random numbers that are the same in every run with the same seed."""

    @abstractmethod
    def submit(self, now: int, message: MessageToSend) -> None:
        """Submits a message that this host is to send."""

    @abstractmethod
    def on_packet(self, now: int, packet: Packet) -> None:
        """Handles a packet that has arrived."""

    def on_timeout(self, now: int) -> None:  # noqa: B027 (most endpoints have no need of it)
        """Handles the expiry of `deadline`."""

    @abstractmethod
    def poll_transmit(self, now: int) -> Packet | None:
        """Returns the next packet to send, made by `self.host`; `None` if there is nothing to send.

        It is called when the link is idle. After `None` it is called again after the next event: a
        message, a packet or a timeout.
        """

    def wants_transmit(self) -> bool:
        """Returns true if `poll_transmit` may have a packet; always true by default.

        A class that overrides this saves calls of `poll_transmit` when it has nothing to send.
        """
        return True

    @classmethod
    def transport(cls, **parameters: Any) -> Transport:
        """Returns a transport with endpoints of this class, constructed with these parameters.

        The plan names the class's file. If there is none, or if it is the program itself, as in a
        notebook, the plan names the module. Such a plan can only be run by the same program. A
        class of a package is named by its module too.
        """
        file = getattr(sys.modules.get(cls.__module__), "__file__", None)
        is_local = cls.__module__ == "__main__" or "<locals>" in cls.__qualname__
        name = cls.__qualname__
        if file is None or is_local:
            # Other classes of this program may have the same name, as after a change of a notebook.
            name = f"{name}@{_fingerprint(cls)}"
            _CLASSES[cls.__module__, name] = cls
        is_named = file is None or is_local or "." in cls.__module__
        where = {"module": cls.__module__} if is_named else {"file": str(Path(str(file)).resolve())}
        options: dict[str, TomlValue] = {**where, "endpoint": name}
        parameters = {key: value for key, value in parameters.items() if value is not None}
        if parameters:
            options["parameters"] = plain_table(parameters)
        return Transport(name=PYTHON, options=options)


_CLASSES: Final[dict[tuple[str, str], type[Endpoint]]] = {}
"""Classes of this program that have no file, by module and name."""


def _fingerprint(cls: type) -> str:
    """Returns a digest that distinguishes a class from others of its name.

    It covers the code of the methods and the values they use.
    """
    digest = hashlib.sha256()
    for base in cls.__mro__[: cls.__mro__.index(Endpoint)]:
        for name, value in sorted(vars(base).items()):
            if inspect.isfunction(value):
                cells = [_contents(cell) for cell in value.__closure__ or ()]
                used = (_code(value.__code__), value.__defaults__, value.__kwdefaults__, cells)
                digest.update(repr((name, *used)).encode())
            elif name not in (
                "__module__",
                "__doc__",
                "__dict__",
                "__weakref__",
                "__firstlineno__",
            ):
                digest.update(repr((name, value)).encode())
    return digest.hexdigest()[:8]


def _contents(cell: CellType) -> object:
    """Returns the value that a method closes over; `None` for a variable without one yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _code(code: CodeType) -> tuple[Any, ...]:
    """Returns the parts of a function's code that do not depend on its place in a file."""
    constants = [_code(one) if isinstance(one, CodeType) else one for one in code.co_consts]
    return code.co_code, constants, code.co_names


def plain_table(parameters: Mapping[str, Any]) -> Table:
    """Returns parameters as keys of a plan: `timeout_us` is `timeout-us`."""
    return table_of("transport", {k.replace("_", "-"): v for k, v in parameters.items()})


def load(
    file: str | None, module: str | None, name: str, base: Path, parameters: str
) -> partial[Endpoint]:
    """Loads the class `name` of a file or of a module, and binds its parameters.

    A file is relative to `base`. It is read again each time, and so are files next to it that it
    imports. `parameters` is JSON. Raises `ValueError` for both file and module. Raises
    `TypeError` for a value that is no class of endpoints or rejects the parameters. Import
    errors are raised unchanged.
    """
    if file is not None and module is not None:
        raise ValueError("expected either file or module, got both")
    value: Any = _CLASSES.get((module or BUILTIN, name)) if file is None else None
    if value is None:
        try:
            value = import_module(module or BUILTIN) if file is None else _module_of(base / file)
        except Exception as error:
            text = f"{file or module} cannot be imported: {type(error).__name__}: {error}"
            raise ImportError(text) from error
        for attribute in name.split("."):
            value = getattr(value, attribute)
    if not isinstance(value, type) or not issubclass(value, Endpoint):
        raise TypeError(f"expected a subclass of Endpoint, got {value!r}")
    if missing := sorted(getattr(value, "__abstractmethods__", ())):
        raise TypeError(f"expected the methods {', '.join(missing)}, there are none")
    named = {key.replace("-", "_"): of for key, of in json.loads(parameters).items()}
    inspect.signature(value).bind(None, **named)
    return partial(value, **named)


_LOADING: Final[set[Path]] = set()
_LOADED: Final[dict[str, Path]] = {}
"""Modules that were imported for a file of endpoints, by name."""
_FOLDERS: Final[set[str]] = set()
"""Folders that were appended to Python's import path for files of endpoints."""
_LOCK: Final = threading.RLock()


def _module_of(file: Path) -> ModuleType:
    """Imports the module in a file.

    Its folder stays on Python's import path, before those of other files: their modules may have
    the same names as those next to this one.
    """
    file = file.resolve()
    if not file.is_file():
        raise FileNotFoundError(f"{file}: there is no such file")
    name = f"rampmeter_endpoint_{hashlib.sha256(str(file).encode()).hexdigest()[:8]}_{file.stem}"
    spec = spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file}: expected a Python file")
    with _LOCK:
        if file in _LOADING:
            raise RuntimeError(
                f"{file.name} starts a run while it is imported; expected that below "
                'if __name__ == "__main__"'
            )
        _prefer(str(file.parent))
        neighbours = {one.stem: one for one in sibling_files(file)}
        for stem in neighbours:
            # Modules that the program itself has imported stay loaded.
            if getattr(sys.modules.get(stem), "__file__", "") == str(_LOADED.get(stem)):
                del sys.modules[stem]
        before = set(sys.modules)
        module = module_from_spec(spec)
        # Data classes look up their module in `sys.modules`.
        sys.modules[name] = module
        _LOADING.add(file)
        try:
            spec.loader.exec_module(module)
        finally:
            _LOADING.discard(file)
            _LOADED.update({s: p for s, p in neighbours.items() if s not in before})
    return module


def _prefer(folder: str) -> None:
    """Puts a folder on Python's import path, before other folders of endpoints."""
    if folder in _FOLDERS and folder in sys.path:
        sys.path.remove(folder)
    elif folder in sys.path:
        return
    others = [place for place, path in enumerate(sys.path) if path in _FOLDERS]
    sys.path.insert(min(others, default=len(sys.path)), folder)
    _FOLDERS.add(folder)
