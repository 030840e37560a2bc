"""Reports: one self-contained HTML file of figures, comparisons, sweeps and runs.

    rampmeter report results --out report.html

A folder is read by its contents (`find`), and becomes a section (`figures`, `comparisons`,
`sweeps`, `runs`) of charts, tables and prose (`model`). `charts` converts charts for Plotly, and
`page` writes the file. It contains the library, the style and the scripts, so that it can be read
without a network.
"""

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
from rampmeter.report.page import write

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
