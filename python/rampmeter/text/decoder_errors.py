"""Errors of plans from the simulator, with the nearest name that is allowed."""

from dataclasses import replace
from difflib import get_close_matches

from rampmeter._core import PlanError
from rampmeter.text.locations import SYNTAX, Location, relocated


def plain_error(error: PlanError, location: Location) -> PlanError:
    """Returns an error at another location, with the nearest name that is allowed.

    >>> error = PlanError()
    >>> error.expected, error.got = "one of hosts, host-ns", "host"
    >>> error._name, error._names = "host", ["hosts", "host-ns"]
    >>> str(plain_error(error, Location("a.toml", "topology.host", 5)))
    'a.toml: line 5: topology.host: expected one of hosts, host-ns, got host; did you mean hosts?'
    """
    if error._names is None and error._missing is None:
        return relocated(error, location)
    near = get_close_matches(error._name or "", error._names or (), n=1)
    hint = f"did you mean {near[0]}?" if near else ""
    code = error.code or SYNTAX
    if error._before or error._after:
        # The error is about another file.
        inner = Location(key=error._missing or "").error(
            expected=error.expected, got=error.got, hint=hint
        )
        error.code, error.problem = code, f"{error._before}{inner}{error._after}"
        return relocated(error, location)
    # The line of a missing key is that of its table.
    place = replace(location, key=f"{location.key}.{error._missing or ''}".strip("."))
    return place.error(expected=error.expected, got=error.got, hint=hint, code=code)
