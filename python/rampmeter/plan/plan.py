"""Plans: everything that determines the result of a run, as TOML."""

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from rampmeter import _core
from rampmeter._core import PlanError
from rampmeter.plan.base import plain_value, table_of
from rampmeter.plan.endpoint_files import digests_of
from rampmeter.plan.manifest import is_manifest, plan_of
from rampmeter.plan.schema import PYTHON
from rampmeter.plan.tables_in_memory import cite_table
from rampmeter.plan.transport_names import TransportName, is_transport, transport_table
from rampmeter.text.arguments import (
    argument_error,
    path_argument,
    text_argument,
    whole_argument,
)
from rampmeter.text.cautions import Caution
from rampmeter.text.decoder_errors import plain_error
from rampmeter.text.files import write_text
from rampmeter.text.locations import Location, undecodable, unreadable
from rampmeter.text.toml import (
    WHOLE_MAX,
    TomlValue,
    check_whole_numbers,
    compact,
    dates,
    dumps,
    number,
    parse,
    parse_value,
)

Override: TypeAlias = tuple[str, Any]
"""A key's path and its new value, such as `("workload.load", 0.7)`.

The value may be a part of a plan, such as an object of `rampmeter.transports`."""

ARGUMENTS = "arguments"
"""The origin of plans that were made of a call's arguments, not of a file."""

TRANSPORT = "transport"

_NAMED = re.compile(r"""^\s*transport\s*=\s*["'\[]""", re.MULTILINE)
"""A transport that is a text, or a list, which may have texts."""

BYTE_ORDER_MARK = "\ufeff"
"""The mark that some editors write at the start of a file. It is not part of a plan."""

FILE_KEYS = ("file", "cdf", "groups-file", "groups")
"""Keys that name files; the last one in plans of earlier versions."""

HTML_LINES = 100
"""Maximum number of lines of a plan in a notebook."""
SWEEP = "sweep"
"""The table of a plan with the points of a sweep. It is not part of a run."""


