"""Measured values beside published ones, and whether they match."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from rampmeter.papers.application import OF_APPLICATIONS, Settings, of_application
from rampmeter.papers.figure import (
    OF_FLOWS,
    CellId,
    Fact,
    Figure,
    Metric,
    Mode,
    SubFigure,
    Tolerance,
)
from rampmeter.papers.selection import Flows, Statistics, by_size, finished_before, overall
from rampmeter.results import Run

Verdict: TypeAlias = Literal["match", "miss", "not judged"]


@dataclass(frozen=True)
class Measured:
    """A value over the seeds of a run."""

    values: tuple[float, ...]
    """One value a seed."""
    n_counted: int
    """Flows that it was computed from, over all seeds."""

    @property
    def mean(self) -> float:
        """The mean over the seeds."""
        return sum(self.values) / len(self.values)

    @property
    def spread(self) -> float:
        """The largest less the smallest."""
        return max(self.values) - min(self.values)


@dataclass(frozen=True)
class Row:
    """One line of a sub-figure's table."""

    cell: CellId
    fact: Fact | None
    measured: Measured | None
    variant: Measured | None
    verdict: Verdict
    reason: str
    """Why it is not judged; empty if it is."""

    @property
    def difference(self) -> float | None:
        """Measured less published, as the tolerance counts it."""
        if self.fact is None or self.measured is None or self.measured.n_counted == 0:
            return None
        difference = self.measured.mean - self.fact.published
        relative = self.fact.tolerance.kind == "relative"
        return difference / self.fact.published if relative else difference

    def to_json(self) -> dict[str, Any]:
        """The row as plain values."""
        tolerance = self.fact.tolerance if self.fact else None
        return {
            "run": self.cell.run,
            "metric": self.cell.metric,
            "bin": self.cell.bin,
            "published": self.fact.published if self.fact else None,
            "source": self.fact.source if self.fact else None,
            "measured": _json(self.measured),
            "variant": _json(self.variant),
            "difference": self.difference,
            "tolerance": {"kind": tolerance.kind, "value": tolerance.value} if tolerance else None,
            "verdict": self.verdict,
            "reason": self.reason,
        }


Cells: TypeAlias = dict[tuple[Metric, int | None], tuple[float, int]]
"""The values of one run in one panel, with the number of flows behind each."""


def measure(
    panel: SubFigure, run: Run, ideal: str = "figure", settings: Settings | None = None
) -> Cells:
    """What a panel shows of one run."""
    cells: Cells = {
        (metric, None): (_of_run(run, metric), int(run.summary["flows"]["submitted"]))
        for metric in panel.metrics
        if metric not in OF_FLOWS and metric not in OF_APPLICATIONS
    }
    for metric in panel.metrics:
        if metric in OF_APPLICATIONS:
            values = of_application(metric, run, panel.points, settings or {})
            count = int(run.summary["flows"]["submitted"])
            idxs = range(len(values)) if panel.points else [None]
            cells |= {
                (metric, i): (v, 0 if math.isnan(v) else count)
                for i, v in zip(idxs, values, strict=True)
            }
    if not any(metric in OF_FLOWS for metric in panel.metrics):
        return cells
    flows = Flows.of(run, ideal)
    counted = finished_before(flows, panel.finished_before)
    if panel.drawing == "by-size":
        groups = by_size(flows, counted, panel.edges_bytes)
        return {
            (metric, idx): _statistic(group, metric)
            for idx, group in enumerate(groups)
            for metric in panel.metrics
        }
    group = overall(flows, counted)
    of_flows = [metric for metric in panel.metrics if metric in OF_FLOWS]
    return cells | {(metric, None): _statistic(group, metric) for metric in of_flows}


def _of_run(run: Run, metric: Metric) -> float:
    """A metric of a whole run, from its summary; NaN where the run has none."""
    summary = run.summary
    if metric == "drop-rate":
        dropped = sum(int(tier["data_drops"]) for tier in summary["tiers"])
        arrived = int(summary["counters"]["data_packets"])
        return dropped / max(1, dropped + arrived)
    if metric == "tenant-share":
        return _tenant_share(run)
    if metric == "rejected":
        return float(summary["flows"]["rejected"] / max(1, summary["flows"]["submitted"]))
    if metric == "bound-us":
        return _bound_us(run)
    value = summary[{"deadlines-met": "deadlines_met"}.get(metric, metric)]
    return math.nan if value is None else float(value)


