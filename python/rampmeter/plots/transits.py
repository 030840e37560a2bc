"""Time-space diagrams: the packets on each link over time, a row for each link."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from rampmeter.plots.colours import COLOURS, PALETTE
from rampmeter.plots.style import (
    NEUTRAL,
    current_format,
    finish,
    house_style,
    new_figure,
    new_panels,
)


@dataclass(frozen=True)
class PacketTransit:
    """A packet on a link."""

    kind: str
    """The category of the packet, which decides its colour."""
    start_ns: float
    end_ns: float
    label: str = ""
    """Text drawn into the packet, if it fits."""


@dataclass(frozen=True)
class LinkRows:
    """The rows of a diagram."""

    links: Mapping[str, Sequence[PacketTransit]]
    """The packets on each link, the first link at the top."""
    drops_ns: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Times at which packets were dropped before each link."""


LABEL_SHARE: Final = 0.05
"""Minimum share of the width for a packet with a label."""
CONTROL: Final = "control"
"""The kind of control packets, which are drawn black, over the others, half as high, and at least
0.5 points wide."""
HEIGHT: Final = 0.76
"""Height of a packet, as a share of its row."""
ROW: Final = 0.16
"""Inches of a row in a diagram of several panels."""
MICROSECONDS_FROM_NS: Final = 2000.0
"""Minimum length of a window whose axis is in microseconds."""
EDGE_PACKETS: Final = 150.0
"""Maximum number of packets that fit the window, for white edges between them."""
DROP: Final = "#D00000"


def time_space(
    links: Mapping[str, Sequence[PacketTransit]],
    window_ns: tuple[float, float],
    *,
    kinds: Sequence[str] = (),
    every_ns: float = 0.0,
    drops_ns: Mapping[str, Sequence[float]] | None = None,
    title: str = "",
    ax: Axes | None = None,
) -> Figure:
    """Draws the packets on each of `links`, the first link at the top, in a window of time.

    `kinds` has all kinds of packets, in the order of their colours; those that are shown if it is
    empty. Dotted lines are drawn every `every_ns` from the start of the window, and crosses where
    packets were dropped before a link.
    """
    rows = LinkRows(links, drops_ns or {})
    shown = _kinds([rows])
    colours = {kind: PALETTE[(5 - idx) % len(PALETTE)] for idx, kind in enumerate(kinds or shown)}
    with house_style():
        figure, axes = new_figure(6.4, 0.24 * len(links) + 0.9, ax=ax, has_rows=True)
        _draw(axes, rows, window_ns, colours)
        _label(axes, window_ns, every_ns)
        _draw_names(axes, rows, window_ns)
        finish(figure, axes, title, handles=_handles(shown, colours, [rows]))
    return figure


def time_spaces(
    panels: Mapping[str, LinkRows],
    window_ns: tuple[float, float],
    *,
    kinds: Sequence[str],
    title: str = "",
    ax: Axes | None = None,
) -> Figure:
    """Draws a diagram for each of `panels`, which have the same links, over the same time.

    `kinds` has the kinds of packets in the order of their colours; `control` is black.
    """
    n_rows = max(len(rows.links) for rows in panels.values())
    others = [kind for kind in kinds if kind != CONTROL]
    # Black is the colour of control packets.
    hues = [hue for hue in COLOURS if hue != "#000000"]
    colours = {kind: hues[idx % len(hues)] for idx, kind in enumerate(others)}
    colours[CONTROL] = "#000000"
    with house_style():
        if len(panels) == 1:
            figure, axes = new_figure(6.4, ROW * n_rows + 0.9, ax=ax, has_rows=True)
            all_axes = [axes]
        else:
            figure, all_axes = new_panels(
                len(panels), 0.5 + ROW * n_rows, column_min=2.0, is_exact=True
            )
        n_columns = 1
        if spec := all_axes[0].get_subplotspec():
            n_columns = spec.get_gridspec().ncols
        for number, (axes, (name, rows)) in enumerate(zip(all_axes, panels.items(), strict=True)):
            _draw(axes, rows, window_ns, colours)
            _label(axes, window_ns, 0.0)
            axes.set_title(name, fontsize=current_format().font_size)
            if number + n_columns < len(panels):
                axes.set_xlabel("")
        shown = [kind for kind in kinds if kind in _kinds(panels.values())]
        handles = _handles(shown, colours, list(panels.values()))
        finish(figure, all_axes[0], title, columns=9, handles=handles)
    return figure


