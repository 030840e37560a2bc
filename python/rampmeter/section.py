"""Tables of TOML files of which every key must be taken."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rampmeter._core import PlanError


class Section:
    """A table of which every key must be taken, so that none is misspelt."""

    def __init__(self, table: Mapping[str, Any], where: str) -> None:
        self._table = dict(table)
        self.where = where

    @classmethod
    def of_file(cls, file: Path) -> "Section":
        """The root table of a file; raises `PlanError` if it cannot be read.

        The file may begin with a byte-order mark.
        """
        try:
            return cls(tomllib.loads(file.read_text(encoding="utf-8-sig")), str(file))
        except OSError as error:
            raise PlanError(f"{file}: {error.strerror or error}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise PlanError(f"{file}: {error}") from None

    def take(self, key: str, kind: type, default: Any = ...) -> Any:
        """The value of a key, which must be of a type; without a default it must be there."""
        value = self._table.pop(key, default)
        if value is ...:
            raise PlanError(f"{self.where}: expected the key {key}, it is missing")
        accepted = (int, float) if kind is float else kind
        if value is not default and not isinstance(value, accepted):
            raise PlanError(f"{self.where}: {key}: expected {kind.__name__}, got {value!r}")
        return value

    def choice(self, key: str, value: object, allowed: tuple[str, ...]) -> str:
        """A value that must be one of some."""
        if value not in allowed:
            raise PlanError(
                f"{self.where}: {key}: expected one of {', '.join(allowed)}, got {value}"
            )
        return str(value)

    def one_of(self, *keys: str) -> tuple[str, float]:
        """The only one of some keys that is there, and its number."""
        found = [(key, v) for key in keys if (v := self.take(key, float, None)) is not None]
        if len(found) != 1:
            names = " or ".join(keys)
            raise PlanError(f"{self.where}: expected one of {names}, got {len(found)}")
        return found[0]

    def sections(self, key: str, default: Any = ...) -> list["Section"]:
        """The tables of an array."""
        tables = self.take(key, list, default)
        return [Section(table, f"{self.where}: {key}[{i}]") for i, table in enumerate(tables)]

    def end(self) -> None:
        """Raise `PlanError` if a key has not been taken."""
        if self._table:
            raise PlanError(f"{self.where}: unknown key {next(iter(self._table))}")
