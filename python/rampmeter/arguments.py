"""Errors of plans that were made in Python, in the words of the call that made them."""

import re
import tomllib
from collections.abc import Iterator, Mapping

_PLACE = re.compile(r"line (?P<line>\d+)(?:, column \d+)?: (?P<what>.*?)(?: \(at: .*\))?")
_PATH = re.compile(r"[a-z0-9.\[\]-]+(?=: )")
_GOT = re.compile(r'invalid (?:type|value): (?:string "(.*?)"|\w[\w ]*`(.*?)`)')


def in_arguments(message: str, text: str) -> str:
    """A message about the plan `text` without lines of a file that nobody wrote.

    Keys are spelled as arguments.

    >>> in_arguments("line 2, column 9: expected 2 (at: hosts = 1)", "[topology]\\nhosts = 1")
    'topology.hosts: expected 2'
    """
    found = _PLACE.fullmatch(message)
    if found is None:
        return _spelled(message)
    what = found["what"]
    path = _path_of(text, int(found["line"]))
    if _PATH.match(what) or not path:
        # The message names the key itself.
        return _spelled(what)
    if "." not in path:
        path = _named_by_value(text, path, what) or path
    return _spelled(f"{path}: {what}")


def _spelled(message: str) -> str:
    """The message with the key at its start as Python spells it."""
    return _PATH.sub(lambda found: found[0].replace("-", "_"), message, count=1)


def _path_of(text: str, line: int) -> str:
    """The path of what stands in a line of a plan that `toml.dumps` has written."""
    lines = text.splitlines()[:line]
    table = next((at[1:-1] for at in reversed(lines) if at.startswith("[")), "")
    key = "" if not lines or lines[-1].startswith("[") else lines[-1].partition(" = ")[0]
    return ".".join(filter(None, [table, key]))


def _named_by_value(text: str, path: str, what: str) -> str | None:
    """The key below `path` that has the value which a message complains of, if only one has."""
    got = _GOT.search(what)
    if got is None:
        return None
    wanted = got[1] if got[1] is not None else got[2]
    table = tomllib.loads(text).get(path, {})
    paths = [key for key, value in _leaves(table, path) if _text(value) == wanted]
    return paths[0] if len(paths) == 1 else None


def _leaves(table: object, path: str) -> Iterator[tuple[str, object]]:
    if isinstance(table, Mapping):
        for key, value in table.items():
            yield from _leaves(value, f"{path}.{key}")
    else:
        yield path, table


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
