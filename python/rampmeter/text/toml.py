"""TOML texts of plans, which tomlkit writes; the standard library only reads them."""

import json
import numbers
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, time
from decimal import Decimal
from os import PathLike, fspath
from typing import Any, Final, TypeAlias

from rampmeter._core import PlanError
from rampmeter.on_demand import tomlkit
from rampmeter.text.locations import SYNTAX, Location

TomlValue: TypeAlias = "bool | int | float | str | Sequence[TomlValue] | Mapping[str, TomlValue]"
Table: TypeAlias = Mapping[str, TomlValue]

_DOT = re.compile(r"[+-]?\.\d+(?:[eE][+-]?\d+)?")
"""A number that begins with its point, which TOML lacks."""
_POWER = re.compile(r"[+-]?\d{1,6}(?:\.\d{1,6})?[eE][+-]?\d{1,2}")
"""A number with a power of ten."""
_DATE = re.compile(
    r"\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)?)?"
    r"|\d\d:\d\d:\d\d(?:\.\d+)?"
)
"""A date or a time, or both."""
LONG_LIST: Final = 100
"""Items of a list from which its text is written first."""
WHOLE_MAX: Final = 2**64 - 1
"""The largest whole number of a plan."""
_EXACT_MAX: Final = 9 * 10**15
"""Above it a fraction does not have each whole number."""


def dumps(table: Mapping[str, Any]) -> str:
    """Returns the table as TOML text: first its plain values, then a section for each table.

    Raises `TypeError` for a value that TOML lacks; see `plain`.
    """
    return tomlkit.dumps(_plain_tree(table)).strip("\n") + "\n"


def compact(value: TomlValue) -> str:
    """Returns a value as TOML on one line, much faster than `dumps`, for programs to read."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            # Escapes of JSON are those of TOML, which forbids one character more.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case Mapping():
            pairs = (f"{compact(key)} = {compact(inner)}" for key, inner in value.items())
            return f"{{{', '.join(pairs)}}}"
        case list() | tuple():
            return f"[{', '.join(map(compact, value))}]"
    return repr(value)


def parse(text: str, location: Location) -> dict[str, Any]:
    """Returns the table of a TOML text.

    Raises `PlanError` with line and column if it is none, and for dates, which no key has.
    """
    try:
        table = tomllib.loads(text, parse_float=number)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
    else:
        for path, value in dates(table):
            where = replace(_place_of_date(text, path, location), key=path)
            raise where.error(expected="a number, a text or a list", got=value, code=SYNTAX)
        _keep_parameters(table, text)
        return table
    # Before Python 3.14 the line and column are in the message alone.
    found = re.fullmatch(r"(.+) \(at line (\d+), column (\d+)\)", message)
    if found is not None:
        line, column = int(found[2]), int(found[3])
        source = text.splitlines()[line - 1].strip()
        message, location = found[1], replace(location, line=line, column=column, source=source)
    raise _syntax_error(location, f"{message[:1].lower()}{message[1:]}")


def _keep_parameters(table: dict[str, Any], text: str) -> None:
    """Restores numbers in parameters of transports in Python, whose types are their authors'."""
    if "parameters" in text:
        of: Any = table.get("transport")
        plain: Any = tomllib.loads(text).get("transport")
        pairs = zip(of, plain, strict=True) if isinstance(of, list) else [(of, plain)]
        for transport, written in pairs:
            if isinstance(transport, dict) and "parameters" in transport:
                transport["parameters"] = written["parameters"]


def _place_of_date(text: str, path: str, location: Location) -> Location:
    """Returns the location with line and column of the date at a path.

    Without that date the text has none at the path. Dates in texts and comments change nothing.
    """
    for found in _DATE.finditer(text):
        try:
            without = tomllib.loads(f"{text[: found.start()]}0{text[found.end() :]}")
        except tomllib.TOMLDecodeError:
            continue
        if path not in dict(dates(without)):
            before = text[: found.start()]
            line, column = before.count("\n") + 1, found.start() - before.rfind("\n")
            source = text.splitlines()[line - 1].strip()
            return replace(location, line=line, column=column, source=source)
    return location


