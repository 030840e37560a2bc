"""Completion times of collectives by their rounds, with the lower bound of each."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rampmeter.plots.replications import Series, replicated
from rampmeter.plots.style import house_style

BOUND = "lower bound"
"""Legend entry of the least time that any transport can reach."""


def completion_times(
    panels: Mapping[str, Sequence[Series]], *, interval: str = "", ax: Axes | None = None
) -> Figure:
    """Draws completion times in microseconds by round, a panel for each collective.

    `interval` is the legend entry of intervals over seeds.
    """
    figure = replicated(
        panels if len(panels) > 1 else next(iter(panels.values())),
        x_label="Round",
        y_label="Completion time (µs)",
        title="" if len(panels) > 1 else next(iter(panels)),
        interval=interval,
        ax=ax,
    )
    with house_style():
        for axes in figure.axes if ax is None else [ax]:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
            # Differences are seen as shares of the time.
            axes.set_ylim(0, 1.08 * axes.get_ylim()[1])
    return figure
