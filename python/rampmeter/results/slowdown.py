"""Slowdown in summaries of runs: of all flows, and by flow size."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rampmeter import plots
from rampmeter.analysis.confidence import Interval
from rampmeter.results.names import transport_name
from rampmeter.text.arguments import choice_argument

STATISTICS = ("mean", "p50", "p99", "p999", "max")
IDEALS: Final = ("acked", "delivered", "figure")
"""Names of the ideal times that slowdown is relative to."""
BINS: Final = ("bdp", "decades", "deciles", "classes")
"""Names of the divisions of flows by size."""


@dataclass(frozen=True)
class Group:
    """The slowdown of some flows: all, or those of one size bin. NaN if there are none."""

    label: str
    upper_bytes: int | None
    count: int
    mean: float
    p50: float
    p99: float
    p999: float
    max: float
    ci: Mapping[str, float] = field(default_factory=dict)
    """Half the widths of 95 % confidence intervals by batch means, by the names of statistics;
    only of runs that are long enough."""

    @classmethod
    def of(
        cls, statistics: Mapping[str, Any] | None, label: str, upper_bytes: int | None = None
    ) -> "Group":
        """Returns a group from a summary's statistics, which are null without flows."""
        names = ("mean", "p50", "p99", "p999", "max")
        found = statistics or dict.fromkeys(names, math.nan)
        mean, p50, p99, p999, top = (float(found[name]) for name in names)
        intervals = {name: found.get(f"{name}_ci") for name in names}
        ci = {name: float(value) for name, value in intervals.items() if value is not None}
        n = int(found.get("count", 0))
        return cls(label, upper_bytes, n, mean, p50, p99, p999, top, ci)


def overall_slowdown(summary: Mapping[str, Any], ideal: str = "delivered") -> Group:
    """Returns the slowdown of all flows counted."""
    return Group.of(_slowdown(summary, ideal)["overall"], "all")


def slowdown_groups(
    summary: Mapping[str, Any], ideal: str = "delivered", bins: str = "bdp"
) -> list[Group]:
    """Returns the slowdown by size; `bins` is `bdp`, `decades`, `deciles` or `classes`."""
    statistics = _slowdown(summary, ideal)
    choice_argument("bins", bins, BINS)
    return [Group.of(b["stats"], str(b["label"]), b["upper_bytes"]) for b in statistics[bins]]


def _slowdown(summary: Mapping[str, Any], ideal: str) -> Mapping[str, Any]:
    by_ideal: Mapping[str, Any] = summary["slowdown"]
    choice_argument("ideal", ideal, IDEALS)
    statistics: Mapping[str, Any] = by_ideal[ideal]
    return statistics


@dataclass(frozen=True)
class Slowdowns:
    """The slowdown of some flows under one transport: all, or those of one size bin.

    With several seeds each value is the mean over them, with its 95 % confidence interval. With one
    seed it has the interval by batch means if the run's summary has one.
    """

    label: str
    upper_bytes: int | None
    count: int
    """Flows, of all seeds together."""
    mean: Interval
    p50: Interval
    p99: Interval
    p999: Interval
    max: Interval


def series_of_groups(name: str, groups: Sequence[Group]) -> "plots.SizeSeries":
    """Returns the series of a plot of size groups; empty groups have no mark."""
    return plots.SizeSeries(
        name,
        [group.mean if group.count else None for group in groups],
        [group.p99 if group.count else None for group in groups],
        mean_errors=[group.ci.get("mean") for group in groups],
        p99_errors=[group.ci.get("p99") for group in groups],
        labels=[group.label for group in groups],
    )


def series_of_slowdowns(name: str, groups: Sequence[Slowdowns]) -> "plots.SizeSeries":
    """Returns the series of a plot of a comparison, without empty groups and infinite values."""

    def shown(value: float) -> float | None:
        return value if math.isfinite(value) else None

    return plots.SizeSeries(
        transport_name(name),
        [shown(group.mean.mean) for group in groups],
        [shown(group.p99.mean) for group in groups],
        mean_errors=[group.mean.ci for group in groups],
        p99_errors=[group.p99.ci for group in groups],
        labels=[group.label for group in groups],
    )
