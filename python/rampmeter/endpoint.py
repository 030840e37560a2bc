"""Transports in Python: slow, for trying ideas on small networks.

An endpoint is the transport of one host. The simulator calls its methods; it decides what to send
when. What has arrived the simulator keeps account of itself, and checks as it does for every
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

`docs/howto/python-transport.md` goes through a whole one.
"""

import ast
import hashlib
import inspect
import json
import random
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from rampmeter._core import Host, MessageToSend, Packet
from rampmeter.schema import PYTHON
from rampmeter.spec import Transport, table_of
from rampmeter.toml import Table, TomlValue

BUILTIN: Final = "rampmeter.endpoints"
"""The module of classes that a plan may name without a module."""


class Endpoint(ABC):
    """The transport of one host. All times are in picoseconds since the start of the run.

    The simulator calls `submit`, `on_packet` and `on_timeout`, and then `poll_transmit` for as long
    as the link is idle and there is an answer. An exception ends the run with `EndpointError`.
    """

    deadline: int | None = None
    """When `on_timeout` is called; never if `None`, as it is again before each call."""

    def __init__(self, host: Host) -> None:
        """Begins at a host. Subclasses may take parameters, which are keywords of `transport`."""
        self.host = host
        self.random = random.Random(host.seed)
        """Random numbers that are the same in every run with the same seed."""

    @abstractmethod
    def submit(self, now: int, message: MessageToSend) -> None:
        """Takes a message that this host is to send."""

    @abstractmethod
    def on_packet(self, now: int, packet: Packet) -> None:
        """Takes a packet that has arrived."""

    def on_timeout(self, now: int) -> None:  # noqa: B027 (most endpoints have no need of it)
        """Does what was to be done at `deadline`."""

    @abstractmethod
    def poll_transmit(self, now: int) -> Packet | None:
        """Gives the next packet to send, made by `self.host`; `None` if there is nothing to send.

        It is called when the link is idle. After `None` it is called again once something has
        happened: a message, a packet or a timeout.
        """

    def wants_transmit(self) -> bool:
        """Whether `poll_transmit` may have a packet. `True`, as here, costs no more than a call."""
        return True

    def cancel(self, now: int, message: int) -> None:  # noqa: B027 (as above)
        """Forgets a message of this host, which is withdrawn or whose receiver is gone."""

    @classmethod
    def transport(cls, **parameters: Any) -> Transport:
        """The transport whose endpoints are of this class, called with these parameters.

        The plan names the class's file. Where it has none, or is the program itself, as in a
        notebook, the plan names the module, and can only be run by the same program. A class of a
        package is named by its module too.
        """
        file = getattr(sys.modules.get(cls.__module__), "__file__", None)
        _CLASSES[cls.__module__, cls.__qualname__] = cls
        is_local = cls.__module__ == "__main__" or "<locals>" in cls.__qualname__
        is_named = file is None or is_local or "." in cls.__module__
        where = {"module": cls.__module__} if is_named else {"file": str(Path(str(file)).resolve())}
        options: dict[str, TomlValue] = {**where, "endpoint": cls.__qualname__}
        if parameters:
            options["parameters"] = plain_table(parameters)
        return Transport(name=PYTHON, options=options)


_CLASSES: Final[dict[tuple[str, str], type[Endpoint]]] = {}
"""Classes of this program that a plan was asked to name, by module and name: also those that no
module has, as of functions and notebooks."""


def plain_table(parameters: Mapping[str, Any]) -> Table:
    """Parameters as keys of a plan: `timeout_ns` is `timeout-ns`."""
    return table_of("transport", {k.replace("_", "-"): v for k, v in parameters.items()})


def load(
    file: str | None, module: str | None, name: str, base: Path, parameters: str
) -> type[Endpoint]:
    """The class `name` of a file, which is relative to `base`, or of a module.

    A file is read anew each time, and so are files beside it that it imports.
    `parameters` are JSON. Raises `ValueError` where file and module are given, `TypeError` for what
    is no class of endpoints or does not take the parameters, and what importing raises.
    """
    if file is not None and module is not None:
        raise ValueError("expected either file or module, got both")
    value: Any = _CLASSES.get((module or BUILTIN, name)) if file is None else None
    if value is None:
        value = import_module(module or BUILTIN) if file is None else _module_of(base / file)
        for attribute in name.split("."):
            value = getattr(value, attribute)
    if not isinstance(value, type) or not issubclass(value, Endpoint):
        raise TypeError(f"expected a subclass of Endpoint, got {value!r}")
    if missing := sorted(getattr(value, "__abstractmethods__", ())):
        raise TypeError(f"expected the methods {', '.join(missing)}, there are none")
    named = {key.replace("-", "_"): of for key, of in json.loads(parameters).items()}
    inspect.signature(value).bind(None, **named)
    return value


def digests_of(table: Mapping[str, Any], base: Path) -> dict[str, str]:
    """What decides a Python transport besides the file that its table names: digests by name.

    These are the files beside it that it imports, directly or not; or the text of a class that was
    made in this program.
    """
    file, module, name = (table.get(key) for key in ("file", "module", "endpoint"))
    if isinstance(file, str):
        beside = files_beside(base / file)
        named = {str(Path(file).with_name(one.name)): one.read_bytes() for one in beside}
    else:
        made = _CLASSES.get((str(module), str(name)))
        if made is None or not (module == "__main__" or "<locals>" in made.__qualname__):
            return {}
        named = {f"{module}:{name}": _text_of(made).encode()}
    return {name: hashlib.sha256(text).hexdigest() for name, text in named.items()}


def _text_of(made: type) -> str:
    """The text of a class; what differs from class to class where there is none."""
    try:
        return inspect.getsource(made)
    except (OSError, TypeError):
        return f"{made!r} {id(made)}"


def files_beside(file: Path) -> list[Path]:
    """The Python files of its folder that a file imports, directly or not."""
    found: dict[str, Path] = {file.stem: file}
    to_read = [file]
    while to_read:
        try:
            tree = ast.parse(to_read.pop().read_bytes())
        except (OSError, SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            for stem in (name.partition(".")[0] for name in names):
                beside = file.with_name(f"{stem}.py")
                if stem not in found and beside.is_file():
                    found[stem] = beside
                    to_read.append(beside)
    return sorted(path for path in found.values() if path != file)


def _module_of(file: Path) -> ModuleType:
    """The module that a file holds."""
    if not file.is_file():
        raise FileNotFoundError(f"{file}: there is no such file")
    name = f"rampmeter_endpoint_{file.stem}"
    spec = spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file}: expected a Python file")
    module = module_from_spec(spec)
    # Data classes look for their module there.
    sys.modules[name] = module
    for beside in files_beside(file):
        sys.modules.pop(beside.stem, None)
    sys.path.insert(0, str(file.parent.resolve()))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.pop(0)
    return module
