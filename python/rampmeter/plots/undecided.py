"""Grey marks of measured values that have no verdict yet, and their legend entry."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from rampmeter.plots.colours import NO_VERDICT, UNDECIDED


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
