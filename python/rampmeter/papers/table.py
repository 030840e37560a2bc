"""Published and measured values side by side, on a terminal."""

import math

from rich.table import Table
from rich.text import Text

from rampmeter.papers.draw import run_name
from rampmeter.papers.reproduce import Panel, Report
from rampmeter.papers.verdict import Measured, Row, tolerance_text
from rampmeter.tables import new_table
from rampmeter.text import NONE, number

VERDICT_STYLES = {"match": "green", "miss": "bold red", "not judged": "dim"}


def panel_table(report: Report, panel: Panel) -> Table:
    """Published and measured values of one sub-figure."""
    figure = report.figure
    labels = next(one.labels for one in figure.sub_figures if one.id == panel.id)
    has_variant = any(row.variant is not None for row in panel.rows)
    headings = ["", "metric", "published", "measured", "difference", "tolerance", "verdict"]
    if has_variant:
        headings.insert(4, "paper preset")
    table = new_table(f"{figure.number}{panel.id}  {panel.title}", *headings)
    for row in panel.rows:
        # A panel by size shows one run, so the bin is enough.
        name = run_name(figure, row.cell.run) if row.cell.bin is None else labels[row.cell.bin]
        places = 4 if row.cell.metric == "utilisation" else 3
        cells: list[str | Text] = [
            name if row.cell.bin is None else f"{name} BDP",
            row.cell.metric,
            number(row.fact.published, places) if row.fact else NONE,
            _measured(row.measured, places),
        ]
        if has_variant:
            cells.append(_measured(row.variant, places))
        cells += [
            _difference(row, places),
            tolerance_text(row.fact.tolerance) if row.fact else NONE,
            _verdict(row),
        ]
        table.add_row(*cells)
    return table


def _measured(measured: Measured | None, places: int) -> str:
    if measured is None or measured.n_counted == 0:
        return NONE
    text = number(measured.mean, places)
    if len(measured.values) > 1:
        text += f" ({number(min(measured.values), places)}-{number(max(measured.values), places)})"
    return text


def _difference(row: Row, places: int) -> str:
    if row.fact is None or row.difference is None or math.isnan(row.difference):
        return NONE
    if row.fact.tolerance.kind == "relative":
        return f"{row.difference * 100:+.1f} %"
    return f"{row.difference:+.{places}f}"


def _verdict(row: Row) -> Text:
    text = f"{row.verdict}: {row.reason}" if row.reason else row.verdict
    return Text(text, style=VERDICT_STYLES[row.verdict])
