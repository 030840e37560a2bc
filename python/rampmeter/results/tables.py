"""Results of one run as tables."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from rampmeter.analysis.confidence import Interval
from rampmeter.on_demand import rich_box, rich_table
from rampmeter.results.blame_tables import blame_tables
from rampmeter.results.operations import run_operations
from rampmeter.results.records import RunRecord
from rampmeter.results.rounds import call_tables, round_tables
from rampmeter.results.slowdown import STATISTICS, Group, overall_slowdown, slowdown_groups
from rampmeter.results.table import Cell, Column, ResultTable

if TYPE_CHECKING:
    from rich.table import Table

QUEUES_NOTE: Final = (
    "The longest queues are exact. Queues in queues.parquet and series.parquet are sampled "
    "(run.sample-us), so their maxima are lower."
)
PAUSES_NOTE: Final = (
    "Pauses are by priority flow control; paused is the share of the run, the mean of the ports."
)
INTERVAL_NOTE: Final = "± is half a 95 % confidence interval, by batch means."
OVERVIEW_WIDTH: Final = 34
"""Width of the names of quantities of a run, so that each fits a line."""
NAMES: Final = {"p999": "p99.9"}
"""Headings of statistics that differ from their keys."""
STATISTICS_COLUMNS: Final = tuple(Column(name, NAMES.get(name, name)) for name in STATISTICS)
SIZES: Final = (
    Column("size"),
    Column("upper_bytes", "up to", form="bytes"),
    Column("flows", "flows"),
    *STATISTICS_COLUMNS,
)
TENANTS: Final = (
    Column("tenant", form="name"),
    Column("transport", "transport"),
    Column("flows", "flows"),
    *(column for column in STATISTICS_COLUMNS if column.key != "p999"),
    Column("goodput_gbps", "goodput", "Gbit/s", 2),
)


def run_tables(run: RunRecord) -> Iterator[ResultTable]:
    """Yields all tables of one run: its overview first, then slowdown, ports, jobs and outages."""
    yield overview(run)
    yield slowdown_by_size(run.summary)
    yield from blame_tables(run.blame)
    yield from tenants(run)
    yield tiers(run.summary)
    yield from round_tables(run.summary)
    yield from call_tables(run.summary)
    yield from run_operations(run)


def overview(run: RunRecord) -> ResultTable:
    """Returns a table of the quantities of a whole run."""
    summary = run.summary
    flows = summary["flows"]
    everything = overall_slowdown(summary)
    cells: list[tuple[Column, Cell]] = [
        (Column("run"), run.name),
        (Column("status", "status"), run.status),
        (Column("flows_submitted", "flows submitted"), flows["submitted"]),
        (Column("flows_delivered", "flows delivered"), flows["delivered"]),
    ]
    # Flows whose dependencies had not ended by the end of the run are `not_started`.
    for name in ("failed", "rejected", "unfinished", "not_started"):
        column = Column(f"flows_{name}", f"flows {name.replace('_', ' ')}", hides_zero=True)
        cells.append((column, flows.get(name, 0)))
    cells += [
        *_statistics_scope(summary),
        (
            Column("utilisation", "utilisation of the hosts' links", places=4),
            summary["utilisation"],
        ),
        (Column("goodput_gbps", "goodput, Gbit/s", places=1), summary["goodput_gbps"]),
        (
            Column("delivered_share", "delivered share at last arrival", places=4),
            summary.get("delivered_share"),
        ),
        (Column("nfct", "mean FCT over mean ideal"), summary["nfct"]),
        (Column("slowdown_mean", "mean slowdown"), _with_interval(everything, "mean")),
        (Column("slowdown_p99", "p99 slowdown"), _with_interval(everything, "p99")),
    ]
    columns, row = zip(*cells, strict=True)
    return ResultTable(
        "overview", "Overview", columns, [row], is_transposed=True, label_width=OVERVIEW_WIDTH
    )


def _statistics_scope(summary: Mapping[str, Any]) -> Iterator[tuple[Column, Cell]]:
    """Yields the scope of the statistics: the window and the warm-up."""
    if "window" in summary:
        window = summary["window"] or {"from_ps": None, "to_ps": None}
        for end in ("from", "to"):
            time = window[f"{end}_ps"]
            heading = f"measured {end}, µs"
            yield (
                Column(f"window_{end}_us", heading, places=1),
                None if time is None else time / 1e6,
            )
    if "warmup" in summary:
        warmup = summary["warmup"]
        heading = f"flows excluded as warm-up ({warmup['rule']})"
        yield Column("flows_excluded", heading), int(warmup["flows"])


def slowdown_by_size(summary: Mapping[str, Any], ideal: str = "delivered") -> ResultTable:
    """Returns a table of slowdown by size, in multiples of one BDP."""
    groups = [*slowdown_groups(summary, ideal), overall_slowdown(summary, ideal)]
    rows: list[tuple[Cell, ...]] = [
        (
            group.label,
            group.upper_bytes,
            group.count,
            *(_with_interval(group, name) for name in STATISTICS),
        )
        for group in groups
    ]
    has_intervals = any(group.ci for group in groups)
    return ResultTable(
        "slowdown_by_size",
        "Slowdown by flow size",
        SIZES,
        rows,
        notes=(INTERVAL_NOTE,) if has_intervals else (),
        sections=frozenset([len(rows) - 2]),
    )


def tenants(run: RunRecord) -> Iterator[ResultTable]:
    """Yields slowdown and goodput by tenant with transports; nothing for one tenant."""
    summary = run.summary
    by_tenant: Mapping[str, Mapping[str, Any]] = summary.get("tenants", {})
    if not by_tenant:
        return
    transport = run.manifest["plan"]["transport"]
    tables = transport if isinstance(transport, list) else [transport]
    lower = tables[0].get("best-effort")
    if len(tables) == 1 and lower:
        tables = [*tables, lower]
    goodput = summary.get("tenant_goodput_gbps", {})
    rows: list[tuple[Cell, ...]] = [
        (
            int(tenant),
            str(tables[min(int(tenant), len(tables) - 1)]["name"]),
            stats["count"],
            *(stats[name] for name in ("mean", "p50", "p99", "max")),
            goodput.get(tenant),
        )
        for tenant, stats in sorted(by_tenant.items(), key=lambda item: int(item[0]))
    ]
    yield ResultTable("tenants", "Slowdown by tenant", TENANTS, rows)


def tiers(summary: Mapping[str, Any]) -> ResultTable:
    """Returns a table of traffic, queues and drops of the ports of each tier."""
    rows: list[tuple[Cell, ...]] = []
    has_pauses = any("pfc" in tier for tier in summary["tiers"])
    for tier in summary["tiers"]:
        place = tier.get("queue_max_at")
        rows.append(
            (
                str(tier["name"]),
                tier["ports"],
                tier["bytes"],
                tier.get("utilisation"),
                tier["queue_max_bytes"],
                None if place is None else f"{place['from']}-{place['to']}",
                *(_pauses(tier, summary["counters"]["end_ps"]) if has_pauses else ()),
                tier["drops"],
            )
        )
    columns = (
        Column("tier"),
        Column("ports", "ports"),
        Column("sent_bytes", "sent", form="bytes"),
        Column("utilisation", "utili-\nsation", places=4),
        Column("queue_max_bytes", "longest\nqueue", form="bytes"),
        Column("queue_max_port", "at"),
        *((Column("pauses", "pauses"), Column("paused_share", "paused", places=4)) * has_pauses),
        Column("drops", "drops", width=18),
    )
    notes = (QUEUES_NOTE, PAUSES_NOTE) if has_pauses else (QUEUES_NOTE,)
    return ResultTable("tiers", "Ports by tier", columns, rows, notes=notes)


def _pauses(tier: Mapping[str, Any], end_ps: int) -> tuple[Cell, Cell]:
    """Returns the pauses by priority flow control, and the share of paused time."""
    pfc = tier.get("pfc")
    if pfc is None:
        return None, None
    return pfc["pauses"], pfc["paused_ps"] / max(tier["ports"] * end_ps, 1)


def fabrics(resolved: Mapping[str, Mapping[str, Any]]) -> Iterator[ResultTable]:
    """Yields a table of the settings in which fabrics differ, if any."""
    settings = {name: dict(_settings(fabric)) for name, fabric in resolved.items()}
    keys = list(dict.fromkeys(key for fabric in settings.values() for key in fabric))
    differing = [key for key in keys if len({str(f.get(key)) for f in settings.values()}) > 1]
    if not differing:
        return
    columns = (
        Column("transport"),
        *(Column(key, key.replace(".", ".\n"), form="name") for key in differing),
    )
    rows: list[tuple[Cell, ...]] = [
        (name, *(fabric.get(key) for key in differing)) for name, fabric in settings.items()
    ]
    yield ResultTable("fabric", "Fabric", columns, rows)


def _settings(table: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Cell]]:
    """Yields the settings of a table of a plan, and those of tables in it, by dotted keys."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _settings(value, f"{path}{key}.")
        elif value is None or isinstance(value, int | float | str):
            yield f"{path}{key}", value
        else:
            yield f"{path}{key}", str(value)


