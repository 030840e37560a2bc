"""Grey marks of values without a verdict, hollow ones of short runs, and their legend entries."""

from collections.abc import Sequence
from typing import Any, Final

from matplotlib.axes import Axes

from rampmeter.plots.colours import NO_VERDICT, UNDECIDED
from rampmeter.plots.style import NEUTRAL

TOO_SHORT: Final = "run too short"
"""Legend entry of hollow marks."""


def draw_undecided(
    axes: Axes, x: Sequence[float], y: Sequence[float], marker: str, size: float, **options: Any
) -> None:
    """Draws grey marks over those of points whose values have no verdict yet."""
    if x:
        axes.plot(
            x,
            y,
            linestyle="none",
            marker=marker,
            markersize=size,
            color=UNDECIDED,
            zorder=3.1,
            **options,
        )


def label_undecided(axes: Axes) -> None:
    """Adds the legend entry of grey marks."""
    axes.plot([], [], linestyle="none", marker="o", markersize=4, color=UNDECIDED, label=NO_VERDICT)


def label_short(axes: Axes) -> None:
    """Adds the legend entry of hollow marks, those of runs that were too short."""
    axes.plot(
        [],
        [],
        linestyle="none",
        marker="o",
        markersize=4,
        markerfacecolor="white",
        markeredgecolor=NEUTRAL,
        label=TOO_SHORT,
    )
