"""Delay bounds: spreads of slowdown, and the load that a bound buys."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from rampmeter import cosy
from rampmeter.plots.special_marks import draw_undecided, label_undecided
from rampmeter.plots.style import (
    LINES,
    MARKERS,
    PALETTE,
    finish,
    house_style,
    new_figure,
    plain_log_ticks,
)


@dataclass(frozen=True)
class SlowdownSpread:
    """The slowdowns of one run."""

    name: str
    load: float
    min: float
    mean: float
    p99: float
    p999: float
    max: float


@dataclass(frozen=True)
class Tradeoff:
    """One setting's sustained load and bound."""

    name: str
    load: float
    bound_us: float
    is_undecided: bool = False
    """True if the value has no verdict yet; it is grey."""
    series: str = ""
    """The name of its series in the legend."""


def spread(spreads: Sequence[SlowdownSpread], *, title: str = "") -> Figure:
    """Draws boxes from the mean to p99.9 with p99 inside, and whiskers to both ends."""
    with house_style():
        figure, axes = new_figure(height=3.3)
        names = list(dict.fromkeys(one.name for one in spreads))
        loads = sorted({one.load for one in spreads})
        width = 0.8 / max(1, len(names))
        for idx, name in enumerate(names):
            own = [one for one in spreads if one.name == name]
            colour = PALETTE[idx % len(PALETTE)]
            axes.bxp(
                [
                    {
                        "whislo": one.min,
                        "q1": one.mean,
                        "med": one.p99,
                        "q3": one.p999,
                        "whishi": one.max,
                    }
                    for one in own
                ],
                positions=[
                    loads.index(one.load) + (idx - (len(names) - 1) / 2) * width for one in own
                ],
                widths=0.8 * width,
                showfliers=False,
                boxprops={"color": colour},
                whiskerprops={"color": colour},
                capprops={"color": colour},
                medianprops={"color": colour},
                manage_ticks=False,
            )
            axes.plot([], [], color=colour, label=name)
        axes.set_yscale("log")
        plain_log_ticks(axes, "y")
        axes.set_xticks(range(len(loads)), [f"{load:g}" for load in loads])
        axes.set_xlabel("Offered load (fraction of access capacity, headers included)")
        axes.set_ylabel("Slowdown: min, mean, p99, p99.9, max")
        finish(figure, axes, title, columns=5)
    return figure


def tradeoff(points: Sequence[Tradeoff], *, title: str = "") -> Figure:
    """Draws sustained load against the bound, with the name of each point."""
    with house_style():
        figure, axes = new_figure()
        families: dict[str, list[Tradeoff]] = {}
        for point in points:
            families.setdefault(point.series, []).append(point)
        for idx, (family, own) in enumerate(families.items()):
            colour, style = PALETTE[idx % len(PALETTE)], LINES[idx % len(LINES)]
            marker = MARKERS[idx % len(MARKERS)]
            x, y = [one.bound_us for one in own], [one.load for one in own]
            axes.plot(
                x, y, color=colour, linestyle=style, marker=marker, label=family or "measured"
            )
            grey = [one for one in own if one.is_undecided]
            at = [one.bound_us for one in grey], [one.load for one in grey]
            draw_undecided(axes, *at, marker, 6)
            for one in own:
                axes.annotate(
                    one.name,
                    (one.bound_us, one.load),
                    textcoords="offset points",
                    xytext=(4, -9),
                    fontsize=7,
                )
        if any(point.is_undecided for point in points):
            label_undecided(axes)
        axes.set_xscale("log")
        plain_log_ticks(axes, "x")
        axes.set_ylim(0, 1)
        axes.set_xlabel("Delay bound (µs)")
        axes.set_ylabel("Sustained load")
        finish(figure, axes, title)
    return figure


def sustainable_share(cores: int, *, title: str = "") -> Figure:
    """Draws the share of the maximum sustainable load by virtual links (cosy, figure 2)."""
    slots = np.unique(np.logspace(0, 8, 40, base=2).astype(np.int64))
    with house_style():
        figure, axes = new_figure()
        share = [cosy.share(int(k), cores) for k in slots]
        axes.plot(slots, share, color=PALETTE[0], marker="o", markersize=3)
        axes.axhline(1 - 1 / np.e, color=PALETTE[1], linestyle="--", label="1 - 1/e")
        axes.set_xscale("log", base=2)
        plain_log_ticks(axes, "x")
        axes.set_ylim(0.5, 1.0)
        axes.set_xlabel("Virtual links per link (K)")
        axes.set_ylabel("Sustainable load over the best")
        finish(figure, axes, title)
    return figure
