"""Reports: one self-contained HTML file of figures, comparisons, sweeps and runs.

    rampmeter report results --out report.html

A folder is read by its contents (`find`), and becomes a section (`figures`, `comparisons`,
`sweeps`, `runs`) of charts, tables and prose (`model`). `charts` gives charts to Plotly, and `page`
writes the file, with the library, the style and the scripts in it: it is read without a network.
"""

from rampmeter.report.find import find
from rampmeter.report.model import Chart, Column, Grid, Image, Links, Prose, Section, Series
from rampmeter.report.page import write

__all__ = [
    "Chart",
    "Column",
    "Grid",
    "Image",
    "Links",
    "Prose",
    "Section",
    "Series",
    "find",
    "write",
]
