"""Transports compared by the same flows.

A transport that aborts or rejects flows need not deliver the hardest ones. So statistics are over
the flows that every transport delivered, or over all flows, with undelivered ones as infinitely
slow.
"""

import json
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rampmeter import plots
from rampmeter.analysis.confidence import Interval, interval, two_seeds
from rampmeter.animation import Animation
from rampmeter.on_demand import np, pa
from rampmeter.results import animations, blame_difference, blame_plots, pictures
from rampmeter.results.blame import Blame
from rampmeter.results.blame_difference import SizeDifference
from rampmeter.results.collective_plots import collectives
from rampmeter.results.comparison_tables import comparison_tables
from rampmeter.results.goodput import goodput
from rampmeter.results.missing import COMPARISON, missing_run
from rampmeter.results.names import interval_name, transport_name
from rampmeter.results.notebook import warnings_html
from rampmeter.results.overlay import runs_of
from rampmeter.results.plot_list import PlotList, needs
from rampmeter.results.run import Run, blame_of, has_table
from rampmeter.results.same_flows import FAILURES, Failures, Floats, SameFlows
from rampmeter.results.slowdown import (
    STATISTICS,
    Group,
    Slowdowns,
    series_of_slowdowns,
)
from rampmeter.results.table import ResultTable, by_name
from rampmeter.results.undelivered import NOT_DELIVERED, Undelivered, has_faults, undelivered
from rampmeter.text.arguments import (
    argument_error,
    choice_argument,
    mapping_argument,
    path_argument,
)
from rampmeter.text.cautions import ONE_SAMPLE, Caution, is_one_sample
from rampmeter.text.files import named_errors, write_text
from rampmeter.text.json_object import ANY_KEY, read_record
from rampmeter.text.locations import Location
from rampmeter.text.numbers import count, counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Comparison:
    """Runs of the same flows through several transports, each with one run a seed.

    >>> Comparison({"dcpim": run, "phost": other}).slowdowns("dcpim")  # doctest: +SKIP
    """

    def __init__(
        self, runs: Mapping[str, Run | Sequence[Run]], *, failures: Failures = "excluded"
    ) -> None:
        """Compares runs by label. The seeds of all labels must be the same, in the same order.

        Raises `PlanError` if there is nothing to compare, and `ResultError` if runs are not of the
        same flows.
        """
        choice_argument("failures", failures, FAILURES)
        if isinstance(runs, str | PathLike):
            hint = "`rampmeter.Comparison.load(folder)` reads a folder"
            raise argument_error("runs", "a mapping of labels to runs", runs, hint)
        mapping_argument("runs", runs, "labels to runs")
        self.failures: Failures = failures
        self.runs: dict[str, list[Run]] = {
            label: runs_of(one, f"runs[{label!r}]") for label, one in runs.items()
        }
        numbers = {len(of) for of in self.runs.values()}
        if len(numbers) != 1 or 0 in numbers:
            got = ", ".join(f"{len(of)} of {label}" for label, of in self.runs.items())
            expected = "as many runs of each label, and at least one"
            raise Location(key="runs").error(expected=expected, got=got or "none")

    def __repr__(self) -> str:
        seeds = "one seed" if self.n_seeds == 1 else f"{self.n_seeds} seeds of each"
        return f"Comparison of {', '.join(self.labels)}, {seeds}"

    def _repr_html_(self) -> str:
        tables = (table.html() for table in comparison_tables(self) if table.is_for_readers)
        return "".join([*tables, warnings_html(self.warnings)])

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> "Comparison":
        """Reads the output of `save` or of `rampmeter compare`; raises `ResultError`."""
        path = path_argument("folder", folder)
        file = path / COMPARISON
        with named_errors(file):
            if not file.exists():
                raise missing_run(path, "a comparison")
        about = read_record(file, {"transports": {ANY_KEY: [str]}, "failures": str})
        labels, failures = about["transports"], about["failures"]
        if failures not in FAILURES:
            where = Location(file, "failures")
            raise where.result_error(expected=f"one of {', '.join(FAILURES)}", got=failures)
        if len({len(names) for names in labels.values()} - {0}) != 1:
            where = Location(file, "transports")
            raise where.result_error(expected="as many runs of each label, and at least one")
        runs = {label: [Run(path / name) for name in names] for label, names in labels.items()}
        return cls(runs, failures=failures)

    def save(self, folder: str | PathLike[str]) -> None:
        """Records in a folder which runs in it are compared, and how."""
        path = path_argument("folder", folder).resolve()
        names = {
            label: [Path(os.path.relpath(run.path.resolve(), path)).as_posix() for run in runs]
            for label, runs in self.runs.items()
        }
        text = json.dumps({"failures": self.failures, "transports": names}, indent=2)
        write_text(path / COMPARISON, text + "\n")

    @property
    def labels(self) -> list[str]:
        """The labels of the transports."""
        return list(self.runs)

    @property
    def n_seeds(self) -> int:
        """Runs of each transport."""
        return len(next(iter(self.runs.values())))

    def slowdowns(self, label: str) -> list[Slowdowns]:
        """Returns slowdown by size in multiples of one BDP, all sizes last.

        The bins are those of the first transport.
        """
        choice_argument("label", label, self.labels)
        return self._slowdowns[label]

    def quantity(self, label: str, name: str) -> Interval:
        """Returns a number of the summaries, e.g. `utilisation`, with its interval over seeds."""
        choice_argument("label", label, self.labels)
        summaries = [run.summary for run in self.runs[label]]
        numbers = [key for key, of in summaries[0].items() if isinstance(of, float | int | None)]
        choice_argument("name", name, numbers)
        return interval(summary.get(name) for summary in summaries)

    def nfct(self, label: str) -> Interval:
        """Returns the mean completion time over mean ideal, of the flows that count."""
        choice_argument("label", label, self.labels)
        return interval(flows.nfct(label) for flows in self._seeds)

    def flows(self, label: str) -> dict[str, int]:
        """Counts flows by outcome.

        The keys are `submitted`, `delivered`, `failed`, `rejected`, `unfinished` and `not_started`.
        Flows that never started are not among those submitted.
        """
        choice_argument("label", label, self.labels)
        names = ("submitted", "delivered", "failed", "rejected", "unfinished", "not_started")
        counts = [run.summary["flows"] for run in self.runs[label]]
        return {name: sum(int(one.get(name, 0)) for one in counts) for name in names}

    def undelivered(self) -> "list[Undelivered]":
        """Counts the flows that each transport failed to deliver or rejected."""
        return undelivered(
            (label, label, run, has_faults(run.manifest.get("plan", {}).get("faults")))
            for label, runs in self.runs.items()
            for run in runs
        )

    def blame(self) -> ResultTable:
        """Returns the differences of mean slowdown cause by cause, of the first transport minus
        each other one, with 95 % intervals.

        They are over the same flows, so intervals are those of paired differences: by batch means,
        or over seeds. A row has a pair of transports, a size and a cause; the cause `all` is their
        sum. Raises `ResultError` without `run.blame`.
        """
        return blame_difference.table(self.blame_differences())

    def blame_differences(self) -> "dict[tuple[str, str], list[SizeDifference]]":
        """Returns the differences of `blame` by pairs of transports, then by size, all last."""
        first, *others = self.blames or self.labels
        return {(first, other): self._difference(first, other) for other in others}

    @cached_property
    def blames(self) -> dict[str, Blame]:
        """The causes of the flows that count, of the first seed of each transport that has them."""
        flows = self._seeds[0]
        return {
            label: run.blame.counting(flows.counted & flows.is_delivered(label))
            for label, (run, *_) in self.runs.items()
            if run.blame is not None
        }

    def _difference(self, first: str, other: str) -> "list[SizeDifference]":
        runs = zip(self.runs[first], self.runs[other], self._seeds, strict=True)
        return blame_difference.differences(
            [
                (blame_of(one), blame_of(two), flows.counted & flows.is_delivered(first, other))
                for one, two, flows in runs
            ],
            is_one_sample=any(is_one_sample(self.runs[name][0].summary) for name in (first, other)),
        )

    def notes(self) -> list[str]:
        """Returns sentences about the flows and the confidence of the statistics."""
        n_counted = sum(int(flows.counted.sum()) for flows in self._seeds)
        total = sum(int((flows.sizes >= 0).sum()) for flows in self._seeds)
        first = sum(flows.first for flows in self._seeds)
        is_left = "is" if first == 1 else "are"
        warm = f" {counted(first, 'flow')} of the warm-up {is_left} excluded." if first else ""
        if self.failures == "infinite":
            which = f"Slowdown covers {counted(n_counted, 'flow')}; those that a transport did not "
            which += "deliver count as infinitely slow there."
        else:
            which = (
                f"Slowdown covers the {counted(n_counted, 'flow')} of {count(total)} that every "
            )
            which += "transport delivered."
        sure = ""
        if self.n_seeds > 1:
            sure = f" ± is half a 95 % confidence interval over {self.n_seeds} seeds."
        elif any(group.mean.ci for label in self.labels for group in self.slowdowns(label)):
            sure = " ± is half a 95 % confidence interval by batch means."
        return [which + warm + sure]

    def has_one_window(self) -> bool:
        """Returns true if the measured window of each seed is the same under all transports."""
        by_seed = zip(*self.runs.values(), strict=True)
        windows = ([run.summary.get("window") for run in runs] for runs in by_seed)
        return all(one == of[0] for of in windows for one in of)

    @property
    def warnings(self) -> list[Caution]:
        """Reasons not to trust the numbers, a sentence with a code each."""
        cautions = []
        for label in self.labels:
            flows = self.flows(label)
            lost = ", ".join(
                f"{count(flows[name])} {name}" for name in ("failed", "unfinished") if flows[name]
            )
            if lost:
                delivered, submitted = flows["delivered"], flows["submitted"]
                text = (
                    f"{label} delivered {count(delivered)} of {count(submitted)} flows ({lost}); "
                    "the undelivered traffic left more capacity to the others."
                )
                values = {name: flows[name] for name in ("failed", "rejected", "unfinished")}
                values |= {"flows": submitted, "missing": submitted - delivered}
                cautions.append(Caution(text, NOT_DELIVERED, {"transport": label, **values}))
        counted = (
            "count as infinitely slow"
            if self.failures == "infinite"
            else "are excluded from all statistics"
        )
        for one in self.undelivered():
            if one.rejected:
                text = (
                    f"{one.rejection}. They {counted}, and {one.label} did not carry their load: "
                    f"the other transports did, so the comparison flatters {one.label}."
                )
                rejected = {"transport": one.label, "rejected": one.rejected}
                cautions.append(Caution(text, NOT_DELIVERED, rejected))
        for label, runs in self.runs.items():
            cautions += [line.of_transport(label) for line in _distinct_warnings(runs)]
        return [*cautions, *two_seeds(self.n_seeds)]

    @cached_property
    def table(self) -> "pa.Table":
        """A row for each transport and size bin, as an Arrow table.

        `mean`, `p50`, `p99`, `p999`, `max` are slowdowns. `mean_ci` and so on are half the widths
        of their intervals, null if there is none.
        """
        rows = []
        for label in self.labels:
            for group in self.slowdowns(label):
                row: dict[str, Any] = {
                    "transport": label,
                    "size": group.label,
                    "upper_bytes": group.upper_bytes,
                    "flows": group.count,
                }
                for name in STATISTICS:
                    value: Interval = getattr(group, name)
                    row[name] = None if math.isnan(value.mean) else value.mean
                    row[f"{name}_ci"] = value.ci
                rows.append(row)
        kinds: dict[str, pa.DataType] = {"transport": pa.string(), "size": pa.string()}
        kinds |= {"upper_bytes": pa.uint64(), "flows": pa.uint64()}
        kinds |= {name + end: pa.float64() for name in STATISTICS for end in ("", "_ci")}
        return pa.Table.from_pylist(rows, schema=pa.schema(kinds))

    @property
    def tables(self) -> dict[str, ResultTable]:
        """The tables that `rampmeter compare` prints, by name, such as `tables["jobs"]`."""
        return by_name(comparison_tables(self))

    @property
    def plot(self) -> "ComparisonPlots":
        """Plots with a curve or marks for each transport."""
        return ComparisonPlots(self)

    def animate(
        self,
        path: str | PathLike[str] | None = None,
        start: float | str = 0,
        end: float | str | None = None,
        hosts: str | Sequence[int] | None = None,
        title: str = "",
    ) -> Animation:
        """Returns a page that plays the first seed of each transport side by side.

        The arguments and errors are those of `Run.animate`.
        """
        found = animations.animate(self.plot._first, start, end, hosts, title)
        if path is not None:
            found.save(path)
        return found

    @cached_property
    def _seeds(self) -> list["SameFlows"]:
        by_seed = zip(*self.runs.values(), strict=True)
        return [SameFlows(dict(zip(self.runs, of, strict=True)), self.failures) for of in by_seed]

    @cached_property
    def _slowdowns(self) -> dict[str, list[Slowdowns]]:
        found = {}
        for label in self.labels:
            seeds = [flows.groups(label) for flows in self._seeds]
            found[label] = [_over_seeds(groups) for groups in zip(*seeds, strict=True)]
        return found


