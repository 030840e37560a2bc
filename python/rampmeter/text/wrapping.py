"""Text in lines that fit a terminal."""

import textwrap
from typing import Final

COLUMNS: Final = 80
HARD_SPACE: Final = "\u00a0"
"""A space at which no line ends."""


def wrapped(text: str, first: str = "", rest: str | None = None) -> list[str]:
    """Returns lines of at most 80 characters: `first` before the first, `rest` before others.

    >>> wrapped("word " * 20, "- ", "  ")[1]
    '  word word word word word'
    """
    rest = first if rest is None else rest
    lines = textwrap.wrap(text, COLUMNS, initial_indent=first, subsequent_indent=rest)
    return [line.replace(HARD_SPACE, " ") for line in lines]
