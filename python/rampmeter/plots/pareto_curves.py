"""Maximum load by latency bound, over another setting."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from matplotlib.transforms import Transform, offset_copy

from rampmeter.plots.bound import Tradeoff
from rampmeter.plots.style import MARKERS, PALETTE, finish, house_style, new_figure
from rampmeter.text.numbers import thousands

APART_POINTS = 1.1
"""Distance between curves that sustain the same load, in points of 1/72 inch."""

THEOREMS = "theorems 3.4, 3.5"
"""Legend entry of a load and a bound from theorems."""


@dataclass(frozen=True)
class Curve:
    """The least bounds of one setting, by load."""

    name: str
    points: Sequence[Tradeoff]
    family: str
    """Curves of the same family share a colour. Theorems have the name of their family."""
    is_variant: bool = False
    """True for a variant of the family's curve; it is dashed."""


def pareto(
    curves: Sequence[Curve], theorems: Sequence[Tradeoff] = (), *, title: str = ""
) -> Figure:
    """Draws the maximum load sustained at each bound, as steps.

    A theorem's point is a star in the colour of the family of its name.
    """
    with house_style():
        figure, axes = new_figure(4.6, 3.2)
        families = list(dict.fromkeys(curve.family for curve in curves))
        places = {family: idx for idx, family in enumerate(families)}
        bounds = [point.bound_us for curve in curves for point in curve.points]
        right_us = 1.25 * max(bounds, default=1e3)
        for idx, curve in enumerate(curves):
            offset_points = (idx - (len(curves) - 1) / 2) * APART_POINTS
            shift = offset_copy(axes.transData, figure, y=offset_points, units="points")
            _steps(axes, curve, places[curve.family], shift, right_us)
        _theorems(axes, theorems, places)
        axes.set_xscale("log")
        axes.set_xlim(right=right_us)
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda us, _: thousands(us / 1e3)))
        axes.xaxis.set_minor_formatter(NullFormatter())
        loads = [one.load for curve in curves for one in curve.points]
        loads += [one.load for one in theorems if one.name in places]
        axes.set_ylim(min(loads, default=0.1) - 0.05, 1.0)
        axes.grid(axis="x")
        axes.set_xlabel("Bound on latency (ms)")
        axes.set_ylabel("Highest load sustained")
        finish(figure, axes, title, columns=4)
    return figure


def pareto_front(points: Sequence[Tradeoff]) -> list[Tradeoff]:
    """Returns the undominated points by bound: each sustains a higher load than all before."""
    undominated: list[Tradeoff] = []
    for point in sorted(points, key=lambda one: (one.bound_us, -one.load)):
        if not undominated or point.load > undominated[-1].load:
            undominated.append(point)
    return undominated


def _steps(axes: Axes, curve: Curve, place: int, shift: Transform, right_us: float) -> None:
    """Draws steps with a marker at each start; the last step ends at the right edge."""
    points = pareto_front(curve.points)
    x, y = [one.bound_us for one in points], [one.load for one in points]
    colour, marker = PALETTE[place % len(PALETTE)], MARKERS[place % len(MARKERS)]
    axes.plot(
        [*x, right_us] if x else [],
        [*y, y[-1]] if x else [],
        color=colour,
        linewidth=0.9,
        linestyle=(0, (3, 1.5)) if curve.is_variant else "-",
        drawstyle="steps-post",
        marker=marker,
        markersize=3.6,
        markevery=range(len(x)),
        markerfacecolor="white" if curve.is_variant else colour,
        label=curve.name,
        transform=shift,
        zorder=3,
    )


def _theorems(axes: Axes, theorems: Sequence[Tradeoff], places: dict[str, int]) -> None:
    """Draws a star for each theorem of a drawn curve."""
    shown = [one for one in theorems if one.name in places]
    for one in shown:
        axes.plot(
            [one.bound_us],
            [one.load],
            linestyle="none",
            marker="*",
            markersize=8,
            color=PALETTE[places[one.name] % len(PALETTE)],
            zorder=4,
        )
    if shown:
        axes.plot([], [], linestyle="none", marker="*", markersize=8, color="k", label=THEOREMS)
