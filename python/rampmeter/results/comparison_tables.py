"""Compared transports as tables."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

from rampmeter.analysis.confidence import Interval
from rampmeter.results import blame_difference, blame_tables
from rampmeter.results.operations import operation_tables
from rampmeter.results.records import RunRecord
from rampmeter.results.slowdown import STATISTICS, Slowdowns
from rampmeter.results.table import Cell, Column, ResultTable
from rampmeter.results.tables import SIZES, STATISTICS_COLUMNS, fabrics
from rampmeter.text.numbers import byte_size

WINDOWS_NOTE: Final = (
    "Utilisation and goodput are over each transport's own measured window. The windows differ: "
    "each begins after the transport's own warm-up, and in bursts it ends with its last delivery."
)
TRANSPORT: Final = Column("transport")
NETWORK: Final = (
    TRANSPORT,
    Column("utilisation", "utilisation\nof hosts'\nlinks", places=4),
    Column("goodput_gbps", "goodput", "Gbit/s", 1),
    Column("delivered_share", "delivered\nshare at last\narrival", places=4),
    Column("nfct", "mean FCT\nover mean\nideal"),
)


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

    @property
    def blames(self) -> "Mapping[str, blame_tables.FlowTimes]":
        """The causes of the flows that count, of each transport that has them."""

    def blame_differences(
        self,
    ) -> "Mapping[tuple[str, str], Sequence[blame_difference.SizeDifference]]":
        """Returns differences of causes by pairs of transports."""

    def has_one_window(self) -> bool:
        """Returns true if all transports have the same measured windows."""

    def notes(self) -> Sequence[str]:
        """Returns sentences about the statistics."""


def comparison_tables(comparison: ComparedRuns) -> Iterator[ResultTable]:
    """Yields all tables of compared transports, with a row for each."""
    yield from fabrics({label: _fabric(runs[0]) for label, runs in comparison.runs.items()})
    yield _flows(comparison)
    yield _network(comparison)
    yield from operation_tables(comparison.runs)
    yield ResultTable(
        "slowdown",
        "Slowdown",
        (TRANSPORT, *STATISTICS_COLUMNS),
        [(label, *_values(comparison.slowdowns(label)[-1])) for label in comparison.labels],
        notes=tuple(comparison.notes()),
    )
    yield slowdown_by_size(comparison)
    yield _by_size(comparison, "mean_by_size", "Mean slowdown by flow size", lambda of: of.mean)
    yield _by_size(comparison, "p99_by_size", "p99 slowdown by flow size", lambda of: of.p99)
    yield from _causes(comparison)


def _causes(comparison: ComparedRuns) -> Iterator[ResultTable]:
    """Yields the causes of slowdown of each transport, and their differences."""
    blames = comparison.blames
    if not blames:
        return
    tables = {label: blame_tables.by_size(blame) for label, blame in blames.items()}
    for label, blame in blames.items():
        for_readers = blame_tables.by_size_for_readers(blame)
        yield replace(for_readers, title=f"{label}: {for_readers.title.lower()}")
    first = next(iter(tables.values()))
    rows = [(label, *row) for label, table in tables.items() for row in table.rows]
    yield replace(first, columns=(TRANSPORT, *first.columns), rows=rows)
    if pairs := comparison.blame_differences():
        n_seeds = len(next(iter(comparison.runs.values())))
        yield from blame_difference.tables_for_readers(pairs, n_seeds)
        yield blame_difference.table(pairs)


def slowdown_by_size(comparison: ComparedRuns) -> ResultTable:
    """Returns a table with a row for each transport and size, for programs."""
    rows: list[tuple[Cell, ...]] = [
        (label, group.label, group.upper_bytes, group.count, *_values(group))
        for label in comparison.labels
        for group in comparison.slowdowns(label)
    ]
    columns = (TRANSPORT, *SIZES)
    return ResultTable("slowdown_by_size", "Slowdown by flow size", columns, rows, medium="data")


def _fabric(run: RunRecord) -> Mapping[str, Any]:
    fabric: Mapping[str, Any] = run.manifest.get("plan", {}).get("fabric", {})
    return fabric


def _flows(comparison: ComparedRuns) -> ResultTable:
    """Returns a table of the flows by outcome."""
    flows = {label: comparison.flows(label) for label in comparison.labels}
    shown = ["submitted", "delivered", "failed", "rejected", "unfinished"]
    if any(of["not_started"] for of in flows.values()):
        shown.append("not_started")
    columns = (
        TRANSPORT,
        Column("status", "status"),
        *(Column(name, name.replace("_", "\n")) for name in shown),
    )
    rows: list[tuple[Cell, ...]] = [
        (label, _status(comparison.runs[label]), *(of[name] for name in shown))
        for label, of in flows.items()
    ]
    return ResultTable("flows_by_outcome", "Flows", columns, rows)


def _network(comparison: ComparedRuns) -> ResultTable:
    """Returns a table of the use of the network."""
    names = ("utilisation", "goodput_gbps", "delivered_share")
    rows: list[tuple[Cell, ...]] = [
        (label, *(comparison.quantity(label, name) for name in names), comparison.nfct(label))
        for label in comparison.labels
    ]
    notes = () if comparison.has_one_window() else (WINDOWS_NOTE,)
    return ResultTable("network", "Network", NETWORK, rows, notes)


def _by_size(
    comparison: ComparedRuns, name: str, title: str, value: Callable[[Slowdowns], Interval]
) -> ResultTable:
    """Returns a table of one statistic by transport and size, of sizes that have flows."""
    found = [comparison.slowdowns(label) for label in comparison.labels]
    used = [idx for idx, of in enumerate(zip(*found, strict=True)) if any(g.count for g in of)]
    # The last group has the flows of all sizes.
    shown = sorted({*used, len(found[0]) - 1})
    groups = {
        label: [of[idx] for idx in shown]
        for label, of in zip(comparison.labels, found, strict=True)
    }
    first = next(iter(groups.values()))
    ranges = [group.label for group in found[0]]
    titles = [_size(ranges[idx], found[0][idx]) for idx in shown]
    named = zip(first, titles, strict=True)
    columns = (TRANSPORT, *(Column(group.label, title) for group, title in named))
    rows: list[tuple[Cell, ...]] = [("flows", *(group.count for group in first))]
    if len({tuple(group.count for group in of) for of in groups.values()}) > 1:
        rows = []
    n_above = len(rows)
    rows += [(label, *(value(group) for group in of)) for label, of in groups.items()]
    sections = frozenset(range(n_above))
    return ResultTable(name, title, columns, rows, sections=sections, medium="text")


def _size(label: str, group: Slowdowns) -> str:
    if group.upper_bytes is None:
        return label
    return f"{label}\nto\n{byte_size(group.upper_bytes)}"


def _values(group: Slowdowns) -> Iterator[Interval]:
    return (getattr(group, name) for name in STATISTICS)


def _status(runs: Sequence[RunRecord]) -> str:
    """Returns the outcome of runs: one word if it is the same for all."""
    counts = Counter(run.status for run in runs)
    if len(counts) == 1:
        return next(iter(counts))
    return ",\n".join(f"{n} {status}" for status, n in sorted(counts.items()))
