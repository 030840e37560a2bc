"""Texts of earlier versions, rewritten with the present names and units of keys."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from rampmeter._core import RENAMED_KEYS, RENAMED_NODE_KEYS, RENAMED_PLAN_KEYS

_FORMER: Final = {old: (new, parts) for old, new, parts in RENAMED_KEYS}
_FORMER_OF_NODES: Final = {(table, old): new for table, old, new in RENAMED_NODE_KEYS}
_FORMER_OF_PLANS: Final = {(table, old): new for table, old, new in RENAMED_PLAN_KEYS}
_PLAN_TABLES: Final = "|".join(sorted({table for table, _, _ in RENAMED_PLAN_KEYS}))
_PATH: Final = re.compile(
    rf"(?<![\w.-])(?P<table>{_PLAN_TABLES})\.(?P<key>[\w-]+)(?=[\"']?[ \t]*=)"
)
"""A key of a plan with its table, such as in `--set run.links=true`."""
_INLINE: Final = re.compile(rf"(?<![\w.-])(?P<table>{_PLAN_TABLES})[ \t]*=[ \t]*\{{[^{{}}]*\}}")
"""A table of a plan on one line."""
_KEY: Final = re.compile(r"(?<![\w.-])[\w-]+(?=[\"']?[ \t]*=)")
_PEERS: Final = re.compile(r"^[ \t]*\[\[[ \t]*peer[ \t]*\]\]", re.MULTILINE)
"""A table that only configurations of nodes have."""
_HEADER_OR_SETTING: Final = re.compile(
    r"^[ \t]*(?:\[+[ \t]*(?P<table>[\w.-]+)[ \t]*\]+"
    r"|(?P<setting>[\"']?(?P<key>[\w-]+)[\"']?(?P<value>[ \t]*=[^\r\n]*)))",
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
    plans and of `rampd` are renamed in their tables. All else is unchanged.
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
    former = _FORMER_OF_NODES if _PEERS.search(text) else _FORMER_OF_PLANS
    text, in_tables = _migrate_tables(text, former)
    if former is _FORMER_OF_PLANS:
        text, with_tables = _migrate_paths(text)
        in_tables += with_tables
    return text, sorted([*changed, *in_tables], key=lambda setting: setting.line)


def with_present_keys(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the table of a plan of an earlier version with the present keys of its tables."""
    present = dict(plan)
    for (table, old), new in _FORMER_OF_PLANS.items():
        keys = present.get(table)
        if isinstance(keys, Mapping) and old in keys:
            present[table] = {new if key == old else key: keys[key] for key in keys}
    return present


def _migrate_paths(text: str) -> tuple[str, list[RenamedSetting]]:
    """Returns a text with the present keys next to their table, and the settings that changed."""
    changed = []

    def present(found: re.Match[str], table: str, key: str) -> str:
        new = _FORMER_OF_PLANS.get((table, key), key)
        if new != key:
            line = found.string.count("\n", 0, found.start()) + 1
            changed.append(RenamedSetting(line, f"{table}.{key}", f"{table}.{new}"))
        return new

    def of_path(found: re.Match[str]) -> str:
        return f"{found['table']}.{present(found, found['table'], found['key'])}"

    def of_inline(found: re.Match[str]) -> str:
        return _KEY.sub(lambda key: present(found, found["table"], key[0]), found[0])

    text = _PATH.sub(of_path, text)
    return _INLINE.sub(of_inline, text), changed


def _migrate_tables(
    text: str, former: Mapping[tuple[str, str], str]
) -> tuple[str, list[RenamedSetting]]:
    """Returns a text with the present keys in its tables, and the settings that changed."""
    table, changed, pieces, end = "", [], [], 0
    for found in _HEADER_OR_SETTING.finditer(text):
        table = found["table"] or table
        new = former.get((table, found["key"] or ""))
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
