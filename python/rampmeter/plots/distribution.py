"""Cumulative distributions: completion times and queue lengths."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from rampmeter.plots.colours import looks
from rampmeter.plots.style import (
    LINES,
    PALETTE,
    PUBLISHED,
    finish,
    house_style,
    new_figure,
    plain_log_ticks,
)

POINTS_MAX = 2000
"""Points of a drawn curve; more cannot be seen and make files large."""


def fct_cdf(
    fct_ps: NDArray[np.generic], ideal_ps: NDArray[np.generic], *, ax: Axes | None = None
) -> Figure:
    """Draws completion times of finished flows, with those in an idle network."""
    fct = fct_ps.astype(np.float64)
    finished = np.isfinite(fct)
    with house_style():
        figure, axes = new_figure(ax=ax)
        measured = _cdf(fct[finished] / 1e6)
        axes.plot(*measured, color=PALETTE[0], drawstyle="steps-post", label="measured")
        ideal = ideal_ps.astype(np.float64)[finished] / 1e6
        idle: dict[str, Any] = {"linestyle": "--", "drawstyle": "steps-post"}
        axes.plot(*_cdf(ideal), color=PUBLISHED, label="idle network", **idle)
        _label_times(axes)
        finish(figure, axes)
    return figure


def fct_cdfs(fct_ps: Mapping[str, NDArray[np.float64]], *, ax: Axes | None = None) -> Figure:
    """Draws completion times of several runs. Undelivered flows are infinitely slow: their curve
    ends below 1.
    """
    with house_style():
        figure, axes = new_figure(ax=ax)
        for look, (name, fct) in zip(looks(list(fct_ps)), fct_ps.items(), strict=True):
            times, fractions = _cdf(fct / 1e6)
            delivered = np.isfinite(times)
            axes.plot(
                times[delivered],
                fractions[delivered],
                color=look.colour,
                linestyle=look.line,
                drawstyle="steps-post",
                label=name,
            )
        _label_times(axes)
        finish(figure, axes)
    return figure


def _label_times(axes: Axes) -> None:
    axes.set_xscale("log")
    plain_log_ticks(axes, "x")
    axes.set_ylim(0, 1.01)
    axes.set_xlabel("Flow completion time (µs)")
    axes.set_ylabel("Fraction of flows")


def queue_cdf(
    tiers: Mapping[str, tuple[NDArray[np.generic], NDArray[np.generic]]], *, ax: Axes | None = None
) -> Figure:
    """Draws queue lengths by tier, from pairs of upper edges in bytes and samples up to them.

    The fraction is of those samples that exceed each length, on a logarithmic axis: queues are
    empty most of the time, and only the tail matters.
    """
    with house_style():
        figure, axes = new_figure(ax=ax)
        for idx, (tier, (edges, samples)) in enumerate(tiers.items()):
            order = np.argsort(edges.astype(np.float64))
            counts = samples.astype(np.float64)[order]
            total = counts.sum()
            if total == 0:
                continue
            exceeding = np.clip(1.0 - np.cumsum(counts) / total, 0.0, 1.0)
            exceeding[exceeding < 0.5 / total] = np.nan
            axes.step(
                edges.astype(np.float64)[order] / 1e3,
                exceeding,
                where="post",
                color=PALETTE[idx % len(PALETTE)],
                linestyle=LINES[idx % len(LINES)],
                label=tier,
            )
        axes.set_yscale("log")
        axes.set_xlim(left=0)
        axes.set_xlabel("Queue length (kB)")
        axes.set_ylabel("Fraction of samples above")
        finish(figure, axes)
    return figure


def _cdf(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns the points of a distribution's curve, thinned evenly in probability."""
    if values.size == 0:
        return values, values
    ordered = np.sort(values)
    fractions = np.arange(1, ordered.size + 1) / ordered.size
    if ordered.size <= POINTS_MAX:
        return ordered, fractions
    picks = np.unique(np.linspace(0, ordered.size - 1, POINTS_MAX).astype(np.int64))
    return ordered[picks], fractions[picks]