def speed(reports: Mapping[str, Mapping[str, Any]]) -> ResultTable:
    """Speeds of benchmark runs, a row for each; rates are per second of processor time."""
    keys = {
        "hops_per_cpu_second": "packet-hops\nper CPU s",
        "events_per_cpu_second": "events\nper CPU s",
        "packets_per_cpu_second": "packets\nper CPU s",
        "hops": "packet-\nhops",
        "events": "events",
        "fresh_packets": "packets",
    }
    columns = (
        Column("plan"),
        *(Column(key, heading, form="mega") for key, heading in keys.items()),
        Column("cpu_seconds", "CPU s", places=2),
        Column("peak_rss_bytes", "peak\nmemory", form="bytes"),
    )
    rows = [
        (name, *(report[column.key] for column in columns[1:])) for name, report in reports.items()
    ]
    return ResultTable("speed", "Speed of one core", columns, rows)


def new_table(title: str, *headings: str) -> "Table":
    """Returns a table whose first column is text and whose others are numbers."""
    table = rich_table.Table(
        title=title,
        title_justify="left",
        title_style="bold",
        header_style="bold",
        caption_justify="left",
        box=rich_box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for idx, heading in enumerate(headings):
        table.add_column(heading, justify="right" if idx else "left", no_wrap=True)
    return table


def _with_interval(group: Group, name: str) -> Interval:
    """Returns a statistic with its interval, if it has one."""
    return Interval(getattr(group, name), group.ci.get(name), min(group.count, 1))
