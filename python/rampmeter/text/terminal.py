"""Consoles for tables on standard output, and for progress on standard error."""

import os
from typing import TYPE_CHECKING, Any, Final

from rampmeter.on_demand import rich_console

if TYPE_CHECKING:
    from rich.console import Console

DUMB: Final = ("dumb", "unknown")
"""Values of TERM of terminals that cannot move their cursor, such as shells in editors."""


def table_console() -> "Console":
    """Returns a console for tables on standard output.

    It writes no escape codes without a terminal, to a terminal that is dumb, or if NO_COLOR is set.
    """
    return rich_console.Console(highlight=False, **_abilities())


def progress_console() -> "Console":
    """Returns a console for progress on standard error.

    If NO_COLOR is set bars have no colours, and are neither bold nor dim. A dumb terminal is none:
    it has lines instead of bars.
    """
    return rich_console.Console(stderr=True, **_abilities())


def _abilities() -> dict[str, Any]:
    # With NO_COLOR rich itself omits colours only, and still writes bold and dim text.
    colours = None if os.environ.get("NO_COLOR") else "auto"
    is_dumb = os.environ.get("TERM", "").lower() in DUMB
    return {"color_system": colours, "force_terminal": False if is_dumb else None}
