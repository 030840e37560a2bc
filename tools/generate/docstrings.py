"""Docstrings of generated classes: a summary, the fields with units and defaults, and a page."""

import re
import textwrap
from collections.abc import Iterable, Iterator
from typing import Final

WIDTH: Final = 96
INDENT: Final = "    "
UNITS: Final = {
    "ps": "ps",
    "ns": "ns",
    "us": "µs",
    "ms": "ms",
    "s": "s",
    "ppm": "parts per million",
    "mbps": "Mbit/s",
    "gbps": "Gbit/s",
    "bytes": "bytes",
}
"""Units of keys, by the last word of their names."""


def class_docstring(summary: str, fields: Iterable[tuple[str, str]], page: str) -> str:
    """Returns the docstring of a class, indented, with a line or more for each field."""
    lines = [*_wrapped(f'"""{summary}', ""), ""]
    for name, text in fields:
        lines += _wrapped(f"- `{name}`: {text}", "  ")
    return "\n".join([*lines, "", f"{INDENT}Details: {page}.", f'{INDENT}"""'])


def field_text(key: str, doc: str, facts: Iterable[str]) -> str:
    """Returns a sentence on a key, and the facts about it, such as its default.

    >>> field_text("host-ns", "Delay of hosts.", ["default 0"])
    'Delay of hosts. Unit: ns; default 0.'
    >>> field_text("hosts", "Hosts of a rack; default: all.", ["default: none"])
    'Hosts of a rack; default: all.'
    """
    has_default = "efault: " in doc
    absent = ("default: none", "default: derived")
    found = [*_unit(key), *(fact for fact in facts if not (has_default and fact in absent))]
    rest = "; ".join(found)
    return " ".join([f"{doc.rstrip('.')}.", *([f"{rest[0].upper()}{rest[1:]}."] if rest else [])])


def _unit(key: str) -> Iterator[str]:
    found = re.search(r"(?:^|-)([a-z]+)$", key)
    if found is not None and found[1] in UNITS:
        yield f"unit: {UNITS[found[1]]}"


def _wrapped(text: str, more: str) -> list[str]:
    lines = textwrap.wrap(text, WIDTH, subsequent_indent=more, break_on_hyphens=False)
    return [INDENT + line for line in lines]