class ComparisonPlots(PlotList):
    """The plots of a comparison; each is a matplotlib figure, or drawn into `ax`."""

    def __init__(self, comparison: Comparison) -> None:
        self._of = comparison

    def __repr__(self) -> str:
        return f"<plots of {', '.join(self._of.labels)}: {', '.join(self.names())}>"

    def slowdown_by_size(self, *, ax: "Axes | None" = None) -> "Figure":
        """Draws the mean and 99th percentile of slowdown by flow size, of each transport."""
        series = [
            series_of_slowdowns(label, self._of.slowdowns(label)[:-1]) for label in self._of.labels
        ]
        note = interval_name([self._of.n_seeds])
        return plots.slowdown_by_size(series, interval=note, ax=ax)

    @needs("collectives")
    def collectives(self, *, ax: "Axes | None" = None) -> "Figure":
        """Draws completion times of collectives by round, a line for each transport."""
        runs = {transport_name(label): of for label, of in self._of.runs.items()}
        summaries = {name: [run.summary for run in of] for name, of in runs.items()}
        return collectives(summaries, next(iter(runs.values()))[0].path, ax)

    @needs("blame")
    def blame(self) -> "Figure":
        """Draws mean slowdown by flow size, stacked by cause, a panel for each transport.

        It has the first seed. Raises `ResultError` without `run.blame`.
        """
        return blame_plots.slowdown_by_cause(self._blames)

    @needs("blame")
    def blame_matrix(self) -> "Figure":
        """Draws who delayed whom by the sizes of flows, a panel for each transport."""
        return blame_plots.waits(self._blames)

    @needs("blame")
    def blame_difference(self, other: str | None = None) -> "Figure":
        """Draws the difference of the first transport and another one, cause by cause.

        `other` is by default the second one; see `Comparison.blame`.
        """
        first, *others = self._of.blames or self._of.labels
        if not others:
            raise Location(key="transports").error(expected="at least two with causes", got=first)
        chosen = others[0] if other is None else other
        choice_argument("other", chosen, others)
        names = (transport_name(first), transport_name(chosen))
        return blame_plots.differences(names, self._of._difference(first, chosen))

    def fct_cdf(self, *, ax: "Axes | None" = None) -> "Figure":
        """Draws the distributions of completion times of the flows that count, of all seeds."""
        curves = {transport_name(label): self._of_all(label) for label in self._of.labels}
        return plots.fct_cdfs(curves, ax=ax)

    @needs("timeline")
    def time_space(
        self,
        start: float | str = 0,
        end: float | str | None = None,
        hosts: str | Sequence[int] | None = None,
    ) -> "Figure":
        """Draws the packets on each link, a panel for each transport; see `Run.plot.time_space`."""
        return pictures.time_space(self._first, pictures.Window.parse(start, end), hosts)

    @needs("timeline", "links")
    def queue(
        self,
        port: str | None = None,
        start: float | str = 0,
        end: float | str | None = None,
        *,
        ax: "Axes | None" = None,
    ) -> "Figure":
        """Draws the queue of a port over time, a line for each transport; see `Run.plot.queue`."""
        return pictures.queue(self._first, pictures.Window.parse(start, end), port, ax)

    @needs("timeline", "links")
    def link(
        self,
        port: str | None = None,
        start: float | str = 0,
        end: float | str | None = None,
        *,
        ax: "Axes | None" = None,
    ) -> "Figure":
        """Draws the utilisation of a link over time, a line for each transport."""
        return pictures.link(self._first, pictures.Window.parse(start, end), port, ax)

    @needs("rates", "outages")
    def goodput(
        self, start: float | str = 0, end: float | str | None = None, *, ax: "Axes | None" = None
    ) -> "Figure":
        """Draws the goodput of the whole network over time, a line for each transport.

        It is exact with `run.rates-us`; without, each flow has its bytes evenly over its time.
        """
        return goodput(self._first, pictures.Window.parse(start, end), ax)

    def _has(self, table: str) -> bool:
        of_each = (has_table(run, table) for run in self._first.values())
        # The ideal has no rates; its goodput is that of its flows.
        return any(of_each) if table in ("blame", "rates", "outages") else all(of_each)

    @property
    def _first(self) -> dict[str, Run]:
        """The run of the first seed of each transport, by the name of the transport."""
        return {transport_name(label): runs[0] for label, runs in self._of.runs.items()}

    @property
    def _blames(self) -> dict[str, Blame]:
        found = {transport_name(label): of for label, of in self._of.blames.items()}
        return found or {name: blame_of(run) for name, run in self._first.items()}

    def _of_all(self, label: str) -> "Floats":
        return np.concatenate([flows.fct(label) for flows in self._of._seeds])


