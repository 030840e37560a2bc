"""The tables of a plan as Python classes, and any transport.

Each is a frozen dataclass whose fields are the keys of its table, with `_` for `-`. A field that is
`None` is omitted, so that the simulator's default applies. The simulator checks values; its errors
have the place, the expected value and the actual one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from inspect import Signature, getattr_static, signature
from os import PathLike
from typing import ClassVar, Final, Self, TypeAlias, get_args

from rampmeter._core import PlanError
from rampmeter.plan.former_names import former_name_error
from rampmeter.text.arguments import argument_error, shown
from rampmeter.text.locations import Location
from rampmeter.text.toml import Table, TomlValue, plain

Sizes: TypeAlias = str | Mapping[str, int | str | PathLike[str]]
"""A distribution's name, or `{"fixed": 71_540}`, or `{"cdf": "sizes.txt", "unit": "packets"}`."""

Hosts: TypeAlias = range | Mapping[str, int] | Sequence[int | str]
"""Hosts at equal distances, `range(0, 16, 4)`, or numbers and names, or as in plans."""

RANGES: Final = ("hosts", "peers", "senders", "receivers", "clients", "servers")
"""Fields of type `Hosts`."""


class _SignatureOfInit:
    """The signature of a class is that of `__init__`; inspection would take that of `__new__`."""

    def __get__(self, _: object, owner: type) -> Signature:
        whole = signature(getattr_static(owner, "__init__"))
        return whole.replace(parameters=[*whole.parameters.values()][1:])


@dataclass(frozen=True, kw_only=True, repr=False)
class PlanTable:
    """One table of a plan."""

    TAG: ClassVar[tuple[str, str] | None] = None
    __signature__: ClassVar[_SignatureOfInit] = _SignatureOfInit()

    def __new__(cls, *_: object, **arguments: object) -> Self:
        """Raises `PlanError` for the former name of a key, with the present one."""
        names = {field.name for field in fields(cls) if field.init}
        for name in arguments.keys() - names:
            value = arguments[name]
            if error := former_name_error(cls.__name__, _tag(cls), name, value, names):
                raise error
        return super().__new__(cls)

    def __repr__(self) -> str:
        """Returns the call that makes the object, with the fields that are set."""
        found = {field.name: getattr(self, field.name) for field in fields(self) if field.init}
        keys = ", ".join(f"{name}={of!r}" for name, of in found.items() if of is not None)
        return f"{type(self).__name__}({keys})"

    def table(self) -> dict[str, TomlValue]:
        """Returns the keys that are set, by their names in plans."""
        table: dict[str, TomlValue] = dict([self.TAG]) if self.TAG else {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, range) and field.name in RANGES:
                value = hosts_table(value)
            if value is not None:
                argument = f"{type(self).__name__}({field.name}=...)"
                key = field.name.replace("_", "-")
                table[key] = plain_value(_whole(value, field.type), argument)
        return table


def _tag(cls: type[PlanTable]) -> tuple[str, str] | None:
    """Returns the key and the value that select the form of a table, if its class has them."""
    name = next((one.default for one in fields(cls) if one.name == "name" and not one.init), None)
    return ("name", name) if isinstance(name, str) else cls.TAG


def _whole(value: object, kind: object) -> object:
    """Returns a number such as `1e6` as an integer if a field admits only these."""
    kinds = get_args(kind)
    if isinstance(value, float) and value.is_integer() and int in kinds and float not in kinds:
        return int(value)
    return value


def table_of(name: str, part: object) -> Table:
    """Returns a table of a plan from an object or a mapping.

    Raises `TypeError` for another value, or for one in it that plans lack.
    """
    if isinstance(part, PlanTable):
        return part.table()
    if isinstance(part, Mapping):
        return {str(key): plain_value(value, f"{name}: {key}") for key, value in part.items()}
    hint = "; `rm.flows(table)` makes a workload of a table" if hasattr(part, "columns") else ""
    if isinstance(part, type) and issubclass(part, PlanTable):
        hint = f"; `{part.__name__}(...)` makes one"
    raise TypeError(f"{name}: expected a part of a plan or a mapping, got {shown(part)}{hint}")


def hosts_table(hosts: range) -> dict[str, int]:
    """Returns hosts as in plans; raises `PlanError` for a range that descends.

    >>> hosts_table(range(4, 8))
    {'first': 4, 'count': 4}
    >>> hosts_table(range(0, 16, 4))
    {'first': 0, 'count': 4, 'step': 4}
    """
    if hosts.step < 1:
        raise argument_error("hosts", "hosts with ascending numbers", hosts)
    step = {} if hosts.step == 1 else {"step": hosts.step}
    return {"first": hosts.start, "count": len(hosts), **step}


def plain_value(value: object, argument: str) -> TomlValue:
    """Returns a value as in plans; `argument` names it in errors.

    Raises `TypeError` for a value that plans lack.
    """
    if isinstance(value, PlanTable):
        return value.table()
    if isinstance(value, Mapping):
        return {str(k): plain_value(v, argument) for k, v in value.items()}
    if isinstance(value, list | tuple | range):
        return [plain_value(item, argument) for item in value]
    try:
        return plain(value)
    except TypeError:
        expected = "expected a number, a text, or a list or mapping of such"
        raise TypeError(f"{argument}: {expected}, got {shown(value)}") from None


@dataclass(frozen=True, kw_only=True, repr=False)
class Transport(PlanTable):
    """A transport with the name `name` in plans; `options` has the keys of its table.

    `rampmeter.transports` has a class for each transport of the package. This one also supports
    those of a custom core:

    >>> Transport(name="stop-and-wait", options={"timeout-us": 60}).table()
    {'name': 'stop-and-wait', 'timeout-us': 60}
    """

    SYMBOLS: ClassVar[Mapping[str, str]] = {}
    """Abbreviated fields, such as the paper's `r` for `matching_rounds`."""

    name: str
    preset: str | None = None
    """Source of the values of omitted keys."""
    options: Table | None = None
    """Further keys, by their names in plans."""

    def __post_init__(self) -> None:
        """Raises `PlanError` if a key has two values, by its symbol or in `options`."""
        if not isinstance(self.options, Mapping | None):
            raise argument_error("options", "a mapping of keys of the transport", self.options)
        keys = {field.name for field in fields(self) if getattr(self, field.name) is not None}
        for symbol, key in self.SYMBOLS.items():
            if {symbol, key} <= keys:
                got = f"both, {getattr(self, symbol)!r} and {getattr(self, key)!r}"
                raise self._error(f"one of {symbol} and {key}", got)
        named = {self.SYMBOLS.get(key, key).replace("_", "-") for key in keys}
        if twice := named & {str(key) for key in self.options or {}}:
            raise self._error("keys that differ", f"{min(twice)} as a field and in options")

    def _error(self, expected: str, got: str) -> PlanError:
        return Location(key=type(self).__name__).error(expected=expected, got=got)

    def table(self) -> dict[str, TomlValue]:
        """Returns the transport table."""
        table = super().table()
        table.pop("options", None)
        for symbol, key in self.SYMBOLS.items():
            if symbol in table:
                table[key.replace("_", "-")] = table.pop(symbol)
        return table | dict(self.options or {})