@dataclass(frozen=True, repr=False)
class Plan:
    """A plan as TOML text. Its values are checked when it runs, or by `check`.

    A run ignores the table `[sweep]`.
    """

    text: str
    """The text without a byte order mark."""
    base: Path = Path()
    """Folder that relative file names in it are relative to."""
    origin: str = "plan"
    """Name of the plan in errors."""
    is_rewritten: bool = field(default=False, kw_only=True, compare=False)
    """True if the text was made from a table, so that its lines are not those of the file."""

    def __post_init__(self) -> None:
        text = text_argument("text", self.text).removeprefix(BYTE_ORDER_MARK)
        object.__setattr__(self, "text", text)
        if _NAMED.search(text) and (table := _with_tables(text)) is not None:
            object.__setattr__(self, "text", dumps(table))
            object.__setattr__(self, "is_rewritten", True)

    def __repr__(self) -> str:
        """Returns the origin and the length of the plan; its text would fill the screen."""
        return f"Plan({self.origin!r}, {len(self.text.splitlines())} lines)"

    def _repr_html_(self) -> str:
        lines = self.text.splitlines()
        more = f"\n... ({len(lines)} lines)" if len(lines) > HTML_LINES else ""
        short = [f"{line[:200]}..." if len(line) > 200 else line for line in lines[:HTML_LINES]]
        return f"<pre>{escape(chr(10).join(short))}{more}</pre>"

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Plan":
        """Reads a plan from a file: TOML, or the `manifest.json` of a result, whose plan it is.

        Raises `PlanError` if it cannot be read or is not TOML.
        """
        file = path_argument("plan", path)
        if is_manifest(file):
            text, base = plan_of(file)
            # Lines of the text are not those of the manifest.
            return cls(text, base, str(file), is_rewritten=True)
        try:
            text = file.read_text(encoding="utf-8")
        except OSError as error:
            raise unreadable(file, error) from None
        except UnicodeDecodeError as error:
            raise undecodable(file, error) from None
        plan = cls(text, file.parent, str(file))
        _ = plan._parsed
        return plan

    @classmethod
    def of(
        cls,
        *,
        seed: int = 1,
        base: str | PathLike[str] = ".",
        **parts: TransportName | Sequence[TransportName] | None,
    ) -> "Plan":
        """Returns a plan from its parts: `topology`, `transport`, `workload` and other tables.

        A transport is a table, an object or a class of `rampmeter.transports`, or a text such as
        `"dcpim:paper"`. A list of transports shares the network: tenant n uses transport n. Raises
        `PlanError` or `TypeError` for a part that is no table.
        """
        table: dict[str, TomlValue] = {"seed": whole_argument("seed", seed, 0, WHOLE_MAX)}
        for name, part in parts.items():
            if part is not None:
                table[name] = part_of(name, part)
        check_whole_numbers(table, Location())
        return cls(dumps(table), path_argument("base", base), ARGUMENTS)

    def location(self, key: str = "") -> Location:
        """Returns the location of a key for errors. Plans of arguments have no file."""
        return Location("" if self.origin == ARGUMENTS else self.origin, key)

    def table(self) -> dict[str, Any]:
        """Returns the plan as a nested table. A list of one transport becomes its table."""
        return deepcopy(self._parsed)

    @cached_property
    def _parsed(self) -> dict[str, Any]:
        """The table of the plan, which is parsed once and must not be changed."""
        table = parse(self.text, self.location())
        match table.get("transport"):
            case [dict(only)]:
                table["transport"] = only
        return table

    @property
    def sweep(self) -> Mapping[str, Any] | None:
        """The table `[sweep]`, if there is one (`rampmeter.sweeps`).

        Raises `PlanError` if it is not a table.
        """
        sweep = self.get(SWEEP)
        if not isinstance(sweep, Mapping | None):
            raise self.location(SWEEP).error(expected="a table", got=repr(sweep))
        return sweep

    def without_sweep(self) -> "Plan":
        """Returns the plan without its table `[sweep]`."""
        table = self.table()
        if table.pop(SWEEP, None) is None:
            return self
        return Plan(dumps(table), self.base, self.origin, is_rewritten=True)

    def transports(self) -> list[dict[str, Any]]:
        """Returns the tables of the transports that share the network; empty if the plan has none.

        Raises `PlanError` if `transport` is neither a table nor a list of tables.
        """
        value = self.get("transport", [])
        tables = value if isinstance(value, list) else [value]
        for table in tables:
            if not isinstance(table, dict):
                raise self.location("transport").error(
                    expected="a table or a list of tables", got=repr(table)
                )
        return tables

    def get(self, key: str, default: Any = None) -> Any:
        """Returns the value at a path such as `workload.load` as written in the plan, or `default`.

        A quantity may be a text such as `25Gbps`; `resolved` returns its number.
        """
        value = _value_at(self._parsed, key, default)
        return value if value is default else deepcopy(value)

    def resolved(self, key: str, default: Any = None) -> Any:
        """Returns the value at a path without units, or `default` if the plan does not set it.

        Numbers are in the unit that ends the key. Raises `PlanError` if the value is a text, a
        table or a list, and the plan cannot run.

        >>> Plan("[run]\\ndrain-us = 5.0").resolved("run.drain-us")
        5.0
        """
        value = _value_at(self._parsed, key, default)
        if value is default or isinstance(value, int | float):
            return value
        return _value_at(self.check(), key, default)

    @property
    def seed(self) -> int:
        """The seed of all random streams; raises `PlanError` if it is no whole number."""
        seed = self.get("seed", 1)
        if not isinstance(seed, int) or isinstance(seed, bool):
            raise self.location("seed").error(expected="a whole number", got=repr(seed))
        return seed

    def with_(self, *overrides: Override | Mapping[str, Any]) -> "Plan":
        """Returns the plan with some values changed: pairs of key and value, or mappings.

        Raises `PlanError` for a bad key, and `TypeError` for a value that plans lack.

        >>> plan = Plan("seed = 1").with_({"workload.load": 0.7, "transport": "dcpim"})
        >>> plan.get("workload.load"), plan.get("transport.name")
        (0.7, 'dcpim')
        """
        if not overrides:
            return self
        return Plan(dumps(self._changed(overrides)), self.base, self.origin, is_rewritten=True)

    def _changed(self, overrides: Sequence[object]) -> dict[str, Any]:
        table = self.table()
        for key, value in _pairs(overrides):
            plain = _value_of(key, value)
            check_whole_numbers(plain, self.location(key))
            # A copy, since later overrides may change its contents.
            _assign(table, key, deepcopy(plain))
        return table

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the plan into a file, which `load` and the command read.

        Relative names of files in it are rewritten for the new folder. Raises `OSError` if the file
        cannot be written.
        """
        file = path_argument("path", path)
        table, text = self.table(), self.text
        found = [(of, key) for of, key in file_keys(table) if not Path(of[key]).is_absolute()]
        if found and file.parent.resolve() != self.base.resolve():
            for of, key in found:
                target = os.path.relpath((self.base / of[key]).resolve(), file.parent.resolve())
                of[key] = Path(target).as_posix()
            text = dumps(table)
        write_text(file, text)

    def check(self) -> dict[str, Any]:
        """Returns the plan with all defaults; raises `PlanError` if it cannot run.

        If it has a table `[sweep]`, each value and transport of that is checked once, too.
        """
        complete = self.check_run()
        if self.sweep is not None:
            # Sweeps are made of plans, so their module is imported on demand.
            sweep = import_module("rampmeter.sweeps.table").sweep_of(self)
            sweep.check(each_value_once=True)
        return complete

    def check_run(self) -> dict[str, Any]:
        """Returns the same, but ignores the table `[sweep]`, as a run does."""
        return self._decoded(_core.check)

    @property
    def warnings(self) -> list[Caution]:
        """Likely mistakes, each a sentence with its code and values.

        Examples are unused columns of traces, and a load that the core cannot carry. Raises
        `PlanError` if the plan cannot run.
        """
        try:
            found = _core.warnings(self.text, str(self.base))
        except PlanError as error:
            raise self.locate_error(error) from None
        return [Caution(text, code, json.loads(values)) for code, text, values in found]

    def derived(self) -> dict[str, float]:
        """Returns values derived from plan and network; names end in their units."""
        return self._decoded(_core.derived)

    def offered(self) -> dict[str, Any]:
        """Returns the traffic that the workload offers: mean size, and load by tier of links."""
        return self._decoded(_core.offered)

    def drawing(self) -> dict[str, Any]:
        """Returns nodes and links of the network, for `rampmeter.plots.topology`."""
        return self._decoded(_core.drawing)

    def _decoded(self, function: Callable[[str, str], str]) -> dict[str, Any]:
        """Calls a function of the simulator with the plan and decodes the JSON that it returns."""
        try:
            decoded: dict[str, Any] = json.loads(function(self.text, str(self.base)))
        except PlanError as error:
            raise self.locate_error(error) from None
        return decoded

    def locate_error(self, error: PlanError) -> PlanError:
        """Returns the simulator's error with the name of this plan.

        Lines of a generated text are omitted. Keys are those of plan files, also of arguments.
        """
        error, place = cite_table(error)
        location = self.location(place.key)
        if self.origin != ARGUMENTS and not self.is_rewritten:
            source = error._source or ""
            location = replace(location, line=error.line, column=error.column, source=source)
        return plain_error(error, location)

    def input_digests(self) -> dict[str, str]:
        """Returns the files that the plan reads, each with the SHA-256 of its contents."""
        digests = {}
        for name in sorted({table[key] for table, key in file_keys(self.table())}):
            file = self.base / name
            if file.is_file():
                with file.open("rb") as stream:
                    digests[name] = hashlib.file_digest(stream, "sha256").hexdigest()
        in_python = [table for table in self.transports() if table.get("name") == PYTHON]
        if in_python:
            for table in in_python:
                digests |= digests_of(table, self.base)
        return digests


def part_of(name: str, part: object) -> TomlValue:
    """Returns a table of a plan, or of `transport` a list of tables.

    Raises `PlanError` or `TypeError` for another value.
    """
    if name != TRANSPORT:
        return table_of(name, part)
    where = Location(key=name)
    if isinstance(part, list | tuple):
        return [dict(transport_table(each, where.item(i))) for i, each in enumerate(part)]
    return transport_table(part, where)


def parse_override(text: str) -> Override:
    """Returns an override from `key=value`; the value is TOML, or otherwise a plain string.

    >>> parse_override("workload.load=0.7"), parse_override("transport.preset=paper")
    (('workload.load', 0.7), ('transport.preset', 'paper'))
    """
    key, equals, value = text.partition("=")
    key = key.strip()
    if not equals or not all(key.split(".")):
        raise Location(key="--set").error(expected="key=value", got=text)
    found = parse_value(value.strip())
    for path, date in dates(found, key):
        raise Location(key="--set").at(path).error(expected="a number, a text or a list", got=date)
    return key, found


def compact_plan(plan: Plan, *overrides: Override) -> Plan:
    """Returns the plan of `plan.with_` in 10 % of its time; its text is not for readers."""
    table = plan._changed(overrides)
    lines = (f"{compact(key)} = {compact(value)}\n" for key, value in table.items())
    return Plan("".join(lines), plan.base, plan.origin, is_rewritten=True)


def _pairs(overrides: Sequence[object]) -> Iterator[Override]:
    """Yields keys and values of overrides; raises `PlanError` if one is no pair or mapping."""
    for one in overrides:
        if isinstance(one, Mapping):
            yield from _pairs([*one.items()])
        elif isinstance(one, tuple) and len(one) == 2:
            key = text_argument("key", one[0])
            if not all(key.split(".")):
                raise argument_error("key", "a path such as workload.load", key)
            yield key, one[1]
        else:
            expected = 'pairs such as ("workload.load", 0.7), or a mapping'
            raise argument_error("overrides", expected, one)


def _value_of(key: str, value: object) -> TomlValue:
    """Returns the value of an override as plans have it; raises `TypeError` if they lack it."""
    if key == TRANSPORT and is_transport(value):
        return part_of(key, value)
    return plain_value(value, key)


def _with_tables(text: str) -> dict[str, Any] | None:
    """Returns the table of a plan with tables for names of transports.

    Returns `None` if it has no such names, or if it is no TOML, has dates or is no list of
    transports, which is reported when it is read.
    """
    try:
        table = tomllib.loads(text, parse_float=number)
    except tomllib.TOMLDecodeError:
        return None
    named = table.get(TRANSPORT)
    names = named if isinstance(named, list) else [named]
    has_names = any(isinstance(name, str) for name in names)
    has_others = not all(isinstance(name, str | dict) for name in names)
    if not has_names or has_others or any(dates(table)):
        return None
    return table | {TRANSPORT: part_of(TRANSPORT, named)}


def _value_at(table: Mapping[str, Any], key: str, default: Any) -> Any:
    value: Any = table
    for part in text_argument("key", key).split("."):
        if not isinstance(value, Mapping) or part not in value:
            return default
        value = value[part]
    return value


def _assign(table: dict[str, Any], key: str, value: TomlValue) -> None:
    *parents, last = key.split(".")
    for depth, name in enumerate(parents, start=1):
        inner = table.setdefault(name, {})
        if not isinstance(inner, dict):
            path = ".".join(parents[:depth])
            got = f"a list of {len(inner)}" if isinstance(inner, list) else repr(inner)
            raise Location(key=key).error(expected=f"{path} to be a table", got=got)
        table = inner
    table[last] = value


def file_keys(value: object) -> Iterator[tuple[dict[str, Any], str]]:
    """Yields the keys that name files, at any depth, each with its table."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in FILE_KEYS and isinstance(inner, str):
                yield value, key
            else:
                yield from file_keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from file_keys(inner)
