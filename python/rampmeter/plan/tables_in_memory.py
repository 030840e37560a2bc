"""Files that hold tables of the caller: errors cite the argument, not the file."""

from dataclasses import replace
from pathlib import Path
from typing import Final

from rampmeter._core import PlanError
from rampmeter.text.locations import Location, location_of

_NAMES: Final[dict[str, str]] = {}
"""Names of tables by their files."""
FILE: Final = ".file"
"""End of the keys of files in plans."""


def name_table(file: Path, name: str) -> None:
    """Records the name of the table in a file, for errors."""
    _NAMES[str(file)] = name


def cite_table(error: PlanError) -> tuple[PlanError, Location]:
    """Returns an error of the simulator and its location, with the name of a table in memory.

    Other errors are returned as they are.
    """
    location, problem = location_of(error), error.problem or ""
    for file, name in _NAMES.items():
        if problem.startswith(f"{file}:"):
            # After the file comes the number of the row, if the error has one.
            rest = problem.removeprefix(f"{file}:")
            error.problem = f"{name}:{rest}" if rest.startswith(" ") else f"{name}: row {rest}"
            return error, replace(location, key=location.key.removesuffix(FILE))
    return error, location
