"""Lists in texts of one line: parts between commas, and names of keys."""

import re
from typing import Final

from rampmeter.text.locations import Location

KEY: Final = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
"""A key, or a path to one such as `workload.load`."""

_OPENING, _CLOSING, _QUOTES = "([{", ")]}", "\"'"


def split(text: str, where: Location, separator: str = ",") -> list[str]:
    """Returns the parts of a text between separators outside of brackets and quotes.

    >>> split("a, [1, 2], '3,4'", Location())
    ['a', '[1, 2]', "'3,4'"]
    """
    parts, depth, quote, is_escaped = [""], 0, "", False
    for character in text:
        if is_escaped:
            is_escaped = False
        elif quote:
            # Texts in double quotes have escapes.
            is_escaped = character == "\\" and quote == '"'
            quote = "" if character == quote else quote
        elif character in _QUOTES:
            quote = character
        elif character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth -= 1
        if character == separator and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += character
        if depth < 0:
            break
    if depth or quote:
        raise where.error(expected="brackets and quotes in pairs", got=text)
    return [part.strip() for part in parts]
