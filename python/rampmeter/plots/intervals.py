"""Confidence intervals: thin bars in the colour of their series, and their legend entry."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from matplotlib.axes import Axes

from rampmeter.plots.style import NEUTRAL, current_format


def draw_intervals(
    axes: Axes,
    at: Sequence[float],
    values: Sequence[float],
    halves: Sequence[tuple[float, float]],
    colour: str,
    *,
    is_horizontal: bool = False,
) -> None:
    """Draws a thin bar with small ends for each value, from below to above it by its `halves`."""
    if not at:
        return
    weight = current_format().weight
    # The mean of equal values may differ from them in its last digit.
    sizes = np.maximum(0.0, np.asarray(halves, dtype=float)).T
    axes.errorbar(
        values if is_horizontal else at,
        at if is_horizontal else values,
        **{"xerr" if is_horizontal else "yerr": sizes},
        fmt="none",
        ecolor=colour,
        elinewidth=0.8 * weight,
        capsize=1.6 * weight,
        capthick=0.8 * weight,
        zorder=2.5,
    )


RANGE: Final = "range over seeds"
"""Legend entry of bars from the least to the largest value of several seeds."""


def label_intervals(axes: Axes, text: str) -> None:
    """Adds the legend entry of all intervals of a figure, such as `95 % over 5 seeds`."""
    weight = current_format().weight
    axes.errorbar(
        [],
        [],
        yerr=[],
        fmt="none",
        ecolor=NEUTRAL,
        elinewidth=0.8 * weight,
        capsize=1.6 * weight,
        capthick=0.8 * weight,
        label=text,
    )
