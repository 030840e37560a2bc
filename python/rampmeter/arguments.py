"""Errors of plans without lines, for plans that were not written as the text that has them."""

import re

_PLACE = re.compile(r"line (?P<line>\d+)(?:, column \d+)?: (?P<what>.*?)(?: \(at: .*\))?")
_PATH = re.compile(r"[a-z0-9.\[\]-]+(?=: )")


def in_arguments(message: str) -> str:
    """A message about a plan that was made in Python: no lines, keys spelled as arguments.

    >>> in_arguments("line 2, column 9: topology.host-ns: expected 2 (at: host-ns = 1)")
    'topology.host_ns: expected 2'
    """
    return _PATH.sub(lambda found: found[0].replace("-", "_"), without_place(message), count=1)


def without_place(message: str) -> str:
    """A message without the line of a text that nobody wrote.

    >>> without_place("line 2: topology.hosts: expected 2, got 1")
    'topology.hosts: expected 2, got 1'
    """
    found = _PLACE.fullmatch(message)
    return message if found is None else found["what"]
