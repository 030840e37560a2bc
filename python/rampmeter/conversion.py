"""Files of other tools as traces of ours."""

import warnings
from os import PathLike

from rampmeter import _core


def convert(
    source: str | PathLike[str],
    format: str,  # noqa: A002 (the name of the plan's key)
    target: str | PathLike[str],
    sort: bool = False,  # noqa: FBT001
    *,
    topology: str | PathLike[str] | None = None,
) -> int:
    """Turn a trace of another tool, or of another form, into ours; give its number of flows.

    A target that ends in `.toml` is a topology. `topology` is the file that numbers or names the
    hosts of the source.
    What the source has and the target has not is a warning, a sentence each.
    """
    n_flows, notes = _core.convert(source, format, target, sort, topology)
    for note in notes:
        warnings.warn(note, stacklevel=2)
    return n_flows
