"""Numbers and tables as people read them."""

import math
from collections.abc import Iterable, Sequence

NONE = "-"
"""Text of a missing value."""


def number(value: float | None, places: int = 3) -> str:
    """A number with a fixed number of decimal places, or a dash."""
    if value is None or math.isnan(value):
        return NONE
    return f"{value:.{places}f}"


def count(value: int) -> str:
    """A whole number with its thousands apart."""
    return f"{value:,}".replace(",", " ")


def mega(value: float) -> str:
    """A number in millions."""
    return f"{value / 1e6:.2f} M"


def thousands(value: float) -> str:
    """A number without trailing zeros, with thousands apart.

    >>> thousands(0.5), thousands(20.0)
    ('0.5', '20')
    """
    return f"{value:,.6g}".replace(",", "\u2009")


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Returns the lines of a table in Markdown.

    >>> markdown(["a", "b"], [["1", "2"]])
    ['| a | b |', '| --- | --- |', '| 1 | 2 |']
    """
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]


def byte_size(size: float) -> str:
    """A number of bytes with its decimal unit.

    >>> byte_size(71_540), byte_size(2_000_000)
    ('71.5 kB', '2 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.5 or unit == "GB":
            break
        size /= 1000
    return f"{size:.3g} {unit}"
