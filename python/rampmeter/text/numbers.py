"""Numbers and tables as text for people."""

import math
import re
from collections.abc import Iterable, Sequence
from typing import Final

NONE = "-"
"""Text of a missing value."""
_NUMBER: Final = re.compile(r"[-+]?(\d|inf\b)")
"""The beginning of a number."""


def number(value: float | None, places: int = 3) -> str:
    """Formats a number with a fixed number of decimal places, or a dash."""
    if value is None or math.isnan(value):
        return NONE
    return f"{value:.{places}f}"


def count(value: int) -> str:
    """Formats a whole number with separated thousands."""
    return f"{value:,}".replace(",", " ")


def counted(value: int, noun: str) -> str:
    """Formats a whole number with its noun, in the plural unless the number is 1."""
    return f"{count(value)} {noun}" if value == 1 else f"{count(value)} {noun}s"


def mega(value: float) -> str:
    """Formats a number in millions."""
    return f"{value / 1e6:.2f} M"


def time_text(ps: float) -> str:
    """Formats picoseconds as options take times, rounded down to four digits.

    >>> time_text(9e12), time_text(12_345_678), time_text(662_830), time_text(40e6)
    ('9s', '12.34us', '662.8ns', '40us')
    """
    units = {"s": 10**12, "ms": 10**9, "us": 10**6, "ns": 10**3}
    name, unit = next((one for one in units.items() if ps >= one[1]), ("ns", 10**3))
    digits = min(3, max(0, 4 - len(str(int(ps / unit)))))
    step = unit // 10**digits
    return f"{int(ps) // step * step / unit:.10g}{name}"


def thousands(value: float) -> str:
    """Formats a number without trailing zeros, with separated thousands.

    >>> thousands(0.5), thousands(20.0)
    ('0.5', '20')
    """
    return f"{value:,.6g}".replace(",", "\u2009")


def is_words(cells: Iterable[str]) -> bool:
    """Returns true if most cells of a column are words, such as names and reasons.

    >>> is_words(["paper", "3 spines", "tree", "-"]), is_words(["1.5", "none"]), is_words(["-"])
    (True, False, False)
    """
    shown = [cell for cell in cells if cell != NONE]
    return 2 * sum(_NUMBER.match(cell) is not None for cell in shown) < len(shown)


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Returns the lines of a table in Markdown.

    >>> markdown(["a", "b"], [["1", "2"]])
    ['| a | b |', '| --- | --- |', '| 1 | 2 |']
    """
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]


def byte_size(size: float) -> str:
    """Formats a number of bytes with its decimal unit.

    >>> byte_size(71_540), byte_size(2_000_000)
    ('71.5 kB', '2 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.5 or unit == "GB":
            break
        size /= 1000
    return f"{size:.3g} {unit}"


def duration(seconds: float) -> str:
    """Formats a duration.

    >>> duration(0.4), duration(75), duration(7300)
    ('1 s', '75 s', '2.0 h')
    """
    if seconds < 100:
        return f"{max(1.0, seconds):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def elapsed_and_left(elapsed: float, left: float | None) -> str:
    """Formats the elapsed and, if it is known, the remaining time of a command in seconds.

    >>> elapsed_and_left(75, 300), elapsed_and_left(5, None)
    ('1:15 elapsed, about 5 min left', '0:05 elapsed')
    """
    words = "" if left is None else f", about {duration(left)} left"
    minutes, seconds = divmod(int(elapsed), 60)
    return f"{minutes}:{seconds:02} elapsed{words}"
