"""The tables of a plan as Python classes, and any transport.

Each is a frozen dataclass whose fields are the keys of its table, with `_` for `-`. A field that is
`None` is omitted, so that the simulator's default applies. The simulator checks values; its errors
have the place, the expected value and the actual one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from os import PathLike
from typing import ClassVar, Final, TypeAlias

from rampmeter.text.toml import Table, TomlValue, plain

Sizes: TypeAlias = str | Mapping[str, int | str | PathLike[str]]
"""A distribution's name, or `{"fixed": 71_540}`, or `{"cdf": "sizes.txt", "unit": "packets"}`."""

Hosts: TypeAlias = range | Mapping[str, int] | Sequence[int | str]
"""Hosts at equal distances, `range(0, 16, 4)`, or numbers and names, or as in plans."""

RANGES: Final = ("hosts", "peers", "senders", "receivers", "clients", "servers")
"""Fields of type `Hosts`."""


@dataclass(frozen=True, kw_only=True)
class PlanTable:
    """One table of a plan."""

    TAG: ClassVar[tuple[str, str] | None] = None

    def table(self) -> dict[str, TomlValue]:
        """Returns the keys that are set, by their names in plans."""
        table: dict[str, TomlValue] = dict([self.TAG]) if self.TAG else {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, range) and field.name in RANGES:
                value = hosts_table(value)
            if value is not None:
                argument = f"{type(self).__name__}({field.name}=...)"
                table[field.name.replace("_", "-")] = _plain(value, argument)
        return table


def table_of(name: str, part: object) -> Table:
    """Returns a table of a plan from an object or a mapping; raises `TypeError` otherwise."""
    if isinstance(part, PlanTable):
        return part.table()
    if isinstance(part, Mapping):
        return {str(key): _plain(value, f"{name}: {key}") for key, value in part.items()}
    hint = "; `rm.flows(table)` makes a workload of a table" if hasattr(part, "columns") else ""
    if isinstance(part, type) and hasattr(part, "transport"):
        hint = f"; `{part.__name__}.transport()` makes one"
    raise TypeError(f"{name}: expected a part of a plan or a mapping, got {_kind(part)}{hint}")


def hosts_table(hosts: range) -> dict[str, int]:
    """Returns hosts as in plans; raises `ValueError` for a range that descends.

    >>> hosts_table(range(4, 8))
    {'first': 4, 'count': 4}
    >>> hosts_table(range(0, 16, 4))
    {'first': 0, 'count': 4, 'step': 4}
    """
    if hosts.step < 1:
        raise ValueError(f"expected hosts with ascending numbers, got {hosts!r}")
    step = {} if hosts.step == 1 else {"step": hosts.step}
    return {"first": hosts.start, "count": len(hosts), **step}


def _plain(value: object, argument: str) -> TomlValue:
    """Returns a value as in plans; `argument` names it in errors."""
    if isinstance(value, PlanTable):
        return value.table()
    if isinstance(value, Mapping):
        return {str(k): _plain(v, argument) for k, v in value.items()}
    if isinstance(value, list | tuple | range):
        return [_plain(item, argument) for item in value]
    try:
        return plain(value)
    except TypeError:
        expected = "expected a number, a text, or a list or mapping of such"
        raise TypeError(f"{argument}: {expected}, got {_kind(value)}") from None


def _kind(value: object) -> str:
    """Returns a value's type for an error, since a table would fill the screen."""
    return f"a value of type {type(value).__module__}.{type(value).__qualname__}"


@dataclass(frozen=True, kw_only=True)
class Transport(PlanTable):
    """A transport with the name `name` in plans; `options` has the keys of its table.

    `rampmeter.transports` has a class for each transport of the package. This one also supports
    those of a custom core:

    >>> Transport(name="stop-and-wait", options={"timeout-ns": 60_000}).table()
    {'name': 'stop-and-wait', 'timeout-ns': 60000}
    """

    SYMBOLS: ClassVar[Mapping[str, str]] = {}
    """Abbreviated fields, such as the paper's `r` for `rounds`."""

    name: str
    preset: str | None = None
    """Source of the values of omitted keys."""
    options: Table | None = None
    """Further keys, by their names in plans."""

    def table(self) -> dict[str, TomlValue]:
        """Returns the transport table."""
        table = super().table()
        table.pop("options", None)
        for symbol, key in self.SYMBOLS.items():
            if symbol in table:
                if key in table:
                    raise ValueError(f"expected one of {symbol} and {key}, got both")
                table[key] = table.pop(symbol)
        return table | dict(self.options or {})
