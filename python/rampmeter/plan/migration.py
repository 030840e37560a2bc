"""Plans and configurations of earlier versions, with the present names and units of keys."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rampmeter import _core
from rampmeter._core import PlanError
from rampmeter.plan.manifest import without_nulls
from rampmeter.text.locations import location_of, relocated, undecodable, unreadable
from rampmeter.text.toml import dumps


@dataclass(frozen=True, slots=True)
class RenamedSetting:
    """A key that was renamed in a text."""

    line: int
    """Line in the text, from 1."""
    old: str
    """The former key, and its value if that is a number."""
    new: str
    """The present key, and its value if that is a number."""


def present_plan(plan: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[RenamedSetting]]:
    """Returns a plan of results with the present keys, and the settings that were renamed."""
    try:
        text, settings = _core.migrate(dumps(without_nulls(plan)), "")
    except PlanError:
        # A former key and the present one: no version writes both.
        return plan, []
    return (tomllib.loads(text) if settings else plan), [RenamedSetting(*one) for one in settings]


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