def dates(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Yields the paths and texts of dates and times in a table."""
    match value:
        case Mapping():
            for key, inner in value.items():
                yield from dates(inner, f"{path}.{key}" if path else str(key))
        case list():
            for idx, inner in enumerate(value):
                yield from dates(inner, f"{path}[{idx}]")
        case date() | time():
            yield path, str(value)


def check_whole_numbers(value: object, where: Location) -> None:
    """Raises `PlanError` with the key of the first whole number that plans cannot have.

    >>> check_whole_numbers({"a": [1, 2**64]}, Location(key="b"))
    Traceback (most recent call last):
    rampmeter._core.PlanError: b.a[1]: expected a whole number below 2^64, got 18446744073709551616
    """
    match value:
        case Mapping():
            for key, inner in value.items():
                check_whole_numbers(inner, where.at(key))
        case list() | tuple():
            for idx, inner in enumerate(value):
                check_whole_numbers(inner, where.item(idx))
        case int() if value > WHOLE_MAX:
            raise where.error(expected="a whole number below 2^64", got=value)
        case int() if value < -WHOLE_MAX // 2:
            raise where.error(expected="a whole number above -2^63", got=value)


def line_of_key(text: str, table: str, key: str) -> int | None:
    """Returns the line of a key in a table, from 1; `None` if it is written in another form.

    >>> line_of_key("[a]\\nb = 1\\n[c]\\nb = 2", "c", "b")
    4
    """
    header = re.compile(rf"\s*\[\s*{re.escape(table)}\s*\]\s*(#.*)?")
    entry = re.compile(rf"\s*{re.escape(key)}\s*[.=].*|\s*\[+{table}\.{re.escape(key)}\W.*")
    is_inside = False
    for number, line in enumerate(text.splitlines(), start=1):
        if header.fullmatch(line):
            is_inside = True
        elif is_inside and entry.fullmatch(line):
            return number
        elif line.lstrip().startswith("[") and not line.lstrip("[ ").startswith(f"{table}."):
            is_inside = False
    return None


def number(text: str) -> int | float:
    """Returns a number with a point or a power of ten: `1e5` is whole, though not in TOML.

    >>> number("1e5"), number("2.5e3"), number("1e-3"), number("2.0")
    (100000, 2500, 0.001, 2.0)
    """
    value = float(text)
    is_power = "e" in text.lower() and value.is_integer() and abs(value) < _EXACT_MAX
    return int(value) if is_power else value


def _syntax_error(location: Location, message: str) -> PlanError:
    """Returns the error of a text that is no TOML, with a hint at the usual mistakes."""
    key, _, value = (part.strip() for part in (location.source or "").partition("="))
    if message == "cannot overwrite a value":
        return location.error(expected="each key once", got=f"{key} twice", code=SYNTAX)
    if twice := re.fullmatch(r"cannot declare \((.*?),?\) twice", message):
        name = ".".join(re.findall(r"'([^']*)'", twice[1]))
        return location.error(expected="each table once", got=f"[{name}] twice", code=SYNTAX)
    if message == "invalid value" and _DOT.match(value):
        return location.error("numbers begin with a digit, such as 0.5", code=SYNTAX)
    if message == "invalid value" and re.match(r"[A-Za-z]", value):
        return location.error(f'texts are in quotes, such as "{value}"', code=SYNTAX)
    return location.error(message, code=SYNTAX)


def parse_value(text: str) -> TomlValue:
    """Returns a TOML value, or the text itself if it is not one.

    `.5` is a number, and `1e5` a whole one.
    """
    if _DOT.fullmatch(text):
        return float(text)
    if _POWER.fullmatch(text):
        return number(text)
    try:
        table = tomllib.loads(f"value = {text}", parse_float=number)
    except tomllib.TOMLDecodeError:
        return text
    value: TomlValue = table["value"] if len(table) == 1 else text
    return value


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
        case Mapping():
            inner = ", ".join(
                f"{tomlkit.key(k).as_string()} = {literal(v)}" for k, v in value.items()
            )
            return f"{{ {inner} }}" if inner else "{}"
        case list() | tuple() | range():
            return f"[{', '.join(literal(item) for item in value)}]"
    return tomlkit.item(value).as_string()


def _plain_tree(value: object) -> Any:
    """Returns the equivalent value of TOML, with those of tables and arrays in it."""
    value = plain(value)
    match value:
        case Mapping():
            return {key: _plain_tree(inner) for key, inner in value.items()}
        case list() | tuple() | range():
            items = [_plain_tree(inner) for inner in value]
            if len(items) <= LONG_LIST or any(isinstance(one, Mapping) for one in items):
                return items
            # tomlkit reads a text in linear time, but adds items to a list in quadratic time.
            return tomlkit.value(compact(items))
    return value
