"""Errors of the decoder of plans in the words of other errors, with the nearest allowed name."""

import re
from dataclasses import replace
from difflib import get_close_matches
from typing import Final

from rampmeter._core import PlanError
from rampmeter.text.locations import NOTHING, SYNTAX, Location, relocated

_UNKNOWN: Final = re.compile(
    r"unknown (?:field|variant) `([^`]*)`, (?:there are no (?:fields|variants)|"
    r"expected (?:one of )?((?:(?:, | or )?`[^`]+`)+))"
)
_MISSING: Final = re.compile(r"missing field `([^`]+)`")
_SYSTEM: Final = re.compile(r" \(os error \d+\)")
_NAME: Final = re.compile(r"`([^`]+)`")


def plain_error(error: PlanError, location: Location) -> PlanError:
    """Returns an error at another location, those of the decoder in plain words.

    >>> error = PlanError()
    >>> error.problem = "unknown field `host`, expected one of `hosts`, `host-ns`"
    >>> str(plain_error(error, Location("a.toml", "topology.host", 5)))
    'a.toml: line 5: topology.host: expected one of hosts, host-ns, got host; did you mean hosts?'
    """
    problem = _SYSTEM.sub("", error.problem or "")
    found = _UNKNOWN.search(problem) or _MISSING.search(problem)
    if found is None:
        is_in_file = not problem.startswith("expected ")
        if not is_in_file and (near := _nearest(error.expected or "", str(error.got))):
            hint = f"did you mean {near}?"
            return location.error(
                expected=error.expected, got=error.got, hint=hint, code=error.code or SYNTAX
            )
        expected = "a text" if error.expected == "variant identifier" else error.expected
        if expected == error.expected and problem == error.problem:
            return relocated(error, location)
        code = error.code or SYNTAX
        return (
            location.error(expected=expected, got=error.got, code=code)
            if expected is not None
            else location.error(problem, code=code)
        )
    key, expected, got, hint = _parts(found)
    before, after = problem[: found.start()], problem[found.end() :]
    if before or after:
        # The error is about another file, which the text before names.
        hint = f"; {hint}" if hint else ""
        name = f"{key}: " if key else ""
        text = f"{before}{name}expected {expected}, got {got}{hint}{after}"
        return location.error(text, code=error.code or SYNTAX)
    # The line of a missing key is that of its table.
    place = replace(location, key=f"{location.key}.{key}".strip("."))
    return place.error(expected=expected, got=got, hint=hint, code=error.code or SYNTAX)


def _nearest(expected: str, got: str) -> str:
    """Returns the listed name that is nearest to the one that came; empty without a list."""
    names = expected.removeprefix("one of ").split(", ") if expected.startswith("one of ") else []
    return next(iter(get_close_matches(got.strip('"'), names, n=1)), "")


def _parts(found: re.Match[str]) -> tuple[str, str, str, str]:
    """Returns the key that is missing, the expected and the actual value, and a hint."""
    if found.re is _MISSING:
        return found[1], "this key", NOTHING, ""
    names = _NAME.findall(found[2] or "")
    near = get_close_matches(found[1], names, n=1)
    expected = f"one of {', '.join(names)}" if names else "no key"
    return "", expected, found[1] or "an empty name", f"did you mean {near[0]}?" if near else ""
