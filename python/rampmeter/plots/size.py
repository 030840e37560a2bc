"""Slowdown by flow size and by workload: bars of means with the 99th percentile above."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, product

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rampmeter.comparison import Slowdowns
from rampmeter.plots.style import (
    HATCHES,
    INTERVAL,
    PALETTE,
    PUBLISHED,
    finish,
    house,
    new_figure,
    plain_log_ticks,
)
from rampmeter.results import Group
from rampmeter.text import thousands

GROUP_WIDTH = 0.8
"""The part of the axis that the bars of one group take."""

SLOWDOWN = "Slowdown (bar: mean, whisker: p99)"

HEIGHT, TILTED_HEIGHT = 3.1, 3.7
"""Inches of height, and those where labels are tilted, which takes room from the axes."""

WIDEST_LABELS = 12
"""Characters of labels to an inch of width that stand beside each other."""


@dataclass(frozen=True)
class BarSeries:
    """Bars of one colour, one a group; `None` where there is no value."""

    name: str
    means: Sequence[float | None]
    p99s: Sequence[float | None]
    is_published: bool = False
    mean_errors: Sequence[float | None] = ()
    """Half the widths of the means' confidence intervals, where there are any."""
    p99_errors: Sequence[float | None] = ()
    """The same of the 99th percentiles."""


@dataclass(frozen=True)
class SizeSeries(BarSeries):
    """The bars of one result by flow size."""

    labels: Sequence[str] = ()

    @classmethod
    def of(cls, name: str, groups: Sequence[Group]) -> "SizeSeries":
        """The series of size groups; empty groups have no bar."""
        return cls(
            name,
            [group.mean if group.count else None for group in groups],
            [group.p99 if group.count else None for group in groups],
            mean_errors=[group.half_widths.get("mean") for group in groups],
            p99_errors=[group.half_widths.get("p99") for group in groups],
            labels=[group.label for group in groups],
        )

    @classmethod
    def of_slowdowns(cls, name: str, groups: Sequence[Slowdowns]) -> "SizeSeries":
        """The series of a comparison; groups without flows, and infinite values, are left out."""

        def shown(value: float) -> float | None:
            return value if math.isfinite(value) else None

        return cls(
            name,
            [shown(group.mean.mean) for group in groups],
            [shown(group.p99.mean) for group in groups],
            mean_errors=[group.mean.half_width for group in groups],
            p99_errors=[group.p99.half_width for group in groups],
            labels=[group.label for group in groups],
        )


def slowdown_by_size(
    series: Sequence[SizeSeries],
    *,
    title: str = "",
    x_label: str = "Flow size",
    y_label: str = SLOWDOWN,
    is_slowdown: bool = True,
    ax: Axes | None = None,
) -> Figure:
    """Mean slowdown by flow size with whiskers up to the 99th percentile, or another quantity.

    Means and percentiles have error bars where their intervals are known. `ax` is drawn into,
    instead of a new figure.
    """
    if not series:
        raise ValueError("expected at least one series, got none")
    labels = series[0].labels
    width = max(4.6, 0.28 * len(labels) * len(series) + 1.6)
    return bars(
        labels,
        series,
        title=title,
        x_label=x_label,
        y_label=y_label,
        is_slowdown=is_slowdown,
        width=width,
        ax=ax,
    )


