"""Causes of slowdown: stacked by flow size, who delayed whom, and differences of transports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, LogNorm, to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from rampmeter.plots.intervals import draw_intervals
from rampmeter.plots.style import (
    NEUTRAL,
    OWN,
    ROW,
    WIDTH,
    current_format,
    finish,
    house_style,
    new_figure,
    new_panels,
    split_unit,
    wrap_to_width,
)

COLOURS: Final[Mapping[str, tuple[str, str]]] = {
    "serialisation": ("#D9D9D9", ""),
    "propagation": ("#A6A6A6", ""),
    "switching": ("#737373", ""),
    "cut-through": ("#F0E442", ""),
    "sender-link": ("#E69F00", ""),
    "permission": ("#0072B2", ""),
    "permission-in-flight": ("#9AD1F5", "////"),
    "queueing": ("#D55E00", "...."),
    "paused": ("#CC79A7", "\\\\\\\\"),
    "loss": ("#1A1A1A", ""),
    "retransmission": ("#882255", "xxxx"),
    "ordering": ("#009E73", "----"),
}
"""Colour and hatching of each cause; greys are those of a flow alone."""
DARKEST, LIGHTEST = "#08306B", "#5DA5DA"
"""Colours of the first and the last stage of permission."""
SCALE: Final = ("#FCF3EA", "#F9C98D", "#D55E00", "#5A1E00")
"""Colours of waits, from short to long."""
BAR: Final = 0.72
"""Width of a bar, as a share of the distance between bars."""
HIDDEN_BELOW: Final = 0.01
"""Causes below this share of every bar have no entry in the legend, or no row of differences."""
DARK_ABOVE: Final = 0.55
"""Part of the colour scale above which numbers are white."""


@dataclass(frozen=True)
class CauseKey:
    """A cause, the stage of the transport, and the name of both in legends."""

    cause: str
    stage: str
    name: str


@dataclass(frozen=True)
class CauseBars:
    """Mean slowdown by flow size, divided by cause."""

    sizes: Sequence[str]
    """Ranges of sizes, such as `1-2 BDP`."""
    parts: Mapping[CauseKey, Sequence[float]]
    """Parts of the mean slowdown of each size, from below; NaN of sizes without flows."""


@dataclass(frozen=True)
class CauseDifferences:
    """Differences of mean slowdown of the same flows, cause by cause."""

    size: str
    values: Mapping[CauseKey, tuple[float, float | None]]
    """The mean difference and half its interval."""
    total: tuple[float, float | None]


def slowdown_by_cause(panels: Mapping[str, CauseBars], *, ax: Axes | None = None) -> Figure:
    """Draws mean slowdown by flow size, stacked by cause, a panel for each name.

    The legend has the order of the stack. The line is the slowdown of an idle network.
    """
    keys = [key for bars in panels.values() for key in bars.parts]
    styles = _styles(keys)
    with house_style():
        if ax is not None or len(panels) == 1:
            figure, axes = new_figure(width=5.2, ax=ax)
            all_axes = [axes]
        else:
            figure, all_axes = new_panels(len(panels), height=2.8, column_min=2.6)
        shown: set[CauseKey] = set()
        for axes, (name, bars) in zip(all_axes, panels.items(), strict=True):
            shown |= _draw_stack(axes, bars, styles)
            if len(panels) > 1:
                axes.set_title(name, fontsize=current_format().font_size)
        _, x_label = split_unit(next(iter(panels.values())).sizes, "Flow size")
        _label_outer(all_axes, x_label, "Mean slowdown")
        order = [key for key in reversed(list(styles)) if key in shown]
        _legend(figure, all_axes[0], [_patch(key, styles[key]) for key in order])
    return figure


def wait_matrices(
    panels: Mapping[str, Sequence[Sequence[float]]],
    sizes: Sequence[str],
    *,
    ax: Axes | None = None,
) -> Figure:
    """Draws who delayed whom: mean microseconds that a flow of each size waited for each size.

    Rows are flows that waited. Their columns are the sizes of those that used the link, then other
    blockers, then the time in which no other flow used it. NaN is an empty cell.
    """
    cells = [value for rows in panels.values() for row in rows for value in row if value >= 0.05]
    high = max(cells, default=1.0)
    norm = LogNorm(min(0.1, high / 10), high, clip=True)
    short, x_label = split_unit(sizes, "Size of the flow that used the link")
    _, y_label = split_unit(sizes, "Size of the flow\nthat waited")
    with house_style():
        if ax is not None or len(panels) == 1:
            figure, axes = new_figure(width=5.2, height=3.3, ax=ax)
            all_axes = [axes]
        else:
            figure, all_axes = new_panels(len(panels), height=3.0, column_min=3.0)
        for axes, (name, rows) in zip(all_axes, panels.items(), strict=True):
            _draw_matrix(axes, rows, [*short, "others", "none"], short, norm)
            axes.set_title(
                f"{name}\n{_unattributed(rows)}" if name else _unattributed(rows),
                fontsize=current_format().font_size,
            )
        _label_outer(all_axes, x_label, y_label)
        if figure.get_label() == OWN:
            finish(figure, all_axes[0], "Mean time for which a flow waited (µs)", handles=[])
    return figure


def cause_differences(panels: Sequence[CauseDifferences], label: str) -> Figure:
    """Draws differences of mean slowdown cause by cause, with intervals, a panel for each size."""
    least = HIDDEN_BELOW * max((abs(panel.total[0]) for panel in panels), default=0.0)
    keys = [
        key
        for key in dict.fromkeys(key for panel in panels for key in panel.values)
        if any(abs(panel.values[key][0]) > least for panel in panels if key in panel.values)
    ]
    styles = _styles(keys)
    names = [key.name for key in keys]
    with house_style():
        height = 0.75 + 0.17 * (len(keys) + 1)
        figure, all_axes = new_panels(len(panels), height=height, column_min=1.7, is_exact=True)
        for axes, panel in zip(all_axes, panels, strict=True):
            axes.axvline(0.0, color=NEUTRAL, linewidth=0.7)
            axes.axhline(len(keys) - 0.5, color=NEUTRAL, linewidth=0.5)
            for place, key in enumerate(keys):
                if key in panel.values:
                    _draw_difference(axes, place, panel.values[key], styles[key][0])
            _draw_difference(axes, len(keys), panel.total, "#000000", marker="D")
            axes.set_title(panel.size, fontsize=current_format().font_size)
            axes.set_yticks(range(len(keys) + 1), [*names, "all causes"])
            axes.set_ylim(-0.6, len(keys) + 0.6)
            axes.tick_params(axis="y", length=0)
            axes.grid(axis="y", visible=False)
            axes.grid(axis="x")
        _label_outer(all_axes, "", "")
        figure.supxlabel(wrap_to_width(figure, label), fontsize=current_format().font_size)
        finish(figure, all_axes[0], handles=[])
    return figure


def _draw_stack(
    axes: Axes, bars: CauseBars, styles: Mapping[CauseKey, tuple[str, str]]
) -> set[CauseKey]:
    """Draws bars of parts, and their sums above them; returns the visible causes."""
    labels, _ = split_unit(bars.sizes, "")
    places = np.arange(len(labels))
    bottoms = np.zeros(len(labels))
    totals = np.sum([np.nan_to_num(values) for values in bars.parts.values()], axis=0)
    shown = set()
    for key, values in bars.parts.items():
        heights = np.nan_to_num(np.asarray(values, dtype=float))
        colour, hatch = styles[key]
        axes.bar(
            places, heights, BAR, bottoms, color=colour, hatch=hatch, edgecolor="white",
            linewidth=0.3,
        )  # fmt: skip
        bottoms += heights
        if (heights > HIDDEN_BELOW * np.maximum(totals, 1e-9)).any():
            shown.add(key)
    size = current_format().font_size * 0.78
    for place, total in zip(places, totals, strict=True):
        if total > 0:
            axes.annotate(
                f"{total:.2f}", (place, total), (0, 1.5), textcoords="offset points",
                ha="center", va="bottom", fontsize=size,
            )  # fmt: skip
    axes.axhline(1.0, color="black", linewidth=0.7, linestyle=(0, (4, 3)))
    axes.set_xticks(places, labels)
    axes.tick_params(axis="x", length=0)
    top = max(float(totals.max(initial=0.0)), axes.get_ylim()[1] / 1.05)
    axes.set_ylim(0, top * 1.05)
    return shown


def _draw_matrix(
    axes: Axes,
    rows: Sequence[Sequence[float]],
    columns: Sequence[str],
    names: Sequence[str],
    norm: LogNorm,
) -> None:
    """Draws cells with their numbers; those of others and of none are apart."""
    colours = LinearSegmentedColormap.from_list("waits", SCALE)
    n = len(names)
    values = np.asarray(rows, dtype=float)
    at = [*range(n), n + 0.25, n + 1.25]
    size = current_format().font_size * 0.75
    for y, row in enumerate(values.tolist()):
        for x, value in zip(at, row, strict=True):
            if value != value:
                continue
            level = float(norm(value)) if value > 0 else 0.0
            axes.add_patch(
                _cell(x, y, colours(level)),
            )
            colour = "white" if level > DARK_ABOVE else "black"
            axes.text(x, y, _short(value), ha="center", va="center", color=colour, fontsize=size)
    axes.grid(visible=False)
    axes.set_xticks(at, columns)
    for label in axes.get_xticklabels()[n:]:
        label.set(rotation=35, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(n), names)
    axes.tick_params(length=0)
    axes.set_xlim(-0.55, n + 1.8)
    axes.set_ylim(n - 0.45, -0.55)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _unattributed(rows: Sequence[Sequence[float]]) -> str:
    """Returns the share of the waits of an average class without another flow on the link."""
    values = np.nan_to_num(np.asarray(rows, dtype=float))
    total = max(float(values.sum()), 1e-12)
    none, others = (float(values[:, idx].sum()) / total for idx in (-1, -2))
    return f"none {none:.0%}, others {others:.1%}".replace("%", " %")


def _cell(x: float, y: float, colour: Any) -> Patch:
    return Rectangle((x - 0.48, y - 0.47), 0.96, 0.94, facecolor=colour, edgecolor="none")


def _short(value: float) -> str:
    """Returns a number with at most two digits after the point, and with about three in all."""
    if value < 0.005:
        return "0"
    return f"{value:.2f}" if value < 1 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def _draw_difference(
    axes: Axes, place: float, value: tuple[float, float | None], colour: str, marker: str = "o"
) -> None:
    mean, half = value
    if mean != mean:
        return
    weight = current_format().weight
    if half is not None:
        draw_intervals(axes, [place], [mean], [(half, half)], colour, is_horizontal=True)
    axes.plot(
        [mean], [place], marker=marker, color=colour, markersize=3.6 * weight, linestyle="none",
        markeredgecolor="black", markeredgewidth=0.4 * weight, zorder=3,
    )  # fmt: skip


def _styles(keys: Sequence[CauseKey]) -> dict[CauseKey, tuple[str, str]]:
    """Returns colour and hatching of each cause, in the order of the stack from below."""
    order = list(COLOURS)
    distinct = sorted(dict.fromkeys(keys), key=lambda key: order.index(key.cause))
    stages = [key for key in distinct if key.cause == "permission"]
    found = {key: COLOURS[key.cause] for key in distinct}
    if len(stages) > 1:
        first, last = np.asarray(to_rgb(DARKEST)), np.asarray(to_rgb(LIGHTEST))
        for idx, key in enumerate(stages):
            found[key] = (to_hex(first + (last - first) * idx / (len(stages) - 1)), "")
    return found


def _patch(key: CauseKey, style: tuple[str, str]) -> Patch:
    colour, hatch = style
    return Patch(facecolor=colour, hatch=hatch, edgecolor="white", linewidth=0.3, label=key.name)


def _legend(figure: Figure, axes: Axes, handles: Sequence[Patch]) -> None:
    """Adds a legend in the order of the stack: on the right, or above narrow axes.

    Within the axes of a caller it belongs to these.
    """
    if figure.get_label() != OWN:
        axes.legend(handles=list(handles))
        return
    width, height = (float(inches) for inches in figure.get_size_inches())
    is_narrow = width < WIDTH
    if is_narrow:
        rows = -(-len(handles) // 2)
        figure.set_size_inches(width, height + ROW * current_format().scale * rows)
    figure.legend(
        handles=list(handles),
        loc="outside upper left" if is_narrow else "outside right upper",
        ncols=2 if is_narrow else 1,
        handlelength=1.2,
        handletextpad=0.5,
        columnspacing=1.3,
        borderpad=0.2,
    )


def _label_outer(all_axes: Sequence[Axes], x_label: str, y_label: str) -> None:
    """Names the axes of the panels at the left and at the bottom."""
    spec = all_axes[0].get_subplotspec()
    n_columns = spec.get_gridspec().ncols if spec and len(all_axes) > 1 else 1
    for number, axes in enumerate(all_axes):
        if number + n_columns >= len(all_axes):
            axes.set_xlabel(x_label)
        if number % n_columns == 0:
            axes.set_ylabel(y_label)
