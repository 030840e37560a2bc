"""A quantity by a key of the plan, with intervals over several seeds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rampmeter.analysis.confidence import Interval
from rampmeter.plots.style import LINES, MARKERS, PALETTE, finish, house_style, new_figure


@dataclass(frozen=True)
class Series:
    """A line: its values by the key, in their order."""

    name: str
    values: Sequence[tuple[float, Interval]]


def replicated(
    series: Sequence[Series],
    *,
    x_label: str,
    y_label: str,
    title: str = "",
    ax: Axes | None = None,
) -> Figure:
    """Draws means with their intervals as error bars; a mean of a single run has none.

    `ax` is drawn into, instead of a new figure.
    """
    with house_style():
        figure, axes = new_figure(height=3.3, ax=ax)
        for idx, line in enumerate(series):
            shown = [(x, at) for x, at in line.values if math.isfinite(at.mean)]
            axes.errorbar(
                [x for x, _ in shown],
                [at.mean for _, at in shown],
                yerr=[at.half_width or 0.0 for _, at in shown],
                color=PALETTE[idx % len(PALETTE)],
                marker=MARKERS[idx % len(MARKERS)],
                linestyle=LINES[idx % len(LINES)],
                markersize=4,
                capsize=2.5,
                elinewidth=0.9,
                label=line.name,
            )
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        axes.margins(x=0.04, y=0.08)
        finish(figure, axes, title, columns=3)
    return figure
