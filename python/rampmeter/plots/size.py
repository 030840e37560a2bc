"""Slowdown by flow size and by workload: means, with whiskers up to the 99th percentile."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rampmeter.plots.style import (
    INTERVAL,
    MARKERS,
    PALETTE,
    PUBLISHED,
    finish,
    house_style,
    new_figure,
    plain_log_ticks,
    wrap_y_label,
)
from rampmeter.text.numbers import thousands

N = len(PALETTE)
GROUP_WIDTH = 0.8
"""The part of the axis for the marks of one group."""

SLOWDOWN = "Slowdown (mark: mean, whisker: p99)"

TICK_CHARACTER, AXIS = 0.072, 4.0
"""Width of a character below an axis, and of the axes of figures, in inches."""

GROUP, ROW, AROUND = 0.08, 0.14, 0.75
"""Heights of lying groups in inches: between them, of a series, above and below all of them."""


@dataclass(frozen=True)
class GroupSeries:
    """Marks of one shape and colour, one a group; `None` if there is no value."""

    name: str
    means: Sequence[float | None]
    p99s: Sequence[float | None]
    is_published: bool = False
    mean_errors: Sequence[float | None] = ()
    """Half the widths of the means' confidence intervals, if any."""
    p99_errors: Sequence[float | None] = ()
    """The same of the 99th percentiles."""
    ranges: Sequence[tuple[float, float]] = ()
    """The least and the largest value behind each mean, such as those of several seeds."""


@dataclass(frozen=True)
class SizeSeries(GroupSeries):
    """The marks of one result by flow size."""

    labels: Sequence[str] = ()


def slowdown_by_size(
    series: Sequence[SizeSeries],
    *,
    title: str = "",
    x_label: str = "Flow size",
    y_label: str = SLOWDOWN,
    is_slowdown: bool = True,
    ax: Axes | None = None,
) -> Figure:
    """Draws mean slowdown by flow size, with whiskers up to the 99th percentile, or another
    quantity.

    Means and percentiles with intervals have error bars. `ax` is drawn into, instead of a new
    figure.
    """
    if not series:
        raise ValueError("expected at least one series, got none")
    return grouped(
        series[0].labels,
        series,
        title=title,
        x_label=x_label,
        y_label=y_label,
        is_slowdown=is_slowdown,
        ax=ax,
    )


