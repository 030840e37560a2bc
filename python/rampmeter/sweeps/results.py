"""The results of a sweep: rows of runs, means with intervals, and plots of them."""

import json
import shutil
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as field_of
from functools import cached_property
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Final

from rampmeter.analysis.confidence import LEVEL, Interval, interval, two_seeds
from rampmeter.on_demand import pa
from rampmeter.results.notebook import shortened, warnings_html
from rampmeter.results.table import CI, ResultTable, by_name
from rampmeter.sweeps.columns import BOOL, COLUMNS, FLOAT, INT, MEASURES, field, warnings_of_run
from rampmeter.sweeps.dataset import FLOWS, RUNS, Dataset
from rampmeter.sweeps.plots import SweepPlots
from rampmeter.sweeps.tables import sweep_tables
from rampmeter.sweeps.warnings import merge
from rampmeter.text.arguments import argument_error, choice_argument
from rampmeter.text.cautions import Caution
from rampmeter.text.locations import Location
from rampmeter.text.numbers import counted
from rampmeter.text.text_table import TextTable

if TYPE_CHECKING:
    pass

HTML_SHOWN: Final = ("slowdown_mean", "slowdown_p99", "utilisation", "completion_us")
"""Measures that notebooks show, if a sweep has them."""
POINTS_MAX: Final = 60
"""Number of points that notebooks show; of more the first and the last ones."""
SHORT_NOTE: Final = "* Too short for a steady state: simulate more flows, or use auto_flows."
"""Note below a table with marks of such points."""
SUMMARY: Final = "summary"
"""Column with the run's `summary.json`."""
COUNTS: Final = ("flows_submitted", "flows_delivered", "flows_not_started", "drops")
"""Columns that are added up over the seeds of a point."""


