"""Files of other tools as traces of ours."""

import warnings
from os import PathLike
from pathlib import Path

from rampmeter import _core
from rampmeter.text.arguments import path_argument, text_argument
from rampmeter.text.files import replaced_by_simulator
from rampmeter.text.locations import unreadable


def convert(
    source: str | PathLike[str],
    format: str,  # noqa: A002 (the name of the plan's key)
    target: str | PathLike[str],
    sort: bool = False,  # noqa: FBT001
    *,
    topology: str | PathLike[str] | None = None,
    vector_bytes: int | None = None,
    groups_file: str | PathLike[str] | None = None,
) -> int:
    """Converts a trace or a topology of another tool to the form of plans; returns its flows.

    The format `auto` is detected by the name or the contents of the source. A target that ends in
    `.toml` is a topology. `topology` is the file that numbers or names the hosts of the source: a
    topology or a plan. `vector_bytes` is the length of the vector of an MSCCL algorithm, and
    `groups_file` the file with the groups of a Chakra trace. Each feature of the source
    that the target lacks is a warning of one sentence.
    """
    text_argument("format", format)
    origin, file = path_argument("source", source), path_argument("target", target)
    inputs = [path_argument("topology", topology)] if topology is not None else []
    inputs += [path_argument("groups_file", groups_file)] if groups_file is not None else []
    check_files(origin, *inputs)
    with replaced_by_simulator(file) as partial:
        n_flows, notes = _core.convert(
            source, format, str(partial), sort, topology, vector_bytes, groups_file
        )
    for note in notes:
        warnings.warn(note, stacklevel=2)
    return n_flows


def check_files(*inputs: Path) -> None:
    """Raises `PlanError` for the first file that cannot be read."""
    for file in inputs:
        try:
            with file.open("rb"):
                pass
        except OSError as error:
            raise unreadable(file, error) from None
