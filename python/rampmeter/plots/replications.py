"""A quantity by a key of the plan, with intervals over several seeds, in one or several panels."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from rampmeter.analysis.confidence import Interval
from rampmeter.plots.colours import Look, looks, markers
from rampmeter.plots.intervals import draw_intervals, label_intervals
from rampmeter.plots.special_marks import TOO_SHORT
from rampmeter.plots.style import (
    NEUTRAL,
    current_format,
    finish,
    house_style,
    new_figure,
    new_panels,
    plain_log_ticks,
    wrap_x_label,
    wrap_y_label,
)

TICKS_MAX: Final = 8
"""Maximum number of values of a key that each have a tick."""
GROUP: Final = 0.5
"""The part of the axis for the marks of a category."""
LOG_FROM: Final = 10.0
"""Minimum ratio of the largest to the smallest value on a logarithmic axis."""


@dataclass(frozen=True)
class Series:
    """A line: its values by the key, in their order."""

    name: str
    """The transport, which decides colour and line."""
    values: Sequence[tuple[float, Interval]]
    variant: str = ""
    """Value of a further key, such as the workload, which decides the marker."""
    hollow: frozenset[float] = frozenset()
    """Values of the key at which marks are hollow: runs that were too short."""


def replicated(
    series: Sequence[Series] | Mapping[str, Sequence[Series]],
    *,
    x_label: str,
    y_label: str,
    title: str = "",
    interval: str = "",
    categories: Sequence[str] = (),
    ax: Axes | None = None,
) -> Figure:
    """Draws means with their intervals as error bars; a mean of a single run has none.

    A mapping has the lines of several panels by title. `interval` is the legend entry of the
    intervals. `categories` are names of the values 0, 1, ... of the key. `ax` is drawn into,
    instead of a new figure.
    """
    panels = series if isinstance(series, Mapping) else {"": series}
    lines = [line for of in panels.values() for line in of]
    names = list(dict.fromkeys(line.name for line in lines))
    styles = dict(zip(names, looks(names), strict=True))
    shapes = markers([line.variant for line in lines if line.variant])
    with house_style():
        if ax is not None or len(panels) == 1:
            figure, axes = new_figure(height=3.3, ax=ax)
            all_axes = [axes]
        else:
            figure, all_axes = new_panels(len(panels))
        for axes, (name, of) in zip(all_axes, panels.items(), strict=True):
            for idx, line in enumerate(of):
                look = styles[line.name]
                marker = shapes.get(line.variant, look.marker)
                # Marks of a category are next to each other.
                shift = ((idx + 0.5) / len(of) - 0.5) * GROUP if categories else 0.0
                _draw(axes, line, look, marker, shift if categories else None)
            axes.set_title(name, fontsize=current_format().font_size)
        _scale(all_axes, lines, categories)
        _label(all_axes, x_label, y_label)
        if interval and any(at.ci for line in lines for _, at in line.values):
            label_intervals(all_axes[0], interval)
        own = all_axes[0].get_legend_handles_labels()[0]
        handles = [*_handles(styles, shapes, has_line=not categories), *own]
        if any(line.hollow for line in lines):
            handles.append(_mark(NEUTRAL, "o", TOO_SHORT, face="white"))
        finish(figure, all_axes[0], title, columns=8, handles=handles)
    return figure


def _draw(axes: Axes, line: Series, look: Look, marker: str, shift: float | None) -> None:
    """Draws a line, or the marks of categories with a shift."""
    weight = current_format().weight
    shown = [(x, at) for x, at in line.values if math.isfinite(at.mean)]
    hollow = [x in line.hollow for x, _ in shown]
    x, means = [x + (shift or 0.0) for x, _ in shown], [at.mean for _, at in shown]
    if shift is None:
        axes.plot(x, means, color=look.colour, linestyle=look.line, linewidth=1.2 * weight)
    for is_hollow in (False, True):
        at = [i for i, one in enumerate(hollow) if one is is_hollow]
        axes.plot(
            [x[i] for i in at],
            [means[i] for i in at],
            color=look.colour,
            marker=marker,
            linestyle="none",
            markersize=4 * weight,
            markeredgewidth=0.9 * weight,
            markerfacecolor="white" if is_hollow else look.colour,
            zorder=3,
        )
    known = [(one, at) for one, (_, at) in zip(x, shown, strict=True) if at.ci is not None]
    draw_intervals(
        axes,
        [one for one, _ in known],
        [at.mean for _, at in known],
        [(at.ci or 0.0, at.ci or 0.0) for _, at in known],
        look.colour,
    )


def _scale(panels: Sequence[Axes], lines: Sequence[Series], categories: Sequence[str]) -> None:
    """Sets ticks at the values of the key if there are few; axes of wide ranges are logarithmic."""
    x = sorted({x for line in lines for x, at in line.values if math.isfinite(at.mean)})
    y = [at.mean for line in lines for _, at in line.values if math.isfinite(at.mean)]
    for axes in panels:
        axes.margins(x=0.05, y=0.08)
        if categories:
            axes.set_xticks(range(len(categories)), categories)
            axes.set_xlim(-0.5, len(categories) - 0.5)
        elif is_wide(x) and len(x) > 2:
            axes.set_xscale("log")
            plain_log_ticks(axes, "x")
            if len(x) <= TICKS_MAX:
                axes.set_xticks(x)
                axes.xaxis.set_minor_locator(NullLocator())
        elif 0 < len(x) <= TICKS_MAX and _has_room(axes, x):
            axes.set_xticks(x, [f"{value:g}" for value in x])
        if is_wide(y):
            axes.set_yscale("log")
            plain_log_ticks(axes, "y")


def _has_room(axes: Axes, x: Sequence[float]) -> bool:
    """Returns true if labels at the values do not touch."""
    steps = [after - before for before, after in pairwise(x)]
    if not steps:
        return True
    form = current_format()
    inches = axes.get_position().width * float(axes.figure.figure.get_figwidth())
    room = inches * min(steps) / (x[-1] - x[0]) * 0.9
    return room > 0.0075 * form.font_size * max(len(f"{value:g}") + 1 for value in x)


def is_wide(values: Sequence[float]) -> bool:
    """Returns true if positive values need a logarithmic axis."""
    return len(values) > 0 and min(values) > 0.0 and max(values) >= LOG_FROM * min(values)


def _label(panels: Sequence[Axes], x_label: str, y_label: str) -> None:
    """Labels the outer axes."""
    spec = panels[0].get_subplotspec()
    n_columns = spec.get_gridspec().ncols if spec and len(panels) > 1 else 1
    for number, axes in enumerate(panels):
        if number + n_columns >= len(panels):
            axes.set_xlabel(wrap_x_label(x_label))
        if number % n_columns == 0:
            axes.set_ylabel(wrap_y_label(y_label))


def _handles(
    styles: Mapping[str, Look], shapes: Mapping[str, str], *, has_line: bool
) -> list[Line2D]:
    """Returns legend entries: a line for each transport, a mark for each variant if several."""
    weight = current_format().weight
    handles = [
        Line2D(
            [],
            [],
            color=look.colour,
            linestyle=look.line if has_line else "none",
            linewidth=1.2 * weight,
            marker="s" if shapes and not has_line else "" if shapes else look.marker,
            markersize=4 * weight,
            label=name,
        )
        for name, look in styles.items()
    ]
    handles += [_mark(NEUTRAL, shape, name) for name, shape in shapes.items()]
    return handles


def _mark(colour: str, marker: str, label: str, **look: Any) -> Line2D:
    size = 4 * current_format().weight
    face = look.get("face", colour)
    return Line2D(
        [],
        [],
        color=colour,
        marker=marker,
        linestyle="none",
        markersize=size,
        markerfacecolor=face,
        label=label,
    )
