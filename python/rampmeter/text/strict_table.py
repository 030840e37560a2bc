"""Tables of TOML files that reject unknown keys."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

from rampmeter.text.locations import SYNTAX, Location, undecodable, unreadable
from rampmeter.text.toml import parse

NAMES: Final[Mapping[type, str]] = {
    bool: "true or false",
    dict: "a table",
    float: "a number",
    int: "a whole number",
    list: "a list",
    object: "a value",
    str: "a text",
}
"""Types of values in errors."""


class StrictTable:
    """A table that rejects unread keys, so that misspelt keys are errors."""

    def __init__(self, table: Mapping[str, Any], where: Location) -> None:
        self._table = dict(table)
        self.where = where
        """The location of the table."""

    @classmethod
    def from_file(cls, file: Path) -> "StrictTable":
        """Returns the root table of a file; raises `PlanError` if it cannot be read.

        The file may begin with a byte-order mark.
        """
        try:
            text = file.read_text(encoding="utf-8-sig")
        except OSError as error:
            raise unreadable(file, error) from None
        except UnicodeDecodeError as error:
            raise undecodable(file, error) from None
        return cls(parse(text, Location(file)), Location(file))

    def pop(self, key: str, kind: type, default: Any = ...) -> Any:
        """Removes and returns the value of a key. Without a default the key is required."""
        value = self._table.pop(key, default)
        if value is ...:
            raise self.where.at(key).error(expected="this key", code=SYNTAX)
        accepted = (int, float) if kind is float else kind
        if value is not default and not isinstance(value, accepted):
            raise self.where.at(key).error(expected=NAMES[kind], got=repr(value), code=SYNTAX)
        return value

    def choice(self, key: str, value: object, allowed: Collection[str]) -> str:
        """Returns the value of a key; raises `PlanError` if it is not allowed."""
        if value not in allowed:
            raise self.where.at(key).error(expected=f"one of {', '.join(allowed)}", got=value)
        return str(value)

    def one_of(self, *keys: str) -> tuple[str, float]:
        """Returns the one present key of several, and its number."""
        found = [(key, v) for key in keys if (v := self.pop(key, float, None)) is not None]
        if len(found) != 1:
            names = " or ".join(keys)
            raise self.where.error(expected=f"one of {names}", got=len(found))
        return found[0]

    def tables(self, key: str, default: Any = ...) -> list["StrictTable"]:
        """Returns the tables of an array."""
        tables = self.pop(key, list, default)
        return [StrictTable(table, self.where.at(key).item(i)) for i, table in enumerate(tables)]

    def reject_unread(self) -> None:
        """Raises `PlanError` if a key has not been read."""
        if self._table:
            raise self.where.at(next(iter(self._table))).error("unknown key", code=SYNTAX)
