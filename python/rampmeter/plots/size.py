"""Slowdown by flow size and by workload: means, with whiskers up to the 99th percentile."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rampmeter.plots.colours import MARKERS, looks
from rampmeter.plots.intervals import RANGE, draw_intervals, label_intervals
from rampmeter.plots.special_marks import draw_undecided, label_short, label_undecided
from rampmeter.plots.style import (
    CHARACTER,
    PUBLISHED,
    SMALL,
    WIDTH,
    current_format,
    finish,
    house_style,
    new_figure,
    new_panels,
    plain_log_ticks,
    split_unit,
    wrap_y_label,
)

GROUP_WIDTH = 0.8
"""The part of the axis for the marks of one group."""

SLOWDOWN = "Slowdown (mean, p99)"
"""Label of an axis: marks are means, and whiskers end at the 99th percentile."""

AXIS = 0.87
"""Width of axes, as a share of that of their figure."""
BESIDE = 0.24
"""Distance of an interval from its mark, as a share of the room of a series."""

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
    hollow: frozenset[int] = frozenset()
    """Groups whose marks are hollow, such as those of runs that were too short."""
    undecided: frozenset[int] = frozenset()
    """Groups whose marks are grey: their values have no verdict yet."""

    @property
    def values(self) -> list[float]:
        """All means and percentiles."""
        return [value for value in (*self.means, *self.p99s) if value is not None]

    @property
    def ends(self) -> list[float]:
        """All means and percentiles with the upper ends of their intervals."""
        pairs = ((self.means, self.mean_errors), (self.p99s, self.p99_errors))
        tops = [
            value + (error or 0.0)
            for values, errors in pairs
            for value, error in zip(values, errors, strict=False)
            if value is not None
        ]
        return self.values + tops

    @property
    def has_intervals(self) -> bool:
        """True if a mean or a percentile has an interval."""
        return any(error is not None for error in (*self.mean_errors, *self.p99_errors))


@dataclass(frozen=True)
class SizeSeries(GroupSeries):
    """The marks of one result by flow size."""

    labels: Sequence[str] = ()

    def part(self, first: int, last: int) -> "SizeSeries":
        """Returns the groups from `first` to before `last`."""
        here = slice(first, last)
        return replace(
            self,
            means=self.means[here],
            p99s=self.p99s[here],
            mean_errors=self.mean_errors[here],
            p99_errors=self.p99_errors[here],
            ranges=self.ranges[here],
            hollow=frozenset(i - first for i in self.hollow),
            undecided=frozenset(i - first for i in self.undecided),
            labels=self.labels[here],
        )


def slowdown_by_size(
    series: Sequence[SizeSeries],
    *,
    title: str = "",
    x_label: str = "Flow size",
    y_label: str = SLOWDOWN,
    is_slowdown: bool = True,
    interval: str = "",
    ax: Axes | None = None,
) -> Figure:
    """Draws mean slowdown by flow size, with whiskers up to the 99th percentile, or another
    quantity.

    Means and percentiles with intervals have error bars; `interval` is their legend entry. Sizes at
    either end without any flow are left out. `ax` is drawn into, instead of a new figure.
    """
    if not series:
        raise ValueError("expected at least one series, got none")
    first, last = _used(series)
    labels, x_label = split_unit(series[0].labels[first:last], x_label)
    return grouped(
        labels,
        [one.part(first, last) for one in series],
        title=title,
        x_label=x_label,
        y_label=y_label,
        is_slowdown=is_slowdown,
        interval=interval,
        ax=ax,
    )


def sizes_by_panel(
    panels: Mapping[str, Sequence[SizeSeries]],
    *,
    title: str = "",
    y_label: str = SLOWDOWN,
    interval: str = "",
) -> Figure:
    """Draws slowdown by flow size in a panel for each name, with a common vertical axis."""
    with house_style():
        figure, axes_of = new_panels(len(panels), height=2.4, column_min=2.2)
        names = list(dict.fromkeys(one.name for of in panels.values() for one in of))
        styles = {
            name: (look.marker, look.colour) for name, look in zip(names, looks(names), strict=True)
        }
        parts = [one.part(*_used(of)) for of in panels.values() for one in of]
        has_intervals = any(one.has_intervals for one in parts)
        for axes, (name, series) in zip(axes_of, panels.items(), strict=True):
            shown = [one.part(*_used(series)) for one in series]
            for idx, one in enumerate(shown):
                _draw(axes, one, styles[one.name], (idx, len(shown)), is_horizontal=False)
            labels, x_label = split_unit(shown[0].labels, "Flow size")
            _label_groups(axes, labels, x_label, "", is_horizontal=False)
            axes.tick_params(axis="x", labelbottom=True)
            axes.set_title(name, fontsize=current_format().font_size)
        _scale(axes_of[0], [v for one in parts for v in one.ends], "y")
        for axes in axes_of[1:]:
            _draw_ideal(axes, "y")
        n_columns = axes_of[0].get_subplotspec().get_gridspec().ncols  # type: ignore[union-attr]
        for axes in axes_of[::n_columns]:
            axes.set_ylabel(wrap_y_label(y_label))
        if interval and has_intervals:
            label_intervals(axes_of[0], interval)
        if any(one.hollow for one in parts):
            label_short(axes_of[0])
        finish(figure, axes_of[0], title)
    return figure


def _used(series: Sequence[GroupSeries]) -> tuple[int, int]:
    """Returns the first group with a value, and the one after the last."""
    used = [i for one in series for i, mean in enumerate(one.means) if mean is not None]
    return (min(used), max(used) + 1) if used else (0, len(series[0].means))


def grouped(
    labels: Sequence[str],
    series: Sequence[GroupSeries],
    *,
    title: str = "",
    x_label: str = "",
    y_label: str = SLOWDOWN,
    is_slowdown: bool = True,
    interval: str = "",
    ax: Axes | None = None,
) -> Figure:
    """Draws groups of marks: means, with whiskers up to the 99th percentile if it is available.

    Groups are drawn below each other if their labels do not fit in one row. Published values
    are hollow.
    """
    with house_style():
        is_horizontal = ax is None and not _fit(labels)
        if is_horizontal:
            height = AROUND + len(labels) * (GROUP + ROW * len(series))
            figure, axes = new_figure(height=height, has_rows=True)
        else:
            figure, axes = new_figure(ax=ax)
        for idx, (one, style) in enumerate(zip(series, _styles(series), strict=True)):
            _draw(axes, one, style, (idx, len(series)), is_horizontal=is_horizontal)
        values = [v for one in series for v in one.ends]
        which = "x" if is_horizontal else "y"
        if is_slowdown:
            _scale(axes, values, which)
        else:
            _scale_of_quantity(axes, values, which)
        _label_groups(axes, labels, x_label, y_label, is_horizontal=is_horizontal)
        if interval and any(one.has_intervals for one in series):
            label_intervals(axes, interval)
        elif any(least < most for one in series for least, most in one.ranges):
            label_intervals(axes, RANGE)
        if any(one.undecided for one in series):
            label_undecided(axes)
        if any(one.hollow for one in series):
            label_short(axes)
        finish(figure, axes, title)
    return figure


def _styles(series: Sequence[GroupSeries]) -> list[tuple[str, str]]:
    """Returns marker and colour of each series.

    Several published series have those of the measured ones behind them; a single one is grey.
    """
    n_published = sum(one.is_published for one in series)
    measured = [one.name for one in series if not one.is_published]
    rest = iter(looks(measured) if measured else looks([one.name for one in series]))
    styles: list[tuple[str, str]] = []
    held: tuple[str, str] | None = None
    for one in series:
        if one.is_published and n_published == 1:
            styles.append((MARKERS[0], PUBLISHED))
            continue
        if held is None:
            found = next(rest)
            style = (found.marker, found.colour)
        else:
            style = held
        styles.append(style)
        held = style if one.is_published and measured else None
    return styles


def _label_groups(
    axes: Axes, labels: Sequence[str], x_label: str, y_label: str, *, is_horizontal: bool
) -> None:
    """Names the groups and both axes."""
    places = range(len(labels))
    if is_horizontal:
        axes.set_yticks(places, labels)
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(len(labels) - 0.4, -0.6)
        axes.grid(axis="y", visible=False)
        axes.grid(axis="x")
        axes.set_xlabel(wrap_y_label(y_label))
        axes.set_ylabel(wrap_y_label(x_label))
    else:
        axes.set_xticks(places, labels)
        axes.tick_params(axis="x", length=0)
        axes.set_xlim(-0.6, len(labels) - 0.4)
        axes.set_xlabel(x_label)
        axes.set_ylabel(wrap_y_label(y_label))


def _fit(labels: Sequence[str]) -> bool:
    """Returns true if adjacent labels of groups fit without touching."""
    form = current_format()
    room = AXIS * (form.width or WIDTH) / (len(labels) + 0.2)
    character = CHARACTER * form.font_size * SMALL * 1.06
    both = (len(one) + len(other) for one, other in pairwise(labels))
    return max(both, default=0) / 2 * character + 0.05 <= room


def _draw(
    axes: Axes,
    series: GroupSeries,
    style: tuple[str, str],
    place: tuple[int, int],
    *,
    is_horizontal: bool,
) -> None:
    (marker, colour), (idx, n_series) = style, place
    weight = current_format().weight
    step = GROUP_WIDTH / n_series
    shown = [i for i, mean in enumerate(series.means) if mean is not None]
    centres = [i - GROUP_WIDTH / 2 + (idx + 0.5) * step for i in shown]
    means = [series.means[i] or 0.0 for i in shown]
    is_hollow = [i in series.hollow or series.is_published for i in shown]
    for hollow in (False, True):
        drawn = [
            pair
            for pair, one in zip(zip(centres, means, strict=True), is_hollow, strict=True)
            if one is hollow
        ]
        # A legend entry is that of filled marks, if there are some.
        is_named = hollow is all(is_hollow) if is_hollow else not hollow
        if not drawn and not is_named:
            continue
        at, values = zip(*drawn, strict=True) if drawn else ((), ())
        axes.plot(
            *((values, at) if is_horizontal else (at, values)),
            label=series.name if is_named else None,
            linestyle="none",
            marker=marker,
            markersize=(5 if series.is_published else 4.2) * weight,
            markerfacecolor="white" if hollow else colour,
            markeredgecolor=colour,
            markeredgewidth=0.9 * weight,
            zorder=3,
        )
    grey = [idx for idx, i in enumerate(shown) if i in series.undecided]
    places = [centres[idx] for idx in grey], [means[idx] for idx in grey]
    draw_undecided(axes, *(places[::-1] if is_horizontal else places), marker, 4.2 * weight)
    whiskers = [
        (centre, mean, top)
        for i, centre, mean in zip(shown, centres, means, strict=True)
        if (top := series.p99s[i]) is not None and top > mean
    ]
    if whiskers:
        at, bottoms, tops = zip(*whiskers, strict=True)
        draw_lines = axes.hlines if is_horizontal else axes.vlines
        draw_lines(at, bottoms, tops, color=colour, linewidth=0.8 * weight)
        axes.plot(
            *((tops, at) if is_horizontal else (at, tops)),
            linestyle="none",
            marker="|" if is_horizontal else "_",
            markersize=min(6 * weight, step * 30),
            color=colour,
        )
    beside = dict(zip(shown, (centre + BESIDE * step for centre in centres), strict=True))
    for values_of, errors in (
        (series.means, series.mean_errors),
        (series.p99s, series.p99_errors),
    ):
        halves = [(error, error) if error is not None else None for error in errors]
        _draw_errors(axes, beside, values_of, halves, colour, is_horizontal=is_horizontal)
    spreads = [
        (mean - least, most - mean) if mean is not None else None
        for mean, (least, most) in zip(series.means, series.ranges, strict=False)
    ]
    _draw_errors(axes, beside, series.means, spreads, colour, is_horizontal=is_horizontal)


def _draw_errors(
    axes: Axes,
    places: Mapping[int, float],
    values: Sequence[float | None],
    errors: Sequence[tuple[float, float] | None],
    colour: str,
    *,
    is_horizontal: bool,
) -> None:
    """Draws intervals next to their marks, so that neither covers the other."""
    drawn = [
        (places[i], value, error)
        for i, (value, error) in enumerate(zip(values, errors, strict=False))
        if i in places and value is not None and error is not None
    ]
    if drawn:
        at, middles, halves = zip(*drawn, strict=True)
        draw_intervals(axes, at, middles, halves, colour, is_horizontal=is_horizontal)


def _scale(axes: Axes, values: Sequence[float], which: str) -> None:
    """Sets the scale from 1 (an idle network), logarithmic for more than a decade."""
    top = max(values, default=2.0) or 1.0
    if top > 20:
        axes.set(**{f"{which}scale": "log", f"{which}lim": (0.9, top * 1.3)})
        plain_log_ticks(axes, which)
    else:
        # By the ideal of an authors' simulator a flow may be faster than in an idle network.
        least = min(1.0, *values, 1.0)
        span = max(top - least, 0.1)
        axes.set(**{f"{which}lim": (least - 0.06 * span, least + 1.08 * span)})
    _draw_ideal(axes, which)


def _draw_ideal(axes: Axes, which: str) -> None:
    """Draws the slowdown of an idle network."""
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
