"""Checks of arguments of calls: an error names the argument, the expected and the actual value."""

import math
import numbers
from collections.abc import Collection, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final

from rampmeter._core import PlanError
from rampmeter.text.locations import Location

SHOWN: Final = 60
"""Maximum length of a value in an error; longer ones have their type, since tables fill screens."""


def argument_error(name: str, expected: str, got: object, hint: str = "") -> PlanError:
    """Returns the error of an argument.

    >>> str(argument_error("seeds", "a whole number from 1", "3"))
    "seeds: expected a whole number from 1, got '3'"
    """
    return Location(key=name).error(expected=expected, got=shown(got), hint=hint)


def shown(value: object) -> str:
    """Returns a value as errors show it: short, on one line.

    >>> shown([1, 2]), shown("x" * 100)
    ('[1, 2]', 'a value of type str')
    """
    text = value.__name__ if isinstance(value, type) else repr(value)
    if len(text) <= SHOWN and "\n" not in text and " object at 0x" not in text:
        return text
    kind = type(value)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return f"a value of type {module}{kind.__qualname__}"


def path_argument(name: str, value: object) -> Path:
    """Returns a path; raises `PlanError` for another value or an empty text."""
    path = fspath(value) if isinstance(value, str | PathLike) else None
    if not isinstance(path, str) or not path:
        raise argument_error(name, "a path", value)
    return Path(path)


def text_argument(name: str, value: object) -> str:
    """Returns a text; raises `PlanError` for another value."""
    if not isinstance(value, str):
        raise argument_error(name, "a text", value)
    return value


def number_argument(
    name: str,
    value: Any,
    least: float,
    most: float = math.inf,
    *,
    is_whole: bool = False,
    is_open: bool = False,
) -> None:
    """Raises `PlanError` unless the value is a number from `least` to `most`.

    With `is_open` it must be above `least` and below `most`. Numbers of numpy are numbers, and
    `True` is none.
    """
    kind = numbers.Integral if is_whole else numbers.Real
    is_number = isinstance(value, kind) and not isinstance(value, bool)
    if is_number and (least < value < most if is_open else least <= value <= most):
        return
    noun = "a whole number" if is_whole else "a number"
    low, high = (str(end) if isinstance(end, int) else f"{end:g}" for end in (least, most))
    start = "above" if is_open else "from"
    end = "" if most == math.inf else f" and below {high}" if is_open else f" to {high}"
    raise argument_error(name, f"{noun} {start} {low}{end}", value)


def whole_argument(name: str, value: Any, least: float, most: float = math.inf) -> int:
    """Returns a whole number from `least` to `most`, which may be a float such as `2.0`.

    Raises `PlanError` for another value.

    >>> whole_argument("seeds", 2.0, 1)
    2
    """
    is_float = isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral)
    number = int(value) if is_float and float(value).is_integer() else value
    try:
        number_argument(name, number, least, most, is_whole=True)
    except PlanError as error:
        raise argument_error(name, str(error.expected), value) from None
    return int(number)


def choice_argument(name: str, value: object, allowed: Collection[str]) -> None:
    """Raises `PlanError` unless the value is one of those that are allowed."""
    if not isinstance(value, str) or value not in allowed:
        got = value if isinstance(value, str) and value else shown(value)
        raise Location(key=name).error(expected=f"one of {', '.join(allowed)}", got=got)


def mapping_argument(name: str, value: object, contents: str) -> None:
    """Raises `PlanError` unless the value is a mapping; `contents` describes it in the error."""
    if not isinstance(value, Mapping):
        raise argument_error(name, f"a mapping of {contents}", value)