def _kinds(panels: Iterable[LinkRows]) -> list[str]:
    return sorted({one.kind for rows in panels for on in rows.links.values() for one in on})


def _draw(
    axes: Axes, rows: LinkRows, window_ns: tuple[float, float], colours: Mapping[str, str]
) -> None:
    """Draws the packets of each kind as a collection, and a cross for each drop."""
    start, end = window_ns
    weight = current_format().weight
    packets = [one for on in rows.links.values() for one in on]
    longest = max((one.end_ns - one.start_ns for one in packets), default=0.0)
    has_edges = longest * EDGE_PACKETS > end - start
    by_kind: dict[str, list[list[tuple[float, float]]]] = {}
    for y, on in enumerate(rows.links.values()):
        for one in on:
            left, right = one.start_ns - start, one.end_ns - start
            # Data is visible above and below control packets, which are drawn wider than they are.
            half = HEIGHT / 4 if one.kind == CONTROL else HEIGHT / 2
            low, high = y - half, y + half
            box = [(left, low), (right, low), (right, high), (left, high)]
            by_kind.setdefault(one.kind, []).append(box)
    for kind, boxes in by_kind.items():
        is_control = kind == CONTROL
        axes.add_collection(
            PolyCollection(
                boxes,
                facecolor=colours[kind],
                edgecolor=colours[kind] if is_control else "white",
                linewidth=(0.5 if is_control else 0.4 if has_edges else 0.0) * weight,
                label=kind,
                zorder=2.5 if is_control else 2,
            )
        )
    for y, name in enumerate(rows.links):
        times = [at - start for at in rows.drops_ns.get(name, ()) if start <= at <= end]
        if not times:
            # The layout has room for an empty line that is not clipped.
            continue
        axes.plot(
            times,
            [y - 0.5] * len(times),
            linestyle="none",
            marker="x",
            markersize=3.2 * weight,
            markeredgewidth=0.8 * weight,
            color=DROP,
            zorder=4,
            clip_on=False,
        )
    axes.set_yticks(range(len(rows.links)), list(rows.links))
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(rows.links) - 0.4, -0.6)


def _draw_names(axes: Axes, rows: LinkRows, window_ns: tuple[float, float]) -> None:
    """Draws the labels of packets that are wide enough."""
    start, end = window_ns
    for y, on in enumerate(rows.links.values()):
        for one in on:
            if one.label and one.end_ns - one.start_ns > LABEL_SHARE * (end - start):
                centre = (one.start_ns + one.end_ns) / 2 - start
                size = 0.72 * current_format().font_size
                axes.text(
                    centre, y, one.label, ha="center", va="center", fontsize=size, clip_on=True
                )


def _label(axes: Axes, window_ns: tuple[float, float], every_ns: float) -> None:
    """Labels the axis of time, from the start of the window."""
    start, end = window_ns
    for line in range(1, int((end - start) / every_ns) + 1) if every_ns else ():
        axes.axvline(line * every_ns, color=NEUTRAL, linestyle=":", linewidth=0.8)
    axes.set_xlim(0, end - start)
    axes.grid(visible=False)
    if end - start < MICROSECONDS_FROM_NS:
        axes.set_xlabel("Time (ns)")
        return
    axes.set_xlabel("Time (µs)")
    axes.xaxis.set_major_formatter(lambda value, _: f"{(value + start) / 1e3:g}")


def _handles(
    shown: Sequence[str], colours: Mapping[str, str], panels: Sequence[LinkRows]
) -> list[Patch | Line2D]:
    handles: list[Patch | Line2D] = [Patch(color=colours[kind], label=kind) for kind in shown]
    if any(times for rows in panels for times in rows.drops_ns.values()):
        cross = Line2D([], [], linestyle="none", marker="x", markersize=4, color=DROP, label="drop")
        handles.append(cross)
    return handles
