"""Results as tables on a terminal."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from rampmeter.papers.draw import run_name
from rampmeter.papers.reproduce import Panel, Report
from rampmeter.papers.verdict import Measured, Row, tolerance_text
from rampmeter.plots.style import byte_size
from rampmeter.results import Run, slowdown

NONE = "-"
VERDICT_STYLES = {"match": "green", "miss": "bold red", "not judged": "dim"}


def run_tables(run: Run) -> Iterator[Table]:
    """What one run gave: overview, slowdown by size, and hops by tier."""
    yield overview({run.name: run.summary})
    yield slowdown_by_size(run.summary)
    yield tiers(run.summary)


def overview(summaries: Mapping[str, Mapping[str, Any]]) -> Table:
    """Quantities of whole runs, a column for each."""
    table = new_table("Overview", "", *summaries)
    rows = {
        "status": lambda s: str(s["status"]),
        "flows submitted": lambda s: count(s["flows"]["submitted"]),
        "flows delivered": lambda s: count(s["flows"]["delivered"]),
        "flows failed": lambda s: count(s["flows"]["failed"]),
        "utilisation": lambda s: number(s["utilisation"], 4),
        "goodput, Gbit/s": lambda s: number(s["goodput_gbps"], 1),
        "normalised FCT": lambda s: number(s["nfct"]),
        "mean slowdown": lambda s: number(s["slowdown"]["delivered"]["overall"]["mean"]),
        "p99 slowdown": lambda s: number(s["slowdown"]["delivered"]["overall"]["p99"]),
    }
    for name, cell in rows.items():
        table.add_row(name, *(cell(summary) for summary in summaries.values()))
    return table


def slowdown_by_size(summary: dict[str, Any], ideal: str = "delivered") -> Table:
    """Slowdown in multiples of one BDP."""
    table = new_table(
        "Slowdown by flow size", "size", "from", "flows", "mean", "p50", "p99", "p99.9", "max"
    )
    statistics = slowdown(summary, ideal)
    for group in statistics["bdp"]:
        table.add_row(str(group["label"]), byte_size(group["from_bytes"]), *_statistics(group))
    table.add_section()
    table.add_row("all", "", *_statistics(statistics["overall"]))
    return table


def compared_slowdown(summaries: Mapping[str, dict[str, Any]], ideal: str = "delivered") -> Table:
    """Mean and 99th percentile of slowdown by size, side by side."""
    table = new_table("Slowdown by flow size: mean / p99", "size", "flows", *summaries)
    columns = [slowdown(summary, ideal) for summary in summaries.values()]
    for groups in zip(*(column["bdp"] for column in columns), strict=True):
        table.add_row(str(groups[0]["label"]), count(groups[0]["count"]), *map(_pair, groups))
    table.add_section()
    overall = [column["overall"] for column in columns]
    table.add_row("all", count(overall[0]["count"]), *map(_pair, overall))
    return table


def tiers(summary: Mapping[str, Any]) -> Table:
    """Load, queues and drops of the links of each tier."""
    table = new_table("Links by tier", "tier", "ports", "utilisation", "longest queue", "drops")
    for tier in summary["tiers"]:
        drops = {reason: n for reason, n in tier["drops"].items() if n}
        table.add_row(
            str(tier["name"]),
            count(tier["ports"]),
            number(tier["utilisation"]),
            byte_size(tier["queue_max_bytes"]),
            ", ".join(f"{count(n)} {reason}" for reason, n in drops.items()) or "0",
        )
    return table


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


def speed(reports: Mapping[str, Mapping[str, Any]]) -> Table:
    """Speeds of benchmark runs, a column for each."""
    table = new_table("Speed of one core", "", *reports)
    rows = {
        "packet-hops per CPU second": lambda r: mega(r["hops_per_cpu_second"]),
        "events per CPU second": lambda r: mega(r["events_per_cpu_second"]),
        "data packets per CPU second": lambda r: mega(r["packets_per_cpu_second"]),
        "packet-hops": lambda r: count(r["hops"]),
        "events": lambda r: count(r["events"]),
        "data packets": lambda r: count(r["fresh_packets"]),
        "CPU seconds": lambda r: number(r["cpu_seconds"], 2),
        "peak memory": lambda r: byte_size(r["peak_rss_bytes"]),
    }
    for name, cell in rows.items():
        table.add_row(name, *(cell(report) for report in reports.values()))
    return table


def new_table(title: str, *headings: str) -> Table:
    """A table whose first column is text and whose others are numbers."""
    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for idx, heading in enumerate(headings):
        table.add_column(heading, justify="right" if idx else "left", no_wrap=idx > 0)
    return table


def number(value: float | None, places: int = 3) -> str:
    """A number with a fixed number of decimal places, or a dash."""
    if value is None or math.isnan(value):
        return NONE
    return f"{value:.{places}f}"


def count(value: int) -> str:
    """A whole number with its thousands apart."""
    return f"{value:,}".replace(",", " ")


def mega(value: float) -> str:
    """A number in millions."""
    return f"{value / 1e6:.2f} M"


def _statistics(group: Mapping[str, Any]) -> Sequence[str]:
    names = ("mean", "p50", "p99", "p999", "max")
    return [count(group["count"]), *(number(group[name]) for name in names)]


def _pair(group: Mapping[str, Any]) -> str:
    return f"{number(group['mean'])} / {number(group['p99'])}"


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
