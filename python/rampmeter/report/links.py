"""Links from a report to files in its folder and below."""

import os
from pathlib import Path
from urllib.parse import quote

from rampmeter.report.model import Cell, Link


def link_to(file: Path, page_folder: Path, text: str | None = None) -> Cell | Link:
    """Returns a link to a file, relative to the folder of the report; nothing without a file."""
    text = text or file.name
    if not file.is_file():
        return ""
    target = Path(os.path.relpath(file.resolve(), page_folder.resolve())).as_posix()
    return Link(text, quote(target))