def _tenant_share(run: Run) -> float:
    """The first tenant's share of the bytes delivered until arrivals stopped."""
    table = run.tenants
    if table is None:
        return math.nan
    time, tenant, delivered = (
        table[name].to_numpy() for name in ("time_ps", "tenant", "delivered_bytes")
    )
    until = time <= int(run.summary["counters"]["last_arrival_ps"])
    if not until.any():
        return math.nan
    last = until & (time == time[until].max())
    return float(delivered[last & (tenant == 0)].sum() / max(1, delivered[last].sum()))


def _bound_us(run: Run) -> float:
    """The longest time after its submission within which a message's fate was promised."""
    bounds = run.columns("bound_ps")["bound_ps"]
    return float(bounds.to_numpy().max()) / 1e6 if bounds.null_count == 0 else math.nan


def _statistic(group: Statistics, metric: Metric) -> tuple[float, int]:
    return float(getattr(group, metric)), group.count


def rows_of(
    figure: Figure,
    panel: SubFigure,
    runs: Mapping[str, Sequence[Run]],
    mode: Mode,
    not_asked: frozenset[str] = frozenset(),
) -> list[Row]:
    """The table of a panel. `runs` holds the complete runs by id, one a seed."""
    rows = []
    for run_id in panel.runs:
        variant = figure.variant(run_id)
        shown = _over_seeds(figure, panel, runs, run_id)
        beside = _over_seeds(figure, panel, runs, variant.id) if variant else {}
        n_bins = max(1, len(panel.labels))
        for idx in range(n_bins) if panel.labels else [None]:
            for metric in panel.metrics:
                cell = CellId(panel.id, run_id, metric, idx)
                measured = shown.get((metric, idx))
                fact = figure.facts.get(cell)
                verdict, reason = judge(fact, measured, mode, is_asked=run_id not in not_asked)
                rows.append(Row(cell, fact, measured, beside.get((metric, idx)), verdict, reason))
    return rows


def judge(
    fact: Fact | None, measured: Measured | None, mode: Mode, *, is_asked: bool = True
) -> tuple[Verdict, str]:
    """A verdict, with the reason where there is none."""
    if measured is None:
        return "not judged", "not finished" if is_asked else "not in the reduced run"
    if measured.n_counted == 0 or math.isnan(measured.mean):
        return "not judged", "no flows"
    if fact is None:
        return "not judged", "no published value"
    if mode.name == "quick" or (mode.name == "scale" and mode.scale < 1.0):
        return "not judged", "reduced run"
    return ("match" if fact.tolerance.allows(fact.published, measured.mean) else "miss"), ""


def tolerance_text(tolerance: Tolerance) -> str:
    """A tolerance for people."""
    if tolerance.kind == "relative":
        return f"±{tolerance.value * 100:g} %"
    return f"±{tolerance.value:g}"


def _over_seeds(
    figure: Figure, panel: SubFigure, runs: Mapping[str, Sequence[Run]], run_id: str
) -> dict[tuple[Metric, int | None], Measured]:
    settings = figure.run(run_id).app
    cells = [measure(panel, run, figure.ideal, settings) for run in runs.get(run_id, ())]
    joined = {}
    for key in cells[0] if cells else ():
        values = [(value, count) for value, count in (c[key] for c in cells) if count]
        if values:
            joined[key] = Measured(tuple(v for v, _ in values), sum(n for _, n in values))
        else:
            joined[key] = Measured((math.nan,), 0)
    return joined


def _json(measured: Measured | None) -> dict[str, Any] | None:
    if measured is None or measured.n_counted == 0:
        return None
    return {
        "mean": measured.mean,
        "by_seed": list(measured.values),
        "flows_counted": measured.n_counted,
    }
