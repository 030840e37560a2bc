"""Quantities over simulated time."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from rampmeter.plots.colours import looks
from rampmeter.plots.style import (
    LINES,
    PALETTE,
    current_format,
    finish,
    house_style,
    new_figure,
)

MARKS = 8
"""Number of marks of a line in steps."""
INTERVALS_MAX = 400
"""Maximum number of intervals drawn; more are averaged, since single ones are mostly noise."""


def utilisation(
    tiers: Mapping[str, tuple[NDArray[np.generic], NDArray[np.generic]]], *, ax: Axes | None = None
) -> Figure:
    """Draws utilisation of the links of each tier, from pairs of times in ps and fractions."""
    return _fractions(tiers, "Utilisation of links", ax)


def tenant_shares(
    time_ps: NDArray[np.generic],
    shares: Mapping[str, NDArray[np.generic]],
    *,
    ax: Axes | None = None,
) -> Figure:
    """Draws each tenant's share of the delivered bytes in each interval over time."""
    lines = {tenant: (time_ps, share) for tenant, share in shares.items()}
    return _fractions(lines, "Share of the bytes delivered", ax)


def _fractions(
    lines: Mapping[str, tuple[NDArray[np.generic], NDArray[np.generic]]],
    label: str,
    ax: Axes | None,
) -> Figure:
    """Draws fractions over time, from pairs of times in ps and values."""
    with house_style():
        figure, axes = new_figure(ax=ax)
        for idx, (name, (time_ps, fraction)) in enumerate(lines.items()):
            times, values = average_neighbours(
                time_ps.astype(np.float64) / 1e9, fraction.astype(np.float64)
            )
            axes.plot(
                times,
                values,
                color=PALETTE[idx % len(PALETTE)],
                linestyle=LINES[idx % len(LINES)],
                linewidth=1.2,
                label=name,
            )
        axes.set_ylim(0, 1.02)
        axes.set_xlim(left=0)
        axes.set_xlabel("Simulated time (ms)")
        axes.set_ylabel(label)
        finish(figure, axes)
    return figure


def average_neighbours(
    times: NDArray[np.float64], values: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Averages neighbouring intervals, so that at most `INTERVALS_MAX` remain."""
    group = -(-times.size // INTERVALS_MAX)
    if group <= 1:
        return times, values
    starts = np.arange(0, times.size, group)
    sizes = np.diff(np.append(starts, times.size))
    means = np.add.reduceat(values, starts) / sizes
    return times[starts + sizes - 1], means


def over_time(
    lines: Mapping[str, tuple[NDArray[np.generic], NDArray[np.generic]]],
    window_ps: tuple[float, float],
    label: str,
    *,
    scale: float = 1.0,
    top: float | None = None,
    bands: Sequence[tuple[float, float]] = (),
    ax: Axes | None = None,
) -> Figure:
    """Draws a quantity that changes in steps, from pairs of times in ps and values.

    Values are multiplied by `scale`. `top` is the end of the vertical axis. `bands` are times of
    outages, which are grey.
    """
    start, end = window_ps
    with house_style():
        figure, axes = new_figure(height=2.6, ax=ax)
        weight = current_format().weight
        for idx, (look, (name, (time_ps, values))) in enumerate(
            zip(looks(list(lines)), lines.items(), strict=True)
        ):
            heights = values.astype(np.float64) * scale
            axes.step(time_ps.astype(np.float64) / 1e6, heights, where="post", color=look.colour)
            # Dense steps hide dashes, so marks distinguish the lines, at different times.
            step = (end - start) / MARKS
            at = start + step * (np.arange(MARKS) + (idx + 0.5) / len(lines))
            before = np.searchsorted(time_ps, at, side="right") - 1
            shown = (
                (len(lines) > 1) & (before >= 0) & (at <= (time_ps[-1] if time_ps.size else start))
            )
            axes.plot(
                at[shown] / 1e6,
                heights[before[shown]],
                linestyle="none",
                marker=look.marker,
                markersize=4 * weight,
                color=look.colour,
                zorder=3,
            )
            axes.plot(
                [],
                [],
                color=look.colour,
                marker=look.marker,
                markersize=4 * weight,
                label=name if len(lines) > 1 else None,
            )
        for idx, (band_start, band_end) in enumerate(bands):
            axes.axvspan(
                band_start / 1e6,
                band_end / 1e6,
                color="0.85",
                linewidth=0,
                zorder=0,
                label=None if idx else "outage",
            )
        axes.set_xlim(start / 1e6, end / 1e6)
        axes.set_ylim(0, top)
        axes.set_xlabel("Time (µs)")
        axes.set_ylabel(label)
        finish(figure, axes, columns=5)
    return figure
