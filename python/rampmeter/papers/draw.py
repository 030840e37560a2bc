"""A sub-figure's rows as a plot."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rampmeter import plots
from rampmeter.papers.draw_series import draw_series
from rampmeter.papers.figure import Figure, SubFigure
from rampmeter.papers.label import load, name_parts, workload
from rampmeter.papers.metrics import METRICS, Metric
from rampmeter.papers.pareto import LeastBound
from rampmeter.papers.series import Series
from rampmeter.papers.verdict import Measurement, ValueRow

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

WHISKERS: dict[Metric, Metric] = {
    "mean": "p99",
    "queue-mean-kb": "queue-max-kb",
    "switch-mean-kb": "switch-max-kb",
}
"""Metrics at the ends of whiskers, if a panel has them."""

EXPECTED = "expected"
MEASURED = "measured"
VARIANT = "measured, paper preset"
SHORT_NAMES = {EXPECTED: EXPECTED, MEASURED: "", VARIANT: "paper preset"}
"""Names of values after the name of a run. Values without a name are measured."""


def draw(
    figure: Figure,
    panel: SubFigure,
    rows: Sequence[ValueRow],
    note: str = "",
    series: Mapping[str, Series] | None = None,
    least: Sequence[LeastBound] = (),
) -> "Drawing":
    """Draws a panel. `note` is put behind its title.

    Packets, probes and crashes are drawn from series by run, Pareto curves from least bounds.
    """
    title = f"{figure.number}{panel.id}  {panel.title}{note}"
    match panel.drawing:
        case "by-load":
            return _by_load(figure, panel, rows, title)
        case "by-workload":
            names = [workload(figure, run) for run in panel.runs]
            marks = _series(rows, [(run, None) for run in panel.runs])
            if "mean" not in panel.metrics:
                y_label = METRICS[panel.metrics[0]].label
                if WHISKERS.get(panel.metrics[0]) in panel.metrics:
                    y_label = y_label.replace(", mean (KB)", ", KB (mark: mean, whisker: max.)")
                return plots.grouped(names, marks, title=title, y_label=y_label, is_slowdown=False)
            return plots.grouped(names, marks, title=title)
        case "spread":
            return plots.spread(_spreads(figure, panel, rows), title=title)
        case "sustained":
            return plots.tradeoff(_tradeoffs(figure, panel, rows), title=title)
        case "pareto":
            return plots.pareto(_curves(least), _theorems(figure, panel), title=title)
        case "share":
            return plots.sustainable_share(panel.cores, title=title)
        case "by-point":
            return plots.curves(
                _by_point(figure, panel, rows),
                x_label=panel.x_label,
                y_label=METRICS[panel.metrics[0]].label,
                title=title,
                log=panel.log,
            )
        case "operating-points":
            return plots.operating_points(_operating_points(figure, rows), title=title)
        case "time-space" | "probes" | "crashes":
            named = [
                (workload(figure, run), series[run])
                for run in panel.runs
                if series and run in series
            ]
            return draw_series(panel, named, title)
        case "by-size":
            is_slowdown = "mean" in panel.metrics
            return plots.slowdown_by_size(
                _by_size(figure, panel, rows),
                title=title,
                x_label=f"Flow size ({panel.size_unit})" if panel.size_unit else "Flow size",
                y_label=METRICS[panel.metrics[0]].label if not is_slowdown else plots.SLOWDOWN,
                is_slowdown=is_slowdown,
            )


def _tradeoffs(
    figure: Figure, panel: SubFigure, rows: Sequence[ValueRow]
) -> "list[plots.Tradeoff]":
    """Returns the sustained load and the bound of each run."""
    points = []
    for row in rows:
        if row.measured is not None:
            name, series = name_parts(figure, row.cell.run)
            at = load(figure, panel, row.cell.run)
            points.append(
                plots.Tradeoff(name, at, row.measured.mean, row.is_undecided, series=series)
            )
    return points


def _by_load(figure: Figure, panel: SubFigure, rows: Sequence[ValueRow], title: str) -> "Drawing":
    lines = []
    for name in dict.fromkeys(workload(figure, row.cell.run) for row in rows):
        own = [row for row in rows if workload(figure, row.cell.run) == name]
        at = [(load(figure, panel, row.cell.run), row) for row in own]
        lines.append(
            plots.Line(
                name,
                [
                    plots.Point(x, r.measured.mean, *_range(r), is_undecided=r.is_undecided)
                    for x, r in at
                    if r.measured is not None
                ],
                [plots.Point(x, r.fact.expected) for x, r in at if r.fact is not None],
                [plots.Point(x, r.variant.mean) for x, r in at if r.variant is not None],
            )
        )
    y_label = METRICS[rows[0].cell.metric].label
    return plots.by_load(
        lines,
        x_label=panel.x_label,
        y_label=y_label,
        title=title,
        variant_name="paper preset",
        log=panel.log,
    )


def _operating_points(figure: Figure, rows: Sequence[ValueRow]) -> "list[plots.OperatingPoint]":
    """Returns the tail and the spinner's share of each run."""
    measured = {(r.cell.run, r.cell.metric): r.measured.mean for r in rows if r.measured}
    published = {r.cell.run: r.fact.expected for r in rows if r.fact}
    undecided = {r.cell.run for r in rows if r.is_undecided}
    points = []
    for run in dict.fromkeys(row.cell.run for row in rows):
        if (run, "spinner-share") in measured:
            series, name = name_parts(figure, run)
            points.append(
                plots.OperatingPoint(
                    name,
                    measured[run, "spinner-share"],
                    measured[run, "tail-us"],
                    published.get(run),
                    is_undecided=run in undecided,
                    series=series,
                )
            )
    return points


