"""Writes TOML; the standard library only reads it."""

import numbers
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from os import PathLike, fspath
from typing import Any, TypeAlias

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


def dumps(table: Mapping[str, Any]) -> str:
    """Returns the table as TOML text: first its plain values, then a section for each table."""
    return "\n".join(_sections(table, ())).strip("\n") + "\n"


def plain(value: object) -> TomlValue:
    """Returns the equivalent value of TOML.

    Accepts scalars and arrays of numpy, `Decimal`, other numbers, and paths; single-precision
    numbers have their printed value. Raises `TypeError` for other types.

    >>> from pathlib import Path
    >>> plain(Decimal("0.3")), plain(Decimal(8)), plain(Path("a/b.csv"))
    (0.3, 8, 'a/b.csv')
    """
    match value:
        case bool() | str():
            return value
        case int():
            return int(value)
        # Numpy's double is one of Python's, and its repr is not TOML.
        case float():
            return float(value)
        case Decimal():
            is_whole = value.is_finite() and value.as_tuple().exponent == 0
            return int(value) if is_whole else float(value)
        case PathLike():
            return str(fspath(value))
        case Mapping() | list() | tuple() | range():
            return value
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        return _of_numpy(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    raise TypeError(f"expected a value that TOML has, got {value!r}")


def _of_numpy(value: Any) -> TomlValue:
    if getattr(value, "ndim", 0):
        return [plain(item) for item in value]
    found = value.tolist()
    is_single = isinstance(found, float) and value.dtype.itemsize < 8
    return plain(float(str(value)) if is_single else found)


def literal(value: object) -> str:
    """Returns one value as TOML, on one line; see `plain` for the accepted types."""
    value = plain(value)
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
        case list() | tuple() | range():
            return f"[{', '.join(literal(item) for item in value)}]"
    raise TypeError(f"expected a value that TOML has, got {value!r}")


def _sections(table: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
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
