"""Plans and configurations of earlier versions, with the present names and units of keys."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rampmeter import _core
from rampmeter._core import RENAMED_PLAN_KEYS, PlanError
from rampmeter.text.locations import location_of, relocated, undecodable, unreadable


@dataclass(frozen=True, slots=True)
class RenamedSetting:
    """A key that was renamed in a text."""

    line: int
    """Line in the text, from 1."""
    old: str
    """The former key, and its value if that is a number."""
    new: str
    """The present key, and its value if that is a number."""


def migrate(file: Path) -> tuple[str, list[RenamedSetting]]:
    """Returns the text of a file with the present keys, and the settings that were renamed.

    The file is a plan, a sweep or a configuration of `rampd`. Values with a unit, such as
    `"1.5 us"`, are kept, and so is all else.

    Raises `PlanError` for a file that cannot be read or is not TOML, and for a table with a former
    key and the present one.
    """
    try:
        text, settings = _core.migrate(file.read_bytes().decode(), str(file))
    except UnicodeDecodeError as error:
        raise undecodable(file, error) from None
    except OSError as error:
        raise unreadable(file, error) from error
    except PlanError as error:
        raise relocated(error, replace(location_of(error), file=file)) from None
    return text, [RenamedSetting(*setting) for setting in settings]


def with_present_keys(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the table of a plan of an earlier version with the present keys of its tables."""
    present = dict(plan)
    for table, old, new in RENAMED_PLAN_KEYS:
        keys = present.get(table)
        if isinstance(keys, Mapping) and old in keys:
            present[table] = {new if key == old else key: keys[key] for key in keys}
    return present