def _by_size(
    figure: Figure, panel: SubFigure, rows: Sequence[ValueRow]
) -> "list[plots.SizeSeries]":
    """Returns the series of a panel's run, or of each of its runs under the run's name."""
    sized = []
    for run in panel.runs:
        for one in _series(rows, [(run, idx) for idx in range(len(panel.labels))]):
            name = one.name
            if len(panel.runs) > 1:
                name = ", ".join(filter(None, [workload(figure, run), SHORT_NAMES[one.name]]))
            sized.append(
                plots.SizeSeries(
                    name,
                    one.means,
                    one.p99s,
                    one.is_published,
                    undecided=one.undecided,
                    labels=panel.labels,
                )
            )
    return sized


def _by_point(figure: Figure, panel: SubFigure, rows: Sequence[ValueRow]) -> "list[plots.Line]":
    """Returns the first metric of each run, by point."""
    lines = []
    for run in panel.runs:
        own = [
            (panel.points[row.cell.bin], row)
            for row in rows
            if row.cell.run == run and row.cell.bin is not None
            if row.cell.metric == panel.metrics[0]
        ]
        lines.append(
            plots.Line(
                workload(figure, run),
                [
                    plots.Point(x, r.measured.mean, is_undecided=r.is_undecided)
                    for x, r in own
                    if r.measured is not None
                ],
                [plots.Point(x, r.fact.expected) for x, r in own if r.fact is not None],
            )
        )
    return lines


def _spreads(
    figure: Figure, panel: SubFigure, rows: Sequence[ValueRow]
) -> "list[plots.SlowdownSpread]":
    """Returns the slowdowns of each run, those of one label together."""
    values: dict[str, dict[str, float]] = {}
    for row in rows:
        if row.measured is not None:
            values.setdefault(row.cell.run, {})[row.cell.metric] = row.measured.mean
    return [
        plots.SlowdownSpread(
            workload(figure, run),
            load(figure, panel, run),
            *(of_run[metric] for metric in ("min", "mean", "p99", "p999", "max")),
        )
        for run, of_run in values.items()
    ]


