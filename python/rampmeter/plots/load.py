"""Quantities by offered load: a line for each series, with published points."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from rampmeter.plots.intervals import RANGE, draw_intervals, label_intervals
from rampmeter.plots.special_marks import draw_undecided, label_undecided
from rampmeter.plots.style import (
    LINES,
    MARKERS,
    PALETTE,
    PUBLISHED,
    finish,
    house_style,
    new_figure,
    plain_log_ticks,
    wrap_x_label,
    wrap_y_label,
)

TICKS_MAX = 8
"""Maximum number of points of a logarithmic axis that each have a tick."""


@dataclass(frozen=True)
class Point:
    """A value at a load."""

    load: float
    value: float
    least: float = math.nan
    """The least value of several seeds, and the largest."""
    most: float = math.nan
    is_undecided: bool = False
    """True if the value has no verdict yet; it is grey."""


@dataclass(frozen=True)
class Line:
    """Values of one workload: measured, published, and of a variant."""

    name: str
    measured: Sequence[Point]
    published: Sequence[Point] = ()
    variant: Sequence[Point] = ()


def by_load(
    lines: Sequence[Line],
    *,
    x_label: str = "Offered load (fraction of access capacity, headers included)",
    y_label: str,
    title: str = "",
    variant_name: str = "variant",
    log: str = "",
) -> Figure:
    """Draws a quantity by offered load. Published points are hollow, in the shape of their line's.
    `log` names the logarithmic axes: empty, `x`, `y` or `xy`.
    """
    with house_style():
        figure, axes = new_figure(height=3.3)
        for idx, line in enumerate(lines):
            _draw(axes, line, idx)
        _proxies(axes, lines, variant_name)
        if "x" in log:
            axes.set_xscale("log")
            _ticks_at_points(axes, lines)
        if "y" in log:
            axes.set_yscale("log")
            plain_log_ticks(axes, "y")
        axes.set_xlabel(wrap_x_label(x_label))
        axes.set_ylabel(wrap_y_label(y_label))
        axes.margins(x=0.04, y=0.08)
        finish(figure, axes, title, columns=5)
    return figure


def _ticks_at_points(axes: Axes, lines: Sequence[Line]) -> None:
    """Draws plain numbers below a logarithmic axis; if there are few points, at the points."""
    plain_log_ticks(axes, "x")
    at = sorted({point.load for line in lines for point in (*line.measured, *line.published)})
    if 0 < len(at) <= TICKS_MAX:
        axes.set_xticks(at)
        axes.xaxis.set_minor_locator(NullLocator())


def _draw(axes: Axes, line: Line, idx: int) -> None:
    colour, marker = PALETTE[idx % len(PALETTE)], MARKERS[idx % len(MARKERS)]
    measured = sorted(line.measured, key=lambda point: point.load)
    axes.plot(
        [point.load for point in measured],
        [point.value for point in measured],
        color=colour,
        marker=marker,
        markersize=4,
        linestyle=LINES[idx % len(LINES)],
        label=line.name,
        zorder=3,
    )
    grey = [point for point in measured if point.is_undecided]
    x, y = [point.load for point in grey], [point.value for point in grey]
    draw_undecided(axes, x, y, marker, 4)
    spread = [point for point in measured if point.least < point.most]
    draw_intervals(
        axes,
        [point.load for point in spread],
        [point.value for point in spread],
        [(point.value - point.least, point.most - point.value) for point in spread],
        colour,
    )
    axes.plot(
        [point.load for point in line.published],
        [point.value for point in line.published],
        linestyle="none",
        marker=marker,
        markersize=9,
        markerfacecolor="none",
        markeredgecolor=colour,
        markeredgewidth=1.0,
        zorder=2,
    )
    axes.plot(
        [point.load for point in line.variant],
        [point.value for point in line.variant],
        linestyle="none",
        marker="x",
        markersize=6,
        markeredgewidth=1.6,
        color=colour,
        zorder=4,
    )


def _proxies(axes: Axes, lines: Sequence[Line], variant_name: str) -> None:
    """Adds legend entries that apply to all lines."""
    if any(line.published for line in lines):
        axes.plot(
            [],
            [],
            linestyle="none",
            marker="o",
            markersize=8,
            markerfacecolor="none",
            markeredgecolor=PUBLISHED,
            label="expected",
        )
    if any(point.least < point.most for line in lines for point in line.measured):
        label_intervals(axes, RANGE)
    if any(point.is_undecided for line in lines for point in line.measured):
        label_undecided(axes)
    if any(line.variant for line in lines):
        axes.plot(
            [], [], linestyle="none", marker="x", markeredgewidth=1.6, color="k", label=variant_name
        )
