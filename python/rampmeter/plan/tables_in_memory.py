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
    location, name = location_of(error), _NAMES.get(error.data_file or "")
    if name is None:
        return error, location
    row, place = "", f"{error.data_file}: "
    if error.data_line is not None:
        row, place = f"row {error.data_line}: ", f"{error.data_file}:{error.data_line}: "
    error.problem = f"{name}: {row}{(error.problem or '').removeprefix(place)}"
    error.data_file = name
    return error, replace(location, key=location.key.removesuffix(FILE))