def sustained(figure: Figure, panel: SubFigure, rows: Sequence[ValueRow]) -> list[ValueRow]:
    """Returns the bound of each label at its highest load without excess rejections."""
    by_cell = {(row.cell.run, row.cell.metric): row for row in rows}
    found: dict[str, ValueRow] = {}
    broken: set[str] = set()
    for run in sorted(panel.runs, key=lambda run: load(figure, panel, run)):
        name = workload(figure, run)
        rejected = by_cell[(run, "rejected")].measured
        if rejected is None or not rejected.values:
            # Omitted in a reduced run, or not finished: use the next one.
            continue
        if rejected.mean > panel.rejected_max:
            broken.add(name)
        elif name not in broken:
            found[name] = by_cell[(run, "bound-us")]
    names = dict.fromkeys(workload(figure, run) for run in panel.runs)
    return [found[name] for name in names if name in found]


def _curves(least: Sequence[LeastBound]) -> "list[plots.Curve]":
    """Returns the curve of each label. Those with equal words before a comma are a family."""
    curves: dict[str, list[plots.Tradeoff]] = {}
    for line in least:
        points = curves.setdefault(line.label, [])
        if line.least is not None:
            points.append(plots.Tradeoff(line.label, line.load, line.least.bound_us))
    found = []
    for label, points in curves.items():
        family, comma, _ = label.partition(",")
        found.append(plots.Curve(label, points, family, is_variant=bool(comma)))
    return found


def _theorems(figure: Figure, panel: SubFigure) -> "list[plots.Tradeoff]":
    """Returns the bound of theorem 3.5 and the load of theorem 3.4 for each K of the panel."""
    if panel.theorems is None:
        return []
    labels: dict[int, str] = {}
    for run in panel.runs:
        slots = figure.plan.with_(*figure.run(run).overrides).get("transport.slots")
        if isinstance(slots, int):
            labels.setdefault(slots, name_parts(figure, run)[0])
    of = panel.theorems
    return [
        plots.Tradeoff(
            label,
            of.network.theta(of.size_bytes, slots, of.spines),
            of.network.delta_us(of.size_bytes, slots),
        )
        for slots, label in labels.items()
    ]


def _series(
    rows: Sequence[ValueRow], keys: Sequence[tuple[str, int | None]]
) -> "list[plots.GroupSeries]":
    """Returns the marks of expected, measured and variant's values, without empty series.

    Marks are means, or the first metric of panels without.
    """
    metrics = [row.cell.metric for row in rows]
    first: Metric = "mean" if "mean" in metrics or not metrics else metrics[0]
    by_key = {(row.cell.run, row.cell.bin, row.cell.metric): row for row in rows}

    def column(metric: Metric, which: str) -> list[float | None]:
        cells = [by_key.get((run, idx, metric)) for run, idx in keys]
        return [_value(cell, which) if cell else None for cell in cells]

    top = WHISKERS.get(first, "p99")
    # Slowdowns have whiskers, on which the seeds' range would be hard to see.
    ranges = [] if first == "mean" else [_range(by_key.get((*key, first))) for key in keys]
    found = [by_key.get((*key, first)) for key in keys]
    undecided = frozenset(i for i, row in enumerate(found) if row and row.is_undecided)
    series = [
        plots.GroupSeries(EXPECTED, column(first, "fact"), column(top, "fact"), True),
        plots.GroupSeries(
            MEASURED,
            column(first, "measured"),
            column(top, "measured"),
            ranges=ranges,
            undecided=undecided,
        ),
        plots.GroupSeries(VARIANT, column(first, "variant"), column(top, "variant")),
    ]
    shown = [one for one in series if any(value is not None for value in one.means)]
    return shown or series[1:2]


def _range(row: ValueRow | None) -> tuple[float, float]:
    """Returns the least and the largest value of the seeds; twice NaN without any."""
    values = row.measured.values if row and row.measured else ()
    return min(values, default=math.nan), max(values, default=math.nan)


def _value(row: ValueRow, which: str) -> float | None:
    if which == "fact":
        return row.fact.expected if row.fact else None
    measured: Measurement | None = row.measured if which == "measured" else row.variant
    if measured is None or math.isnan(measured.mean):
        return None
    return measured.mean
