"""Minimum latency bound at which each load is sustained, over a setting such as the hold time."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rampmeter.papers.figure import LEAST_BOUND_OF, Figure, SubFigure
from rampmeter.papers.label import load, workload
from rampmeter.papers.verdict import Measurement, ValueRow, without_value


@dataclass(frozen=True)
class SustainedRun:
    """Run with the minimum bound among those that sustain a load."""

    run: str
    bound_us: float
    """Bound of the seed in which it is the longest, in microseconds."""
    setting: float | None
    """The value of the panel's key; `None` if the plan omits it."""


@dataclass(frozen=True)
class LeastBound:
    """One line of a panel's table."""

    label: str
    load: float
    least: SustainedRun | None
    """`None` if no run sustains the load."""
    is_complete: bool
    """True if every run of the label at this load or a lower one has values of all seeds."""

    def to_json(self) -> dict[str, Any]:
        """Returns the line as plain values."""
        return {
            "label": self.label,
            "load": self.load,
            "run": self.least.run if self.least else None,
            "bound_us": self.least.bound_us if self.least else None,
            "setting": self.least.setting if self.least else None,
            "is_complete": self.is_complete,
        }


def least_bounds(
    figure: Figure,
    panel: SubFigure,
    rows: Sequence[ValueRow],
    seeds: Sequence[int],
    left_out: frozenset[str] = frozenset(),
) -> list[LeastBound]:
    """Returns the table of a panel, by label and load.

    Runs that differ in their load only are a column of the grid. A run sustains its load under two
    conditions: the share rejected is within the panel's limit in every seed, and the runs of lower
    loads in its column sustain theirs. A run that lacks a value of a seed sustains no load.
    """
    by_cell = {(row.cell.run, row.cell.metric): row.measured for row in rows}
    loads = {run: load(figure, panel, run) for run in panel.runs if run not in left_out}
    found: dict[tuple[str, float], SustainedRun] = {}
    lowest_unknown: dict[str, float] = {}
    broken: set[tuple[str, float | None]] = set()
    for run, at in sorted(loads.items(), key=lambda item: item[1]):
        label, setting = workload(figure, run), _setting(figure, panel, run)
        rejected, bound = (_worst(by_cell.get((run, key)), seeds) for key in LEAST_BOUND_OF)
        if rejected is None or bound is None:
            lowest_unknown.setdefault(label, at)
            broken.add((label, setting))
        elif rejected > panel.rejected_max:
            broken.add((label, setting))
        elif (label, setting) not in broken:
            best = found.get((label, at))
            if best is None or bound < best.bound_us:
                found[label, at] = SustainedRun(run, bound, setting)
    lines: dict[str, set[float]] = {}
    for run, at in loads.items():
        lines.setdefault(workload(figure, run), set()).add(at)
    return [
        LeastBound(label, at, found.get((label, at)), at < lowest_unknown.get(label, math.inf))
        for label, of_label in lines.items()
        for at in sorted(of_label)
    ]


def _worst(measured: Measurement | None, seeds: Sequence[int]) -> float | None:
    """Returns the largest value of the seeds; `None` unless all have one."""
    if measured is None or without_value(measured, seeds):
        return None
    return max(measured.values)


def _setting(figure: Figure, panel: SubFigure, run: str) -> float | None:
    """Returns the value of a panel's key."""
    value = figure.plan.with_(*figure.run(run).overrides).resolved(panel.over)
    return float(value) if isinstance(value, int | float) else None
