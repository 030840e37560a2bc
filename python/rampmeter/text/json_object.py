"""JSON files of result folders."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rampmeter.text.locations import Location


def read_json(file: Path, keys: Iterable[str] = ()) -> dict[str, Any]:
    """Reads a JSON object from a result folder; raises `ResultError` if it lacks one of `keys`."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise Location(file).result_error(str(error.strerror or error)) from None
    except ValueError as error:
        raise Location(file).result_error(str(error)) from None
    return object_of(data, Location(file), keys)


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
    if not isinstance(value, dict):
        got = "a list" if isinstance(value, list) else "a value"
        raise where.result_error(expected="a JSON object", got=got)
    for key in keys:
        if key not in value:
            raise where.result_error(expected=f"the key {key}", got="none")
    return value