def bars(
    labels: Sequence[str],
    series: Sequence[BarSeries],
    *,
    title: str = "",
    x_label: str = "",
    y_label: str = SLOWDOWN,
    is_slowdown: bool = True,
    width: float = 4.6,
    ax: Axes | None = None,
) -> Figure:
    """Groups of bars: means, with whiskers up to the 99th percentile where it is known."""
    with house():
        is_tilted = sum(map(len, labels)) > WIDEST_LABELS * width
        figure, axes = new_figure(width, TILTED_HEIGHT if is_tilted else HEIGHT, ax=ax)
        # More series than colours differ in their patterns; the first pattern is of published ones.
        styles = cycle(product(("", *HATCHES[2:]), PALETTE))
        for idx, one in enumerate(series):
            style = (HATCHES[1], PUBLISHED) if one.is_published else next(styles)
            _draw(axes, one, style, (idx, len(series)))
        axes.set_xticks(range(len(labels)), labels)
        if is_tilted:
            axes.tick_params(axis="x", labelrotation=30)
            for label in axes.get_xticklabels():
                label.set_horizontalalignment("right")
        axes.tick_params(axis="x", length=0)
        axes.set_xlim(-0.6, len(labels) - 0.4)
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        values = [v for one in series for v in (*one.means, *one.p99s) if v is not None]
        if is_slowdown:
            _scale(axes, values)
        else:
            _scale_of_quantity(axes, values)
        finish(figure, axes, title)
    return figure


def _draw(axes: Axes, series: BarSeries, style: tuple[str, str], place: tuple[int, int]) -> None:
    (hatch, colour), (idx, n_series) = style, place
    step = GROUP_WIDTH / n_series
    shown = [i for i, mean in enumerate(series.means) if mean is not None]
    centres = [i - GROUP_WIDTH / 2 + (idx + 0.5) * step for i in shown]
    means = [series.means[i] or 0.0 for i in shown]
    axes.bar(
        centres,
        means,
        width=step * 0.88,
        label=series.name,
        color="white" if series.is_published else colour,
        edgecolor="white" if hatch and not series.is_published else colour,
        hatch=hatch,
        linewidth=0.8,
    )
    whiskers = [
        (centre, mean, top)
        for i, centre, mean in zip(shown, centres, means, strict=True)
        if (top := series.p99s[i]) is not None and top > mean
    ]
    if whiskers:
        at, bottoms, tops = zip(*whiskers, strict=True)
        axes.vlines(at, bottoms, tops, color="#222222", linewidth=0.8)
        axes.plot(
            at, tops, linestyle="none", marker="_", markersize=min(5, step * 18), color="#222222"
        )
    for values, errors in ((series.means, series.mean_errors), (series.p99s, series.p99_errors)):
        _draw_errors(axes, dict(zip(shown, centres, strict=True)), values, errors)


def _draw_errors(
    axes: Axes,
    centres: Mapping[int, float],
    values: Sequence[float | None],
    errors: Sequence[float | None],
) -> None:
    """Confidence intervals: bars wider than the whiskers, so that both can be told apart."""
    known = [
        (centres[i], value, error)
        for i, (value, error) in enumerate(zip(values, errors, strict=False))
        if i in centres and value is not None and error is not None
    ]
    if known:
        at, middles, half = zip(*known, strict=True)
        axes.errorbar(
            at, middles, yerr=half, fmt="none", ecolor=INTERVAL, elinewidth=2.2, alpha=0.75
        )


def _scale(axes: Axes, values: Sequence[float]) -> None:
    """From 1 (an idle network); logarithmic where the values span more than a decade."""
    top = max(values, default=2.0) or 1.0
    if top > 20:
        axes.set_yscale("log")
        axes.set_ylim(0.9, top * 1.3)
        plain_log_ticks(axes, "y")
        axes.yaxis.set_minor_formatter(
            lambda value, _: thousands(value) if value in (2, 5, 20) else ""
        )
    else:
        axes.set_ylim(0, top * 1.08)
    axes.axhline(1.0, color="#888888", linewidth=0.7, linestyle=(0, (4, 3)), zorder=0.5)


def _scale_of_quantity(axes: Axes, values: Sequence[float]) -> None:
    """From zero; logarithmic where the values span more than a decade."""
    top = max(values, default=1.0) or 1.0
    least = min((value for value in values if value > 0.0), default=top)
    if top > 20 * least:
        axes.set_yscale("log")
        axes.set_ylim(least * 0.7, top * 1.3)
        plain_log_ticks(axes, "y")
    else:
        axes.set_ylim(0, top * 1.08)
