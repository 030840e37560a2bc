"""Sources of keys, of `sources.toml`, for `help()`."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Final

FILE: Final = Path(__file__).with_name("sources.toml")
COMMON: Final = "common"
INHERITS: Final = "inherits"
TABLES: Final = "tables"
OTHERS: Final = "Keys without a source are Rampmeter's."
"""Sentence of a class of which some keys have a source."""


@cache
def read() -> dict[str, Any]:
    """Returns the content of the file."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def of_transport(transport: str, key: str) -> str:
    """Returns the sentence on the source of a transport's key; empty if it has none."""
    groups = read()
    for group in (transport, groups[INHERITS].get(transport), COMMON):
        if key in groups.get(group, {}):
            return f"Source: {groups[group][key]}."
    return ""


def of_table(name: str, key: str) -> str:
    """Returns the sentence on the source of a key of a plan's class; empty if it has none."""
    source = of_class(name).get(key)
    return f"Source: {source}." if source else ""


def of_class(name: str) -> dict[str, str]:
    """Returns the sources of the keys of a plan's class."""
    sources: dict[str, str] = read()[TABLES].get(name, {})
    return sources
