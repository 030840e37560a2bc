"""Files of other tools as traces of ours."""

import warnings
from os import PathLike

from rampmeter import _core


def convert(
    source: str | PathLike[str],
    format: str,  # noqa: A002 (the name of the plan's key)
    target: str | PathLike[str],
    sort: bool = False,  # noqa: FBT001
) -> int:
    """Turn a trace of another tool, or of another form, into ours; give its number of flows.

    What the source has and the target has not is a warning, a sentence each.
    """
    n_flows, notes = _core.convert(source, format, target, sort)
    for note in notes:
        warnings.warn(note, stacklevel=2)
    return n_flows
