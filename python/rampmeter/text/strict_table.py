"""Tables of TOML files that reject unknown keys."""

import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from rampmeter._core import PlanError


class StrictTable:
    """A table that rejects unread keys, so that misspelt keys are errors."""

    def __init__(self, table: Mapping[str, Any], where: str) -> None:
        self._table = dict(table)
        self.where = where

    @classmethod
    def from_file(cls, file: Path) -> "StrictTable":
        """Returns the root table of a file; raises `PlanError` if it cannot be read.

        The file may begin with a byte-order mark.
        """
        try:
            return cls(tomllib.loads(file.read_text(encoding="utf-8-sig")), str(file))
        except OSError as error:
            raise PlanError(f"{file}: {error.strerror or error}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise PlanError(f"{file}: {error}") from None

    def pop(self, key: str, kind: type, default: Any = ...) -> Any:
        """Removes and returns the value of a key. Without a default the key is required."""
        value = self._table.pop(key, default)
        if value is ...:
            raise PlanError(f"{self.where}: expected the key {key}, it is missing")
        accepted = (int, float) if kind is float else kind
        if value is not default and not isinstance(value, accepted):
            raise PlanError(f"{self.where}: {key}: expected {kind.__name__}, got {value!r}")
        return value

    def choice(self, key: str, value: object, allowed: Collection[str]) -> str:
        """Returns the value of a key; raises `PlanError` if it is not allowed."""
        if value not in allowed:
            raise PlanError(
                f"{self.where}: {key}: expected one of {', '.join(allowed)}, got {value}"
            )
        return str(value)

    def one_of(self, *keys: str) -> tuple[str, float]:
        """Returns the one present key of several, and its number."""
        found = [(key, v) for key in keys if (v := self.pop(key, float, None)) is not None]
        if len(found) != 1:
            names = " or ".join(keys)
            raise PlanError(f"{self.where}: expected one of {names}, got {len(found)}")
        return found[0]

    def tables(self, key: str, default: Any = ...) -> list["StrictTable"]:
        """Returns the tables of an array."""
        tables = self.pop(key, list, default)
        return [StrictTable(table, f"{self.where}: {key}[{i}]") for i, table in enumerate(tables)]

    def reject_unread(self) -> None:
        """Raises `PlanError` if a key has not been read."""
        if self._table:
            raise PlanError(f"{self.where}: unknown key {next(iter(self._table))}")
