"""Results as tables on a terminal."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from rich import box
from rich.table import Table

from rampmeter.analysis.confidence import Interval
from rampmeter.results.rounds import call_tables, round_tables
from rampmeter.results.slowdown import Group, Slowdowns, overall_slowdown, slowdown_groups
from rampmeter.text.numbers import NONE, byte_size, count, mega, number
from rampmeter.text.text_table import PLUS_MINUS, TextTable

QUEUES_NOTE: Final = (
    "The longest queues are exact. Queues in queues.parquet and series.parquet are sampled "
    "(run.sample-us), so their maxima are lower."
)
PAUSES_NOTE: Final = (
    "Pauses are by priority flow control; paused is the share of the run, the mean of the ports."
)
WINDOWS_NOTE: Final = (
    "Utilisation and goodput are over each transport's own measured window. The windows differ: "
    "each begins after the transport's own warm-up, and in bursts it ends with its last delivery."
)
INTERVAL_NOTE: Final = "± is half a 95 % confidence interval, by batch means."


class RunRecord(Protocol):
    """The parts of a run that tables show."""

    @property
    def name(self) -> str:
        """The name of the run."""

    @property
    def summary(self) -> Mapping[str, Any]:
        """Statistics."""

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The plan and the progress."""

    @property
    def status(self) -> str:
        """`finished`, `incomplete`, `censored` or `interrupted`."""


class ComparedRuns(Protocol):
    """The parts of a comparison that tables show."""

    @property
    def labels(self) -> Sequence[str]:
        """The labels of the transports."""

    @property
    def runs(self) -> Mapping[str, Sequence[RunRecord]]:
        """The runs of each label, one a seed."""

    def flows(self, label: str) -> Mapping[str, int]:
        """Returns the numbers of flows by outcome."""

    def slowdowns(self, label: str) -> Sequence[Slowdowns]:
        """Returns slowdown by size, all sizes last."""

    def quantity(self, label: str, name: str) -> Interval:
        """Returns a number of the summaries."""

    def nfct(self, label: str) -> Interval:
        """Returns the mean completion time over the mean ideal."""

    def has_one_window(self) -> bool:
        """Returns true if all transports have the same measured windows."""

    def notes(self) -> Sequence[str]:
        """Returns sentences about the statistics."""


def run_tables(run: RunRecord) -> Iterator[TextTable]:
    """Yields one run's overview, slowdown by size and tenant, ports by tier, rounds, calls."""
    yield overview(run)
    yield slowdown_by_size(run.summary)
    yield from tenants(run)
    yield tiers(run.summary)
    yield from round_tables(run.summary)
    yield from call_tables(run.summary)


def overview(run: RunRecord) -> TextTable:
    """Returns a table of the quantities of a whole run."""
    summary = run.summary
    flows = summary["flows"]
    everything = overall_slowdown(summary)
    rows = [
        ("status", str(summary["status"])),
        ("flows submitted", count(flows["submitted"])),
        ("flows delivered", count(flows["delivered"])),
        ("flows failed", count(flows["failed"])),
        ("flows rejected", count(flows.get("rejected", 0))),
        ("flows unfinished", count(flows.get("unfinished", 0))),
        *_not_started(flows),
        *_statistics_scope(summary),
        ("utilisation of the hosts' links", number(summary["utilisation"], 4)),
        ("goodput, Gbit/s", number(summary["goodput_gbps"], 1)),
        ("delivered share at last arrival", number(_share(summary), 4)),
        ("mean FCT over mean ideal", number(summary["nfct"])),
        ("mean slowdown", _with_interval(everything, "mean")),
        ("p99 slowdown", _with_interval(everything, "p99")),
    ]
    return TextTable("Overview", ("", run.name), rows)


