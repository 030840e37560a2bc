"""Published and measured values side by side, on a terminal."""

import math
from collections import Counter

from rich.table import Table
from rich.text import Text

from rampmeter.papers.draw import load, workload
from rampmeter.papers.figure import SubFigure
from rampmeter.papers.reproduce import Panel, Report
from rampmeter.papers.verdict import Measured, Row, tolerance_text
from rampmeter.tables import new_table
from rampmeter.text import NONE, number

VERDICT_STYLES = {"match": "green", "miss": "bold red", "not judged": "dim"}


def panel_table(report: Report, panel: Panel) -> Table:
    """Published and measured values of one sub-figure."""
    spec = next(one for one in report.figure.sub_figures if one.id == panel.id)
    has_variant = any(row.variant is not None for row in panel.rows)
    columns = ["", "metric", "published", "measured", "paper preset", "diff", "within", "verdict"]
    shown = [
        name
        for name in columns
        if (name != "metric" or len(spec.metrics) > 1) and (name != "paper preset" or has_variant)
    ]
    table = new_table(f"{report.figure.number}{panel.id}  {panel.title}", *shown)
    for row in panel.rows:
        cells = dict(zip(columns, _cells(report, spec, row), strict=True))
        table.add_row(*(cells[name] for name in shown))
    reasons = Counter(row.reason for row in panel.rows if row.reason)
    if reasons:
        table.caption = "not judged: " + ", ".join(f"{n} {reason}" for reason, n in reasons.items())
    return table


def _cells(report: Report, spec: SubFigure, row: Row) -> list[str | Text]:
    places = 4 if row.cell.metric == "utilisation" else 3
    verdict = NONE if row.verdict == "not judged" else row.verdict
    return [
        _name(report, spec, row),
        row.cell.metric,
        number(row.fact.published, places) if row.fact else NONE,
        _measured(row.measured, places),
        _measured(row.variant, places),
        _difference(row, places),
        tolerance_text(row.fact.tolerance) if row.fact else NONE,
        Text(verdict, style=VERDICT_STYLES[row.verdict]),
    ]


def _name(report: Report, spec: SubFigure, row: Row) -> str:
    if row.cell.bin is not None and spec.points:
        return f"{workload(report.figure, row.cell.run)}, {spec.labels[row.cell.bin]}"
    if row.cell.bin is not None:
        return f"{spec.labels[row.cell.bin]} BDP"
    name = workload(report.figure, row.cell.run)
    if spec.drawing not in ("by-load", "spread", "sustained"):
        return name
    return f"{name}, {load(report.figure, spec, row.cell.run):.4g}"


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
