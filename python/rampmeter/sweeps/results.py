"""The results of a sweep: rows of runs, means with intervals, and plots of them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Final

from rampmeter.analysis.confidence import LEVEL, Interval, interval
from rampmeter.on_demand import pa
from rampmeter.sweeps.columns import COLUMNS, FLOAT, INT, MEASURES, field, warnings_of_run
from rampmeter.sweeps.dataset import FLOWS, RUNS, Dataset
from rampmeter.sweeps.plots import SweepPlots
from rampmeter.text.cautions import Caution
from rampmeter.text.locations import Location
from rampmeter.text.text_table import TextTable

if TYPE_CHECKING:
    pass

HALF: Final = "_half"
"""Suffix of a column's name that has half the width of its interval."""
HTML_SHOWN: Final = ("slowdown_mean", "slowdown_p99", "utilisation", "completion_us")
"""Measures that notebooks show, if a sweep has them."""
COUNTS: Final = ("flows_submitted", "flows_delivered", "flows_not_started", "drops")
"""Columns that are added up over the seeds of a point."""


class SweepResults:
    """The folder of a sweep, complete or not; it is read on first access.

    >>> import rampmeter as rm
    >>> r = rm.SweepResults("results/plan-sweep")  # doctest: +SKIP
    >>> r.table.to_pandas()  # doctest: +SKIP
    """

    def __init__(self, url: str | PathLike[str]) -> None:
        self.url = fspath(url)
        """The folder, or the fsspec URL."""
        self.dataset = Dataset(self.url)

    def __repr__(self) -> str:
        return f"SweepResults({self.url!r})"

    def _repr_html_(self) -> str:
        names = [
            name for name in HTML_SHOWN if any(point.interval(name).n for point in self.points)
        ]
        headings = (*self.keys, "transport", "seeds", *(name.replace("_", " ") for name in names))
        rows = [
            (
                *(str(point.values[key]) for key in self.keys),
                point.transport,
                str(len(point.rows)),
                *(point.interval(name).text() for name in names),
            )
            for point in self.points
        ]
        return TextTable(f"Sweep of {len(rows)} points", headings, rows).html()

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The varied keys of the plan. Raises `ResultError` if there is no sweep."""
        identity = self.dataset.identity()
        if identity is None:
            raise Location(self.url).result_error(expected="the results of a sweep")
        return tuple(identity["keys"])

    @cached_property
    def table(self) -> "pa.Table":
        """A row for each run, by point and seed. Raises `ResultError` if there is none yet."""
        return self.dataset.table(RUNS)

    @cached_property
    def flows(self) -> "pa.Table":
        """A row for each flow of every run. Raises `ResultError` if flows were not stored."""
        return self.dataset.table(FLOWS)

    @cached_property
    def points(self) -> tuple["PointRows", ...]:
        """The runs of each point that has some, by its number."""
        rows = self.table.to_pylist()
        numbers = dict.fromkeys(row["point"] for row in rows)
        by_number: dict[int, list[Mapping[str, Any]]] = {number: [] for number in numbers}
        for row in rows:
            by_number[row["point"]].append(row)
        return tuple(
            PointRows(number, {key: some[0][key] for key in self.keys}, some)
            for number, some in by_number.items()
        )

    def summary(self, level: float = LEVEL) -> "pa.Table":
        """Returns a row for each point: mean and half interval (`_half`) of each measure."""
        fields = [self.table.schema.field(name) for name in ("point", *self.keys, "transport")]
        fields += [
            field("seeds", INT, "runs of the point"),
            field("not_finished", INT, "runs in which not every flow was delivered"),
            field("warnings", INT, "runs with warnings"),
            *(field(name, INT, f"{name} of all seeds") for name in COUNTS),
        ]
        columns = {column.name: column for column in COLUMNS}
        for name in MEASURES:
            column = columns[name]
            fields.append(field(name, FLOAT, f"mean of {column.meaning}", column.unit))
            half = f"half the {level:.0%} interval of the mean of {name}"
            fields.append(field(f"{name}{HALF}", FLOAT, half, column.unit))
        rows = [point.summary(level) for point in self.points]
        return pa.Table.from_pylist(rows, schema=pa.schema(fields))

    @property
    def plot(self) -> "SweepPlots":
        """Plots of the sweep."""
        return SweepPlots(self.url, self.keys, self.points)


@dataclass(frozen=True)
class PointRows:
    """The runs of one point."""

    number: int
    values: Mapping[str, Any]
    """The varied keys."""
    rows: Sequence[Mapping[str, Any]]

    @property
    def transport(self) -> str:
        """The label of its transport."""
        return str(self.rows[0]["transport"])

    @property
    def n_not_finished(self) -> int:
        """Runs in which not every flow was delivered."""
        return sum(
            row["status"] != "finished" or row["flows_delivered"] != row["flows_submitted"]
            for row in self.rows
        )

    @property
    def warnings(self) -> list[Caution]:
        """The warnings of its runs, each text once, in the order of the texts."""
        cautions = {
            caution: caution
            for row in self.rows
            for caution in warnings_of_run(json.loads(row["summary"]))
        }
        return sorted(cautions.values())

    def interval(self, name: str, level: float = LEVEL) -> Interval:
        """Returns the mean of a column over the seeds, with its interval."""
        return interval((row[name] for row in self.rows), level)

    def summary(self, level: float = LEVEL) -> dict[str, Any]:
        """Returns the row of the table of means."""
        row: dict[str, Any] = {"point": self.number, **self.values, "transport": self.transport}
        row["seeds"] = len(self.rows)
        row["not_finished"] = self.n_not_finished
        row["warnings"] = sum(bool(one["warnings"]) for one in self.rows)
        row |= {name: sum(one[name] or 0 for one in self.rows) for name in COUNTS}
        for name in MEASURES:
            found = self.interval(name, level)
            row[name] = found.mean if found.n else None
            row[f"{name}{HALF}"] = found.half_width
        return row