def _not_started(flows: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Yields flows whose dependencies had not ended by the end of the run, if there are any."""
    if flows.get("not_started"):
        yield "flows not started", count(flows["not_started"])


def _statistics_scope(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields the scope of the statistics: the window and the warm-up."""
    if "window" in summary:
        window = summary["window"]
        text = NONE
        if window is not None:
            start, end = (window[key] / 1e6 for key in ("from_ps", "to_ps"))
            text = f"{start:.1f} to {end:.1f}"
        yield "measured window, µs", text
    if "warmup" in summary:
        warmup = summary["warmup"]
        left_out = int(warmup["flows"])
        yield "flows excluded as warm-up", f"{count(left_out)} ({warmup['rule']})"


def _share(summary: Mapping[str, Any]) -> float | None:
    share: float | None = summary.get("delivered_share")
    return share


def slowdown_by_size(summary: Mapping[str, Any], ideal: str = "delivered") -> TextTable:
    """Returns a table of slowdown by size, in multiples of one BDP."""
    groups = [*slowdown_groups(summary, ideal), overall_slowdown(summary, ideal)]
    names = ("mean", "p50", "p99", "p999", "max")
    rows = [
        (_size(group), count(group.count), *(_with_interval(group, name) for name in names))
        for group in groups
    ]
    headings = ("", "flows", "mean", "p50", "p99", "p99.9", "max")
    has_intervals = any(group.half_widths for group in groups)
    return TextTable(
        "Slowdown by flow size",
        headings,
        rows,
        notes=(INTERVAL_NOTE,) if has_intervals else (),
        sections=frozenset([len(rows) - 2]),
    )


def tenants(run: RunRecord) -> Iterator[TextTable]:
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
    rows = [
        (
            tenant,
            str(tables[min(int(tenant), len(tables) - 1)]["name"]),
            count(stats["count"]),
            *(number(stats[name]) for name in ("mean", "p50", "p99", "max")),
            number(goodput.get(tenant), 2),
        )
        for tenant, stats in sorted(by_tenant.items(), key=lambda item: int(item[0]))
    ]
    headings = ("", "transport", "flows", "mean", "p50", "p99", "max", "goodput,\nGbit/s")
    yield TextTable("Slowdown by tenant", headings, rows)


def comparison_tables(comparison: ComparedRuns) -> Iterator[TextTable]:
    """Yields tables of compared transports, a row for each."""
    labels = comparison.labels
    flows = {label: comparison.flows(label) for label in labels}
    shown = ["submitted", "delivered", "failed", "rejected", "unfinished"]
    if any(of["not_started"] for of in flows.values()):
        shown.append("not_started")
    yield TextTable(
        "Flows",
        ("", "status", *(name.replace("_", "\n") for name in shown)),
        [
            (label, _status(comparison.runs[label]), *(count(flows[label][name]) for name in shown))
            for label in labels
        ],
    )

    has_pauses = any(
        "pfc" in tier
        for label in labels
        for run in comparison.runs[label]
        for tier in run.summary["tiers"]
    )

    def quantity(label: str, name: str, places: int) -> str:
        return comparison.quantity(label, name).text(places)

    yield TextTable(
        "Network",
        (
            "",
            "utilisation\nof hosts'\nlinks",
            "goodput,\nGbit/s",
            "delivered\nshare at last\narrival",
            "mean FCT\nover mean\nideal",
            "packets\ndropped",
            *(("pauses",) if has_pauses else ()),
        ),
        [
            (
                label,
                quantity(label, "utilisation", 4),
                quantity(label, "goodput_gbps", 1),
                quantity(label, "delivered_share", 4),
                comparison.nfct(label).text(),
                count(sum(map(_drops, comparison.runs[label]))),
                *((_pauses_of(comparison.runs[label]),) if has_pauses else ()),
            )
            for label in labels
        ],
        notes=() if comparison.has_one_window() else (WINDOWS_NOTE,),
    )
    yield TextTable(
        "Slowdown",
        ("", "mean", "p50", "p99", "p99.9", "max"),
        [(label, *_values(comparison.slowdowns(label)[-1])) for label in labels],
        notes=tuple(comparison.notes()),
    )
    yield _by_size(comparison, "Mean slowdown by flow size", lambda group: group.mean)
    yield _by_size(comparison, "p99 slowdown by flow size", lambda group: group.p99)


def _by_size(
    comparison: ComparedRuns, title: str, value: Callable[[Slowdowns], Interval]
) -> TextTable:
    """Returns a table of one statistic by transport and size."""
    groups = {label: comparison.slowdowns(label) for label in comparison.labels}
    first = next(iter(groups.values()))
    headings = [_size(group).replace(" (to ", "\nto\n").rstrip(")") for group in first]
    rows = [("flows", *(count(group.count) for group in first))]
    if len({tuple(group.count for group in of) for of in groups.values()}) > 1:
        rows = []
    n_above = len(rows)
    rows += [(label, *(value(group).text() for group in of)) for label, of in groups.items()]
    return TextTable(title, ("", *headings), rows, sections=frozenset(range(n_above)))


def _values(group: Slowdowns) -> Iterator[str]:
    return (value.text() for value in (group.mean, group.p50, group.p99, group.p999, group.max))


def _status(runs: Sequence[RunRecord]) -> str:
    """Returns the outcome of runs: one word if it is the same for all."""
    counts = Counter(run.status for run in runs)
    if len(counts) == 1:
        return next(iter(counts))
    return ",\n".join(f"{n} {status}" for status, n in sorted(counts.items()))


def _drops(run: RunRecord) -> int:
    return sum(sum(tier["drops"].values()) for tier in run.summary["tiers"])


def _pauses_of(runs: Sequence[RunRecord]) -> str:
    """Returns the pauses by priority flow control in all runs; a dash if none has it."""
    tiers = [tier["pfc"] for run in runs for tier in run.summary["tiers"] if "pfc" in tier]
    return count(sum(tier["pauses"] for tier in tiers)) if tiers else NONE


def fabrics(resolved: Mapping[str, Mapping[str, Any]]) -> Iterator[TextTable]:
    """Yields a table of the settings in which fabrics differ, if any."""
    keys = list(dict.fromkeys(key for fabric in resolved.values() for key in fabric))
    differing = [key for key in keys if len({str(f.get(key)) for f in resolved.values()}) > 1]
    if not differing:
        return
    rows = []
    for name, fabric in resolved.items():
        values = (fabric.get(key) for key in differing)
        rows.append((name, *(NONE if value is None else str(value) for value in values)))
    yield TextTable("Fabric", ("", *differing), rows)


def tiers(summary: Mapping[str, Any]) -> TextTable:
    """Returns a table of traffic, queues and drops of the ports of each tier."""
    rows = []
    has_pauses = any("pfc" in tier for tier in summary["tiers"])
    for tier in summary["tiers"]:
        drops = {reason: n for reason, n in tier["drops"].items() if n}
        place = tier.get("queue_max_at")
        rows.append(
            (
                str(tier["name"]),
                count(tier["ports"]),
                byte_size(tier["bytes"]),
                number(tier.get("utilisation"), 4),
                byte_size(tier["queue_max_bytes"]),
                NONE if place is None else f"{place['from']}-{place['to']}",
                *(_pauses(tier, summary["counters"]["end_ps"]) if has_pauses else ()),
                ", ".join(f"{count(n)} {reason}" for reason, n in drops.items()) or "0",
            )
        )
    pauses = ("pauses", "paused") if has_pauses else ()
    headings = ("", "ports", "sent", "utilisation", "longest queue", "at", *pauses, "drops")
    notes = (QUEUES_NOTE, PAUSES_NOTE) if has_pauses else (QUEUES_NOTE,)
    return TextTable("Ports by tier", headings, rows, notes=notes)


def _pauses(tier: Mapping[str, Any], end_ps: int) -> tuple[str, str]:
    """Yields the pauses by priority flow control, and the share of paused time."""
    pfc = tier.get("pfc")
    if pfc is None:
        return NONE, NONE
    share = pfc["paused_ps"] / max(tier["ports"] * end_ps, 1)
    return count(pfc["pauses"]), number(share, 4)


def speed(reports: Mapping[str, Mapping[str, Any]]) -> TextTable:
    """Speeds of benchmark runs, a row for each."""
    rows = [
        (
            name,
            mega(report["hops_per_cpu_second"]),
            mega(report["events_per_cpu_second"]),
            mega(report["packets_per_cpu_second"]),
            mega(report["hops"]),
            mega(report["events"]),
            mega(report["fresh_packets"]),
            number(report["cpu_seconds"], 2),
            byte_size(report["peak_rss_bytes"]),
        )
        for name, report in reports.items()
    ]
    headings = (
        "",
        "packet-hops\nper CPU s",
        "events\nper CPU s",
        "packets\nper CPU s",
        "packet-\nhops",
        "events",
        "packets",
        "CPU s",
        "peak\nmemory",
    )
    return TextTable("Speed of one core", headings, rows)


def new_table(title: str, *headings: str) -> Table:
    """Returns a table whose first column is text and whose others are numbers."""
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


def _size(group: Group | Slowdowns) -> str:
    if group.upper_bytes is None:
        return group.label
    return f"{group.label} (to {byte_size(group.upper_bytes)})"


def _with_interval(group: Group, name: str) -> str:
    """Returns a statistic with its interval, if it has one."""
    half_width = group.half_widths.get(name)
    text = number(getattr(group, name))
    return text if half_width is None else f"{text}{PLUS_MINUS}{number(half_width)}"
