"""Derivations of the keys of transports, from the tables in their pages, for `help()`.

A page has a section "Parameters" with a table of keys, their values in the paper, and the section
of the paper. The core does not know sections of papers.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

HEAD: Final = "| key | derivation |"
"""The first row of a table of derivations."""
BELOW: Final = "see below"
"""A reference to the text of the page."""


def derivations(page: Path) -> dict[str, str]:
    """Returns a sentence for each key in the tables of derivations of a page."""
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    found: dict[str, str] = {}
    for names, derivation in _rows(text):
        keys = re.findall(r"`([a-z0-9-]+)`", names)
        several = f" of {', '.join(f'`{_field(key)}`' for key in keys)}" if len(keys) > 1 else ""
        if BELOW not in derivation:
            found |= dict.fromkeys(keys, f"Derivation{several}: {derivation}.")
    return found


def _rows(text: str) -> Iterator[tuple[str, str]]:
    """Yields the cells of the rows of tables of derivations, without links."""
    lines = iter(text.splitlines())
    for line in lines:
        if line != HEAD:
            continue
        next(lines)
        for row in lines:
            if not row.startswith("|"):
                break
            names, derivation = (cell.strip() for cell in row.strip("|").split("|", 1))
            yield names, re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", derivation.rstrip(" |."))


def _field(key: str) -> str:
    return key.replace("-", "_")
