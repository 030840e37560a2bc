"""Writes TOML; the standard library only reads it."""

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

TomlValue: TypeAlias = "bool | int | float | str | Sequence[TomlValue] | Mapping[str, TomlValue]"
Table: TypeAlias = Mapping[str, TomlValue]

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\f": "\\f",
    "\r": "\\r",
}


def dumps(table: Table) -> str:
    """The table as TOML text: its plain values first, then a section for each table in it."""
    return "\n".join(_sections(table, ())).strip("\n") + "\n"


def literal(value: TomlValue) -> str:
    """One value as TOML, on one line."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return _float(value)
        case str():
            return _string(value)
        case Mapping():
            inner = ", ".join(f"{_key(k)} = {literal(v)}" for k, v in value.items())
            return f"{{ {inner} }}" if inner else "{}"
        case Sequence():
            return f"[{', '.join(literal(item) for item in value)}]"
    raise TypeError(f"expected a value that TOML has, got {value!r}")


def _sections(table: Table, path: tuple[str, ...]) -> list[str]:
    plain = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    tables = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    lines: list[str] = []
    if path and (plain or not tables):
        lines += ["", f"[{'.'.join(_key(part) for part in path)}]"]
    lines += [f"{_key(key)} = {literal(value)}" for key, value in plain.items()]
    for key, value in tables.items():
        lines += _sections(value, (*path, key))
    return lines


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _string(key)


def _string(value: str) -> str:
    return '"' + "".join(_character(c) for c in value) + '"'


def _character(c: str) -> str:
    if c in _ESCAPES:
        return _ESCAPES[c]
    return f"\\u{ord(c):04X}" if ord(c) < 0x20 or ord(c) == 0x7F else c


def _float(value: float) -> str:
    if value != value or value in (float("inf"), float("-inf")):
        return {"nan": "nan", "inf": "inf", "-inf": "-inf"}[str(value)]
    return repr(value)
