"""Console for tables on standard output."""

import os
from typing import TYPE_CHECKING

from rampmeter.on_demand import rich_console

if TYPE_CHECKING:
    from rich.console import Console


def table_console() -> "Console":
    """Returns a console for tables on standard output.

    It writes no escape codes without a terminal, or if NO_COLOR is set: rich itself then leaves out
    colours only, and still writes bold and dim text.
    """
    has_styles = not os.environ.get("NO_COLOR")
    return rich_console.Console(highlight=False, color_system="auto" if has_styles else None)
