"""Texts of earlier versions, rewritten with the present names and units of keys."""

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from rampmeter._core import RENAMED_KEYS, RENAMED_NODE_KEYS

_FORMER: Final = {old: (new, parts) for old, new, parts in RENAMED_KEYS}
_FORMER_OF_NODES: Final = {(table, old): new for table, old, new in RENAMED_NODE_KEYS}
_PEERS: Final = re.compile(r"^[ \t]*\[\[[ \t]*peer[ \t]*\]\]", re.MULTILINE)
"""A table that only configurations of nodes have."""
_HEADER_OR_SETTING: Final = re.compile(
    r"^[ \t]*(?:\[+[ \t]*(?P<table>[\w.-]+)[ \t]*\]+"
    r"|(?P<setting>(?P<key>[\w-]+)(?P<value>[ \t]*=[^\r\n]*)))",
    re.MULTILINE,
)
_NUMBER: Final = r"[+]?\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?(?![\w.]*[A-Za-z])"
_NUMBERS: Final = rf"{_NUMBER}(?:\s*(?:,|\.\.|:)\s*{_NUMBER})*"
_SETTING: Final = re.compile(
    rf"""(?<![\w-])(?P<key>{"|".join(map(re.escape, _FORMER))})(?![\w-])
    (?:(?P<equals>["']?\s*=\s*(?:\[\s*|["'])?)(?P<numbers>{_NUMBERS})?)?""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class RenamedSetting:
    """A key that was renamed in a text."""

    line: int
    """Line in the text, from 1."""
    old: str
    """The key as it was, with its value."""
    new: str
    """The key as it is, with its value."""


def migrate(text: str) -> tuple[str, list[RenamedSetting]]:
    """Returns a text with the present keys of transports, and the settings that were changed.

    The text is a plan, a sweep, a configuration of `rampd`, or commands: `key = value`, lists,
    ranges and `--set key=value`. Values with a unit, such as `"1.5 us"`, are kept. Other keys of
    `rampd` are renamed in its tables. All else is unchanged.
    """
    changed = []

    def replace(found: re.Match[str]) -> str:
        new, parts = _FORMER[found["key"]]
        numbers = re.sub(_NUMBER, lambda number: _divided(number[0], parts), found["numbers"] or "")
        setting = new + (found["equals"] or "") + numbers
        line = text.count("\n", 0, found.start()) + 1
        changed.append(RenamedSetting(line, found[0].strip(), setting.strip()))
        return setting

    text = _SETTING.sub(replace, text)
    if _PEERS.search(text):
        text, of_nodes = _migrate_node(text)
        changed = sorted([*changed, *of_nodes], key=lambda setting: setting.line)
    return text, changed


def _migrate_node(text: str) -> tuple[str, list[RenamedSetting]]:
    """Returns a configuration of a node with the present keys, and the settings that changed."""
    table, changed, pieces, end = "", [], [], 0
    for found in _HEADER_OR_SETTING.finditer(text):
        table = found["table"] or table
        new = _FORMER_OF_NODES.get((table, found["key"] or ""))
        if new is None:
            continue
        line = text.count("\n", 0, found.start()) + 1
        setting = new + found["value"]
        changed.append(RenamedSetting(line, found["setting"].strip(), setting.strip()))
        pieces += [text[end : found.start("setting")], setting]
        end = found.end()
    return "".join([*pieces, text[end:]]), changed


def _divided(number: str, parts: int) -> str:
    """Returns a number, divided exactly, as plans write it."""
    value = (Decimal(number.replace("_", "")) / parts).normalize()
    return f"{value:f}"
