"""Grammar of sweeps on the command line and in `[sweep]` tables: values, ranges, points.

    values  = item { "," item }
    item    = range | TOML value | plain text
    range   = number ".." number [ ":" step | "*" factor ]
    drawn   = ( "uniform" | "log-uniform" ) "(" number "," number ")"

A comma within brackets, braces, parentheses or quotes separates nothing.
"""

import datetime
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, DecimalException
from typing import Final

from rampmeter._core import PlanError
from rampmeter.choices.axes import Uniform
from rampmeter.text.lists import KEY, split
from rampmeter.text.locations import Location
from rampmeter.text.toml import TomlValue, literal, parse_value

VALUES_MAX: Final = 100_000
"""Maximum number of values of one range."""

_NUMBER = r"[+-]?(?:\d[\d_]*(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?"
_RANGE = re.compile(rf"({_NUMBER})\.\.({_NUMBER})(?:([:*])({_NUMBER}))?")
_BEGUN = re.compile(rf"{_NUMBER}\.\.")
_DRAWN = re.compile(rf"(uniform|log-uniform)\(\s*({_NUMBER})\s*,\s*({_NUMBER})\s*\)")


def parse_axis(text: str, where: Location) -> tuple[str, list[TomlValue] | Uniform]:
    """Parses `key=values` to a key and its values.

    >>> parse_axis("workload.load=0.3..0.5:0.1,0.85", Location(key="--vary"))
    ('workload.load', [0.3, 0.4, 0.5, 0.85])
    >>> parse_axis("fabric.spray=random,ecmp", Location(key="--vary"))
    ('fabric.spray', ['random', 'ecmp'])
    """
    key, equals, values = text.partition("=")
    key = key.strip()
    if not equals or not KEY.fullmatch(key):
        raise where.error(expected="key=values", got=text)
    return key, parse_values(values, where.at(key))


def parse_values(text: str, where: Location) -> list[TomlValue] | Uniform:
    """Returns the values of a list with ranges, or a distribution of numbers."""
    drawn = _DRAWN.fullmatch(text.strip())
    if drawn is not None:
        kind, low, high = drawn.groups()
        return uniform(_plain(low), _plain(high), where, is_log=kind == "log-uniform")
    values: list[TomlValue] = []
    for item in split(text, where):
        match = _RANGE.fullmatch(item)
        if match is not None:
            values += _range(*match.groups(), where=where)
        elif _BEGUN.match(item):
            raise where.error(expected="a range such as 0.3..0.9:0.1", got=item)
        elif item:
            values.append(_value(item))
        else:
            raise where.error(expected="values between commas", got=repr(text))
    return values


def parse_point(text: str, where: Location) -> dict[str, TomlValue]:
    """Parses `key=value,key=value` to a point."""
    point: dict[str, TomlValue] = {}
    for item in split(text, where):
        key, equals, value = item.partition("=")
        key = key.strip()
        if not equals or not KEY.fullmatch(key) or key in point:
            raise where.error(expected="key=value,... with keys that differ", got=text)
        point[key] = _value(value.strip())
    return point


def uniform(low: object, high: object, where: Location, *, is_log: bool) -> Uniform:
    """Returns a distribution of numbers, with its ends checked."""
    ends = [end for end in (low, high) if isinstance(end, int | float) and end is not True]
    if len(ends) < 2 or not ends[0] < ends[1] or (is_log and ends[0] <= 0):
        above = " above 0" if is_log else ""
        raise where.error(expected=f"two ascending numbers{above}", got=f"{low} and {high}")
    return Uniform(ends[0], ends[1], is_log)


def format_value(value: TomlValue) -> str:
    """Returns a value in the command line's notation: text without quotes if that is the same text.

    >>> format_value("imc10"), format_value(0.5), format_value("true"), format_value([1, 2])
    ('imc10', '0.5', '"true"', '[1, 2]')
    """
    if isinstance(value, str) and _is_plain(value):
        return value
    return literal(value)


def flatten(table: Mapping[str, TomlValue]) -> dict[str, TomlValue]:
    """Returns a table with paths as keys: `{workload = {load = 1}}` is `{"workload.load" = 1}`.

    One level is enough for the tables of plans; deeper keys are written in quotes.
    """
    paths: dict[str, TomlValue] = {}
    for name, value in table.items():
        if isinstance(value, Mapping) and "." not in name:
            paths |= {f"{name}.{key}": inner for key, inner in value.items()}
        else:
            paths[name] = value
    return paths


def _is_plain(text: str) -> bool:
    try:
        return [text] == parse_values(text, Location())
    except PlanError:
        return False


def _value(text: str) -> TomlValue:
    value = parse_value(text)
    # Plans have no dates, but names may look like one.
    return text if isinstance(value, datetime.date | datetime.time) else value


def _plain(text: str) -> float:
    return float(text) if set(text) & set(".eE") else int(text)


def _is_whole(text: str) -> bool:
    return not set(text) & set(".eE") or isinstance(parse_value(text), int)


def _range(
    first: str, last: str, kind: str | None, step: str | None, *, where: Location
) -> Sequence[TomlValue]:
    """Returns the numbers from the first to the last, which counts if a step meets it exactly."""
    parts = (first, last, step)
    is_whole = all(part is None or _is_whole(part) for part in parts)
    if step is None and not is_whole:
        raise where.error(expected=f"a step as in {first}..{last}:0.1", got=f"{first}..{last}")
    try:
        start, end, by = (Decimal(part or "1") for part in parts)
    except DecimalException:
        raise where.error(expected="numbers", got=f"{first}..{last}") from None
    is_factor = kind == "*"
    if is_factor and (start <= 0 or end < start or by <= 1):
        raise where.error(
            expected="0 < first <= last and a factor above 1", got=f"{first}..{last}*{step}"
        )
    if not is_factor and (by == 0 or (end - start) * by < 0):
        raise where.error(expected=f"a step from {first} towards {last}", got=by)
    values: list[TomlValue] = []
    value = start
    while value <= end if is_factor or by > 0 else value >= end:
        values.append(int(value) if is_whole else float(value))
        if len(values) > VALUES_MAX:
            raise where.error(expected=f"at most {VALUES_MAX} values", got="more")
        value = value * by if is_factor else start + by * len(values)
    return values