class SweepResults:
    """The results of a sweep, complete or not, read from its folder on first access.

    >>> import rampmeter as rm
    >>> r = rm.SweepResults("results/plan-sweep")  # doctest: +SKIP
    >>> r.table.to_pandas()  # doctest: +SKIP
    """

    def __init__(self, url: str | PathLike[str], *, is_temporary: bool = False) -> None:
        """Opens the results at a folder or URL; a temporary folder is removed with this object.

        Raises `ResultError` if there is no sweep.
        """
        if not isinstance(url, str | PathLike):
            raise argument_error("url", "a folder or a URL", url)
        if is_temporary:
            weakref.finalize(self, shutil.rmtree, url, ignore_errors=True)
        self.url = fspath(url)
        """The folder, or the fsspec URL."""
        self.dataset = Dataset(self.url)
        if self.dataset.identity() is None:
            raise Location(self.url).result_error(expected="the results of a sweep")

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
                f"* {len(point.rows)}" if point.is_short else f"{len(point.rows)}",
                *(point.interval(name).text() for name in names),
            )
            for point in self.points
        ]
        title, shown = f"Sweep of {counted(len(rows), 'point')}", shortened(rows, POINTS_MAX)
        notes = (SHORT_NOTE,) * any(point.is_short for point in self.points)
        table = TextTable(title, headings, shown, notes).html()
        return f"{table}{warnings_html(self.warnings)}"

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The varied keys of the plan."""
        return tuple((self.dataset.identity() or {})["keys"])

    @property
    def has_auto_flows(self) -> bool:
        """True if the number of flows of each point was chosen (`flows = "auto"`)."""
        return "flows" in (self.dataset.identity() or {})

    @cached_property
    def table(self) -> "pa.Table":
        """A row for each run, by point and seed. Raises `ResultError` if there is none yet.

        The files of the dataset also have `summary`, the run's `summary.json`.
        """
        return self._rows.drop_columns([SUMMARY])

    @cached_property
    def _rows(self) -> "pa.Table":
        return self.dataset.table(RUNS)

    @cached_property
    def flows(self) -> "pa.Table":
        """A row for each flow of every run. Raises `ResultError` if flows were not stored."""
        return self.dataset.table(FLOWS)

    @cached_property
    def points(self) -> tuple["PointRows", ...]:
        """The runs of each point that has some, by its number."""
        rows = self._rows.to_pylist()
        numbers = dict.fromkeys(row["point"] for row in rows)
        by_number: dict[int, list[Mapping[str, Any]]] = {number: [] for number in numbers}
        for row in rows:
            by_number[row["point"]].append(row)
        return tuple(
            PointRows(number, {key: some[0][key] for key in self.keys}, some)
            for number, some in by_number.items()
        )

    @cached_property
    def warnings(self) -> list[Caution]:
        """The distinct warnings of all runs, each with the number of its runs and its points.

        Warnings that differ in numbers alone are one, with those of the first run. `values` also
        have `runs`, their number, and `points`, the numbers of the points.
        """
        return merge(
            (point.number, point.name, cautions)
            for point in self.points
            for cautions in point.warnings_of_runs()
        )

    @cached_property
    def summary(self) -> "pa.Table":
        """A row for each point, as an Arrow table: seeds, counts and means over the seeds.

        `slowdown_mean_ci` and so on are half the widths of the 95 % intervals of means over seeds,
        null with fewer than two. Metadata of columns have their units and meanings. Raises
        `ResultError` if there is no run yet.
        """
        fields = [self.table.schema.field(name) for name in ("point", *self.keys, "transport")]
        fields += [
            field("seeds", INT, "runs of the point"),
            field("not_finished", INT, "runs in which not every flow was delivered"),
            field("warnings", INT, "runs with warnings"),
            field("is_short", BOOL, "true if a run has too few flows for a steady state"),
            *(field(name, INT, f"{name} of all seeds") for name in COUNTS),
        ]
        columns = {column.name: column for column in COLUMNS}
        for name in MEASURES:
            column = columns[name]
            fields.append(field(name, FLOAT, f"mean of {column.meaning}", column.unit))
            half = f"half the {LEVEL:.0%} interval of the mean of {name}"
            fields.append(field(f"{name}{CI}", FLOAT, half, column.unit))
        rows = [point.summary() for point in self.points]
        return pa.Table.from_pylist(rows, schema=pa.schema(fields))

    @property
    def tables(self) -> dict[str, ResultTable]:
        """The tables of the sweep by name, such as `tables["means"].to_latex()`."""
        return by_name(sweep_tables(self))

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
    rows: Sequence[Mapping[str, Any]] = field_of(repr=False)
    """The rows of its runs, with `summary`."""

    @property
    def name(self) -> str:
        """The transport and the values of the varied keys, by the last words of the keys."""
        values = (f"{key.rpartition('.')[2]} {cell(value)}" for key, value in self.values.items())
        return ", ".join([self.transport, *values])

    @property
    def is_short(self) -> bool:
        """True if some run has too few flows for a steady state, by its warnings."""
        return any(row.get("is_short") for row in self.rows)

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
        return sorted({one: one for own in self.warnings_of_runs() for one in own}.values())

    def warnings_of_runs(self) -> Iterator[list[Caution]]:
        """Yields the warnings of each run, with that of the number of seeds of the point."""
        of_point = two_seeds(len(self.rows))
        for row in self.rows:
            yield [*warnings_of_run(json.loads(row[SUMMARY])), *of_point]

    def interval(self, name: str, level: float = LEVEL) -> Interval:
        """Returns the mean of a column over the seeds, with its interval.

        Raises `PlanError` for other names than those of measures.
        """
        choice_argument("name", name, MEASURES)
        return interval((row[name] for row in self.rows), level)

    def summary(self) -> dict[str, Any]:
        """Returns the row of the table of means."""
        row: dict[str, Any] = {"point": self.number, **self.values, "transport": self.transport}
        row["seeds"] = len(self.rows)
        row["not_finished"] = self.n_not_finished
        row["warnings"] = sum(bool(one["warnings"]) for one in self.rows)
        row["is_short"] = self.is_short
        row |= {name: sum(one[name] or 0 for one in self.rows) for name in COUNTS}
        for name in MEASURES:
            found = self.interval(name)
            row[name] = found.mean if found.n else None
            row[f"{name}{CI}"] = found.ci
        return row


def cell(value: Any) -> str:
    """Formats the value of a varied key."""
    return f"{value:g}" if isinstance(value, float) else str(value)