def grouped(
    labels: Sequence[str],
    series: Sequence[GroupSeries],
    *,
    title: str = "",
    x_label: str = "",
    y_label: str = SLOWDOWN,
    is_slowdown: bool = True,
    ax: Axes | None = None,
) -> Figure:
    """Draws groups of marks: means, with whiskers up to the 99th percentile if it is available.

    Groups are drawn below each other if their labels do not fit in one row. Published values
    are hollow.
    """
    with house_style():
        is_horizontal = ax is None and not _fit(labels)
        if is_horizontal:
            figure, axes = new_figure(height=AROUND + len(labels) * (GROUP + ROW * len(series)))
        else:
            figure, axes = new_figure(ax=ax)
        # Seven colours and shapes; further series have the next shape of each colour.
        styles = ((MARKERS[(i + i // N) % N], PALETTE[i % N]) for i in count())
        is_paired = sum(one.is_published for one in series) > 1
        held: tuple[str, str] | None = None
        for idx, one in enumerate(series):
            if one.is_published:
                # If there are several, each has the shape and colour of the measured one behind it.
                held = next(styles) if is_paired else None
                style = held or (MARKERS[0], PUBLISHED)
            else:
                style, held = held or next(styles), None
            _draw(axes, one, style, (idx, len(series)), is_horizontal=is_horizontal)
        values = [v for one in series for v in (*one.means, *one.p99s) if v is not None]
        which = "x" if is_horizontal else "y"
        if is_slowdown:
            _scale(axes, values, which)
        else:
            _scale_of_quantity(axes, values, which)
        if is_horizontal:
            axes.set_yticks(range(len(labels)), labels)
            axes.tick_params(axis="y", length=0)
            axes.set_ylim(len(labels) - 0.4, -0.6)
            axes.grid(axis="y", visible=False)
            axes.grid(axis="x")
            axes.set_xlabel(wrap_y_label(y_label))
            axes.set_ylabel(wrap_y_label(x_label))
        else:
            axes.set_xticks(range(len(labels)), labels)
            axes.tick_params(axis="x", length=0)
            axes.set_xlim(-0.6, len(labels) - 0.4)
            axes.set_xlabel(x_label)
            axes.set_ylabel(wrap_y_label(y_label))
        finish(figure, axes, title)
    return figure


def _fit(labels: Sequence[str]) -> bool:
    """Returns true if adjacent labels of groups fit without touching."""
    room = AXIS / (len(labels) + 0.2)
    both = (len(one) + len(other) for one, other in pairwise(labels))
    return max(both, default=0) / 2 * TICK_CHARACTER + 0.05 <= room


def _draw(
    axes: Axes,
    series: GroupSeries,
    style: tuple[str, str],
    place: tuple[int, int],
    *,
    is_horizontal: bool,
) -> None:
    (marker, colour), (idx, n_series) = style, place
    step = GROUP_WIDTH / n_series
    shown = [i for i, mean in enumerate(series.means) if mean is not None]
    centres = [i - GROUP_WIDTH / 2 + (idx + 0.5) * step for i in shown]
    means = [series.means[i] or 0.0 for i in shown]
    axes.plot(
        *((means, centres) if is_horizontal else (centres, means)),
        label=series.name,
        linestyle="none",
        marker=marker,
        markersize=5 if series.is_published else 4.5,
        markerfacecolor="white" if series.is_published else colour,
        markeredgecolor=colour,
        zorder=3,
    )
    whiskers = [
        (centre, mean, top)
        for i, centre, mean in zip(shown, centres, means, strict=True)
        if (top := series.p99s[i]) is not None and top > mean
    ]
    if whiskers:
        at, bottoms, tops = zip(*whiskers, strict=True)
        draw_lines = axes.hlines if is_horizontal else axes.vlines
        draw_lines(at, bottoms, tops, color=colour, linewidth=0.8)
        axes.plot(
            *((tops, at) if is_horizontal else (at, tops)),
            linestyle="none",
            marker="|" if is_horizontal else "_",
            markersize=min(6, step * 30),
            color=colour,
        )
    for values, errors in ((series.means, series.mean_errors), (series.p99s, series.p99_errors)):
        drawn_centres = dict(zip(shown, centres, strict=True))
        halves = [(error, error) if error is not None else None for error in errors]
        _draw_errors(axes, drawn_centres, values, halves, is_horizontal=is_horizontal)
    spreads = [
        (mean - least, most - mean) if mean is not None else None
        for mean, (least, most) in zip(series.means, series.ranges, strict=False)
    ]
    _draw_errors(
        axes,
        dict(zip(shown, centres, strict=True)),
        series.means,
        spreads,
        is_horizontal=is_horizontal,
    )


def _draw_errors(
    axes: Axes,
    centres: Mapping[int, float],
    values: Sequence[float | None],
    errors: Sequence[tuple[float, float] | None],
    *,
    is_horizontal: bool,
) -> None:
    """Draws intervals wider than the whiskers, so that both can be distinguished."""
    drawn = [
        (centres[i], value, error)
        for i, (value, error) in enumerate(zip(values, errors, strict=False))
        if i in centres and value is not None and error is not None
    ]
    if drawn:
        at, middles, sizes = zip(*drawn, strict=True)
        # The mean of equal values may differ from them in its last digit.
        both = [[max(0.0, size) for size in side] for side in zip(*sizes, strict=True)]
        look: dict[str, Any] = {
            "fmt": "none",
            "ecolor": INTERVAL,
            "elinewidth": 2.2,
            "alpha": 0.75,
        }
        if is_horizontal:
            axes.errorbar(middles, at, xerr=both, **look)
        else:
            axes.errorbar(at, middles, yerr=both, **look)


def _scale(axes: Axes, values: Sequence[float], which: str) -> None:
    """Sets the scale from 1 (an idle network), logarithmic for more than a decade."""
    top = max(values, default=2.0) or 1.0
    if top > 20:
        axes.set(**{f"{which}scale": "log", f"{which}lim": (0.9, top * 1.3)})
        plain_log_ticks(axes, which)
        axis = axes.xaxis if which == "x" else axes.yaxis
        axis.set_minor_formatter(lambda value, _: thousands(value) if value in (2, 5, 20) else "")
    else:
        # By the ideal of an authors' simulator a flow may be faster than in an idle network.
        least = min(1.0, *values, 1.0)
        span = max(top - least, 0.1)
        axes.set(**{f"{which}lim": (least - 0.06 * span, least + 1.08 * span)})
    draw_line = axes.axvline if which == "x" else axes.axhline
    draw_line(1.0, color="#888888", linewidth=0.7, linestyle=(0, (4, 3)), zorder=0.5)


def _scale_of_quantity(axes: Axes, values: Sequence[float], which: str) -> None:
    """Sets the scale from zero; logarithmic if the values span more than a decade."""
    top = max(values, default=1.0) or 1.0
    least = min((value for value in values if value > 0.0), default=top)
    if top > 20 * least:
        axes.set(**{f"{which}scale": "log", f"{which}lim": (least * 0.7, top * 1.3)})
        plain_log_ticks(axes, which)
    else:
        axes.set(**{f"{which}lim": (0, top * 1.08)})
