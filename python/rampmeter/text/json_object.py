"""JSON files of result folders."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import UnionType
from typing import Any, Final, TypeAlias

from rampmeter.text.locations import Location

Shape: TypeAlias = (
    "type | UnionType | Nullable | Mapping[str, Shape] | list[Shape] | tuple[Shape, Shape]"
)
"""The expected type of a value: a type, of a list that of its items, of an object those of its
keys. The key `*` is any other key. Keys may be missing. A pair is of an object and of a list."""
ANY_KEY: Final = "*"
KINDS: Final = {
    bool: "true or false",
    dict: "an object",
    float: "a number",
    int: "a whole number",
    list: "a list",
    str: "a text",
    type(None): "null",
}


class Nullable:
    """The shape of a list or an object that may be null."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape


class JsonRecord(dict[str, Any]):
    """An object of a file of results. A missing key raises `ResultError` with file and key."""

    def __init__(self, values: Mapping[str, Any], where: Location) -> None:
        super().__init__(values)
        self._where = where

    def __missing__(self, key: str) -> Any:
        raise self._where.at(key).result_error(expected="this key")

    def renamed(self, names: Mapping[str, str]) -> "JsonRecord":
        """Returns the object with other names of keys."""
        return JsonRecord({names.get(key, key): one for key, one in self.items()}, self._where)

    def __reduce__(self) -> tuple[Any, ...]:
        return JsonRecord, (dict(self), self._where)


def read_json(file: Path, keys: Iterable[str] = ()) -> dict[str, Any]:
    """Reads a JSON object from a result folder; raises `ResultError` if it lacks one of `keys`."""
    return object_of(_content(file), Location(file), keys)


def read_record(file: Path, shape: Mapping[str, Shape], keys: Iterable[str] = ()) -> JsonRecord:
    """Reads a JSON object whose present values have the types of a shape.

    Raises `ResultError` for another value, with the path to its key, and if it lacks one of `keys`.
    """
    where = Location(file)
    found = _checked(object_of(_content(file), where, keys), shape, where)
    assert isinstance(found, JsonRecord)
    return found


def object_of(data: bytes, where: Location, keys: Iterable[str] = ()) -> dict[str, Any]:
    """Returns a JSON object; raises `ResultError` if the data are another, or it lacks a key."""
    try:
        value = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise where.result_error(expected="JSON", got="bytes that are not UTF-8") from None
    except json.JSONDecodeError as error:
        got = f"another text from line {error.lineno}, column {error.colno}, on"
        raise where.result_error(expected="JSON", got=got) from None
    except RecursionError:
        raise where.result_error(expected="JSON", got="too many levels of lists") from None
    except ValueError:
        raise where.result_error(expected="JSON", got="a number of too many digits") from None
    if not isinstance(value, dict):
        got = "a list" if isinstance(value, list) else "a value"
        raise where.result_error(expected="a JSON object", got=got)
    for key in keys:
        if key not in value:
            raise where.result_error(expected=f"the key {key}", got="none")
    return value


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise Location(file).result_error(str(error.strerror or error)) from None
    except ValueError as error:
        raise Location(file).result_error(str(error)) from None


def _checked(value: Any, shape: Shape, where: Location) -> Any:
    """Returns a value whose objects are records; raises `ResultError` for another type."""
    if isinstance(shape, Nullable):
        return None if value is None else _checked(value, shape.shape, where)
    if isinstance(shape, tuple):
        return _checked(value, shape[isinstance(value, list)], where)
    if isinstance(shape, Mapping):
        if not isinstance(value, dict):
            raise where.result_error(expected=KINDS[dict], got=_kind(value))
        other = shape.get(ANY_KEY, object)
        return JsonRecord(
            {
                key: _checked(one, shape.get(key, other), where.at(key))
                for key, one in value.items()
            },
            where,
        )
    if isinstance(shape, list):
        if not isinstance(value, list):
            raise where.result_error(expected=KINDS[list], got=_kind(value))
        return [_checked(one, shape[0], where.item(idx)) for idx, one in enumerate(value)]
    if shape is object:
        if isinstance(value, dict):
            return _checked(value, {}, where)
        return _checked(value, [object], where) if isinstance(value, list) else value
    kinds = shape.__args__ if isinstance(shape, UnionType) else (shape,)
    if type(value) not in kinds and not (type(value) is int and float in kinds):
        expected = " or ".join(KINDS[one] for one in kinds)
        raise where.result_error(expected=expected, got=_kind(value))
    return value


def _kind(value: object) -> str:
    return KINDS[type(value)]
