"""Results as tables on a terminal."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from rich import box
from rich.table import Table

from rampmeter.results import Group, Run, overall_slowdown, slowdown_groups
from rampmeter.text import NONE, byte_size, count, mega, number

Cell: TypeAlias = Callable[[Mapping[str, Any]], str]
"""One cell of a row, from what the column is about."""


def run_tables(run: Run) -> Iterator[Table]:
    """What one run gave: overview, slowdown by size, and hops by tier."""
    yield overview({run.name: run.summary})
    yield slowdown_by_size(run.summary)
    yield tiers(run.summary)


def overview(summaries: Mapping[str, Mapping[str, Any]]) -> Table:
    """Quantities of whole runs, a column for each."""
    table = new_table("Overview", "", *summaries)
    rows: dict[str, Cell] = {
        "status": lambda s: str(s["status"]),
        "flows submitted": lambda s: count(s["flows"]["submitted"]),
        "flows delivered": lambda s: count(s["flows"]["delivered"]),
        "flows failed": lambda s: count(s["flows"]["failed"]),
        "flows rejected": lambda s: count(s["flows"].get("rejected", 0)),
        "utilisation": lambda s: number(s["utilisation"], 4),
        "goodput, Gbit/s": lambda s: number(s["goodput_gbps"], 1),
        "normalised FCT": lambda s: number(s["nfct"]),
        "mean slowdown": lambda s: number(overall_slowdown(s).mean),
        "p99 slowdown": lambda s: number(overall_slowdown(s).p99),
    }
    if not any(summary["flows"].get("rejected") for summary in summaries.values()):
        # Only transports that promise a bound reject.
        del rows["flows rejected"]
    for name, cell in rows.items():
        table.add_row(name, *(cell(summary) for summary in summaries.values()))
    return table


def fabrics(resolved: Mapping[str, Mapping[str, Any]]) -> Iterator[Table]:
    """The settings in which the fabrics of runs differ, a run a line; nothing if in none."""
    keys = list(dict.fromkeys(key for fabric in resolved.values() for key in fabric))
    differing = [key for key in keys if len({str(f.get(key)) for f in resolved.values()}) > 1]
    if not differing:
        return
    table = new_table("Fabric", "", *differing)
    for name, fabric in resolved.items():
        values = (fabric.get(key) for key in differing)
        table.add_row(name, *(NONE if value is None else str(value) for value in values))
    yield table


def slowdown_by_size(summary: Mapping[str, Any], ideal: str = "delivered") -> Table:
    """Slowdown in multiples of one BDP."""
    table = new_table("Slowdown by flow size", "", "flows", "mean", "p50", "p99", "p99.9", "max")
    for group in slowdown_groups(summary, ideal):
        table.add_row(_size(group), *_statistics(group))
    table.add_section()
    table.add_row("all", *_statistics(overall_slowdown(summary, ideal)))
    return table


def compared_slowdown(
    summaries: Mapping[str, Mapping[str, Any]], ideal: str = "delivered"
) -> Table:
    """Mean and 99th percentile of slowdown by size, side by side."""
    table = new_table("Slowdown by flow size: mean / p99", "", "flows", *summaries)
    columns = [slowdown_groups(summary, ideal) for summary in summaries.values()]
    for groups in zip(*columns, strict=True):
        table.add_row(_size(groups[0]), count(groups[0].count), *map(_pair, groups))
    table.add_section()
    overall = [overall_slowdown(summary, ideal) for summary in summaries.values()]
    table.add_row("all", count(overall[0].count), *map(_pair, overall))
    return table


def tiers(summary: Mapping[str, Any]) -> Table:
    """Traffic, queues and drops of the ports of each tier."""
    table = new_table("Ports by tier", "", "ports", "sent", "longest queue", "drops")
    for tier in summary["tiers"]:
        drops = {reason: n for reason, n in tier["drops"].items() if n}
        table.add_row(
            str(tier["name"]),
            count(tier["ports"]),
            byte_size(tier["bytes"]),
            byte_size(tier["queue_max_bytes"]),
            ", ".join(f"{count(n)} {reason}" for reason, n in drops.items()) or "0",
        )
    return table


def speed(reports: Mapping[str, Mapping[str, Any]]) -> Table:
    """Speeds of benchmark runs, a column for each."""
    table = new_table("Speed of one core", "", *reports)
    rows: dict[str, Cell] = {
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
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        header_style="bold",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for idx, heading in enumerate(headings):
        table.add_column(heading, justify="right" if idx else "left", no_wrap=True)
    return table


def _size(group: Group) -> str:
    if group.upper_bytes is None:
        return group.label
    return f"{group.label} (to {byte_size(group.upper_bytes)})"


def _statistics(group: Group) -> Sequence[str]:
    values = (group.mean, group.p50, group.p99, group.p999, group.max)
    return [count(group.count), *map(number, values)]


def _pair(group: Group) -> str:
    return f"{number(group.mean)} / {number(group.p99)}" if group.count else NONE