def _distinct_warnings(runs: Sequence[Run]) -> Iterator[Caution]:
    """Yields the warnings of runs that differ in their seeds; those of one kind once.

    A comparison has a sentence of its own about flows that were not delivered.
    """
    alike: dict[tuple[str, int], list[Caution]] = {}
    for run in runs:
        seen: Counter[str] = Counter()
        for line in run.warnings:
            if line.code == NOT_DELIVERED or (line.code == ONE_SAMPLE and len(runs) > 1):
                continue
            # Results of earlier versions have no codes.
            kind = line.code or str(line)
            alike.setdefault((kind, seen[kind]), []).append(line)
            seen[kind] += 1
    for lines in alike.values():
        seeds = f" ({len(lines)} of {len(runs)} seeds)"
        first = lines[0]
        text = f"{first}{seeds}"
        yield Caution(text, first.code, first.values) if len(runs) > 1 else first


def _over_seeds(groups: Sequence[Group]) -> Slowdowns:
    first = groups[0]
    values = [_interval(groups, name) for name in STATISTICS]
    return Slowdowns(first.label, first.upper_bytes, sum(g.count for g in groups), *values)


def _interval(groups: Sequence[Group], name: str) -> Interval:
    if len(groups) > 1:
        return interval(getattr(group, name) for group in groups)
    value = getattr(groups[0], name)
    ci = groups[0].ci.get(name)
    return Interval(value, ci, 0 if math.isnan(value) else 1)
