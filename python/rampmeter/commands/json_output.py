"""JSON output of commands: objects whose key `schema` names their form and its version.

`docs/reference/json.md` describes the objects. A version rises when a key is removed or changes its
meaning; new keys may come at any time.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import click

from rampmeter.text.cautions import Caution
from rampmeter.text.locations import FILE_ACCESS

Command: TypeAlias = Callable[..., Any]

VERSIONS: Final[Mapping[str, int]] = {
    "animate": 1,
    "bench": 1,
    "check": 1,
    "compare": 1,
    "convert": 1,
    "diff": 1,
    "error": 1,
    "examples": 1,
    "explain": 1,
    "export": 1,
    "migrate": 1,
    "papers": 1,
    "plot": 1,
    "replay": 1,
    "report": 1,
    "run": 1,
    "schema": 1,
    "sweep": 2,
    "testbed": 1,
    "transports": 1,
    "why": 1,
}
"""Version of each object."""
FLAG: Final = "--json"
PARTS: Final = ("file", "line", "column", "key", "data_file", "data_line", "expected", "got")
"""Attributes of errors with a location."""
USAGE: Final = "usage"
"""Code of errors of the command line."""


def json_option(command: Command) -> Command:
    """Adds `--json`."""
    help_ = "Print JSON instead of text, errors too; docs/reference/json.md has the keys."
    return click.option(FLAG, "as_json", is_flag=True, help=help_)(command)


def emit(name: str, fields: Mapping[str, Any], *, is_error: bool = False) -> None:
    """Prints an object on standard output, or on standard error; NaN and infinity are `null`."""
    schema = f"rampmeter.{name}/{VERSIONS[name]}"
    click.echo(json_text({"schema": schema, **fields}), err=is_error)


def json_text(value: Any) -> str:
    """Returns a value as JSON; NaN and infinity are `null`, and paths are texts."""
    return json.dumps(_finite(value), indent=2, allow_nan=False)


def emit_error(error: BaseException, message: str, exit_code: int) -> None:
    """Prints an error as an object on standard error."""
    fields: dict[str, Any] = {"message": " ".join(message.split()), "exit_code": exit_code}
    fields["code"] = code_of(error)
    fields |= {name: getattr(error, name, None) for name in PARTS}
    emit("error", fields, is_error=True)


def code_of(error: BaseException) -> str:
    """Returns the code of an error, for `rampmeter explain`."""
    code: str | None = getattr(error, "code", None)
    if code is not None:
        return code
    return USAGE if isinstance(error, click.ClickException) else FILE_ACCESS


def warnings_of(cautions: Iterable[Caution]) -> list[dict[str, Any]]:
    """Returns warnings as objects with `code`, `values` and `text`."""
    return [one.to_json() for one in cautions]


def _finite(value: Any) -> Any:
    """Returns a value whose numbers are finite, and whose paths are texts."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case Path():
            return str(value)
        case Mapping():
            return {str(key): _finite(of) for key, of in value.items()}
        case str():
            return str(value)
        case Sequence():
            return [_finite(of) for of in value]
    return value
