"""Reports: one self-contained HTML file of figures, comparisons, sweeps and runs.

    rampmeter report results --out report.html

A folder is read by its contents (`find`), and becomes a section (`figures`, `comparisons`,
`sweeps`, `runs`) of charts, tables and prose (`model`). `charts` converts charts for Plotly, and
`page` makes the file. It contains the library, the style and the scripts, so that it can be read
without a network.
"""

from collections.abc import Sequence
from pathlib import Path

from rampmeter.report.find import find
from rampmeter.report.model import (
    Chart,
    Column,
    DataTable,
    LinkList,
    MarkdownText,
    Section,
    Series,
    SvgImage,
)
from rampmeter.text.files import write_text

__all__ = [
    "Chart",
    "Column",
    "DataTable",
    "LinkList",
    "MarkdownText",
    "Section",
    "Series",
    "SvgImage",
    "find",
    "write",
]


def write(sections: Sequence[Section], file: Path, title: str = "Rampmeter report") -> None:
    """Writes a report.

    An older one in its place is replaced atomically, and remains if writing fails.
    """
    # Plotly and Jinja take 0.4 s to import, and commands that may write a report rarely do.
    from rampmeter.report.page import html

    write_text(file, html(sections, title))
