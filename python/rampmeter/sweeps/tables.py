"""Results of sweeps as tables: means by point, and slowdown by size."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

from rampmeter.analysis.confidence import Interval, interval
from rampmeter.results.slowdown import STATISTICS
from rampmeter.results.table import Cell, Column, ResultTable
from rampmeter.results.tables import SIZES
from rampmeter.sweeps.columns import COLUMNS, MEASURES
from rampmeter.text.numbers import counted

SHOWN: Final = {
    "slowdown_mean": 3,
    "slowdown_p99": 3,
    "utilisation": 4,
    "goodput_gbps": 1,
    "completion_us": 1,
    "bus_gbps": 1,
    "call_mean_us": 1,
    "call_p99_us": 1,
}
"""Measures that readers see, with their decimal places."""
READER_UNITS: Final = {"1": "", "us": "µs"}
"""Units in headings that differ from those of columns."""


class SweepPoint(Protocol):
    """The parts of a point that tables show."""

    @property
    def transport(self) -> str:
        """The label of its transport."""

    @property
    def values(self) -> Mapping[str, Any]:
        """The varied keys."""

    @property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        """A row for each run."""

    @property
    def n_not_finished(self) -> int:
        """Runs in which not every flow was delivered."""

    @property
    def is_short(self) -> bool:
        """True if a run has too few flows for a steady state."""

    def interval(self, name: str) -> Interval:
        """Returns the mean of a column over the seeds."""


class SweptPoints(Protocol):
    """The parts of a sweep that tables show."""

    @property
    def keys(self) -> Sequence[str]:
        """The varied keys of the plan."""

    @property
    def points(self) -> Sequence[SweepPoint]:
        """The points that have runs."""


def sweep_tables(results: SweptPoints) -> Iterator[ResultTable]:
    """Yields the means of each point, all of them for programs, and its slowdown by size."""
    measured = {name for name in MEASURES if any(of.interval(name).n for of in results.points)}
    all_names = [name for name in MEASURES if name in measured]
    yield replace(means(results, all_names), medium="data")
    yield replace(means(results, [name for name in SHOWN if name in measured]), medium="text")
    yield slowdown_by_size(results)


def means(results: SweptPoints, names: Sequence[str]) -> ResultTable:
    """Returns a row for each point: means of measures over its seeds."""
    points = results.points
    units = {column.name: READER_UNITS.get(column.unit, column.unit) for column in COLUMNS}
    columns = (
        *_keys(results),
        Column("seeds", "seeds"),
        Column("not_finished", "not\nfinished"),
        Column("is_short", "too\nshort"),
        *(
            Column(name, _heading(name, units[name]), units[name], SHOWN.get(name, 3))
            for name in names
        ),
    )
    rows: list[tuple[Cell, ...]] = [
        (
            *_values(point),
            len(point.rows),
            point.n_not_finished,
            "yes" if point.is_short else "no",
            *(point.interval(name) for name in names),
        )
        for point in points
    ]
    return ResultTable("means", f"Means of {counted(len(rows), 'point')} over seeds", columns, rows)


def slowdown_by_size(results: SweptPoints) -> ResultTable:
    """Returns a row for each point and size bin: statistics over the seeds of the point."""
    rows: list[tuple[Cell, ...]] = []
    for point in results.points:
        seeds = [json.loads(row["summary"])["slowdown"]["delivered"] for row in point.rows]
        for bins in zip(*(_bins(seed) for seed in seeds), strict=True):
            stats = [one["stats"] for one in bins if one["stats"]]
            rows.append(
                (
                    *_values(point),
                    "yes" if point.is_short else "no",
                    bins[0]["label"],
                    bins[0]["upper_bytes"],
                    sum(one["count"] for one in stats),
                    *(interval(one[name] for one in stats) for name in STATISTICS),
                )
            )
    keys = (*_keys(results), Column("is_short", "too\nshort"))
    columns = (*keys, Column("size", "size"), *SIZES[1:])
    return ResultTable("slowdown_by_size", "Slowdown by flow size", columns, rows)


def _bins(slowdown: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Returns the bins in multiples of one BDP, and that of all flows."""
    return [*slowdown["bdp"], {"label": "all", "upper_bytes": None, "stats": slowdown["overall"]}]


def _keys(results: SweptPoints) -> Iterator[Column]:
    """Yields the columns that name a point: its transport and the varied keys."""
    yield Column("transport")
    for key in results.keys:
        yield Column(key, key.rpartition(".")[2], form="general")


def _values(point: SweepPoint) -> Iterator[Cell]:
    """Yields the transport and the values of the varied keys."""
    yield point.transport
    for value in point.values.values():
        yield value if value is None or isinstance(value, int | float | str) else str(value)


def _heading(name: str, unit: str) -> str:
    """Returns the name of a measure without the unit at its end."""
    words = name.removesuffix("_us").removesuffix("_gbps") if unit else name
    return words.replace("_", "\n")
