"""Time-space diagrams: the packets on each link of a switch over time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rampmeter.plots.style import INTERVAL, PALETTE, finish, house_style, new_figure


@dataclass(frozen=True)
class PacketTransit:
    """A packet on a link."""

    kind: str
    """The category of the packet, which decides its colour."""
    start_ns: float
    end_ns: float
    label: str = ""
    """Text drawn into the packet, if it fits."""


LABEL_SHARE = 0.05
"""Minimum share of the width for a packet with a label."""


def time_space(
    links: Mapping[str, Sequence[PacketTransit]],
    window_ns: tuple[float, float],
    *,
    kinds: Sequence[str] = (),
    every_ns: float = 0.0,
    title: str = "",
    ax: Axes | None = None,
) -> Figure:
    """Draws the packets on each of `links`, the first link at the top, in a window of time.

    `kinds` has all kinds of packets, in the order of their colours; those that are shown if it is
    empty. Dotted lines are drawn every `every_ns` from the start of the window.
    """
    start, end = window_ns
    shown = sorted({passage.kind for on in links.values() for passage in on})
    colours = {kind: PALETTE[(5 - idx) % len(PALETTE)] for idx, kind in enumerate(kinds or shown)}
    named: set[str] = set()
    with house_style():
        figure, axes = new_figure(6.4, 0.24 * len(links) + 0.9, ax=ax)
        for y, on in enumerate(links.values()):
            for passage in on:
                width = passage.end_ns - passage.start_ns
                axes.barh(
                    y,
                    width,
                    left=passage.start_ns - start,
                    height=0.72,
                    color=colours[passage.kind],
                    label=None if passage.kind in named else passage.kind,
                    edgecolor="white",
                    linewidth=0.4,
                )
                named.add(passage.kind)
                if passage.label and width > LABEL_SHARE * (end - start):
                    centre = (passage.start_ns + passage.end_ns) / 2 - start
                    axes.text(
                        centre, y, passage.label, ha="center", va="center", size=6.5, clip_on=True
                    )
        for line in range(1, int((end - start) / every_ns) + 1) if every_ns else ():
            axes.axvline(line * every_ns, color=INTERVAL, linestyle=":", linewidth=0.8)
        axes.set_yticks(range(len(links)), list(links))
        axes.set_ylim(len(links) - 0.4, -0.6)
        axes.set_xlim(0, end - start)
        axes.set_xlabel("Time (ns)")
        axes.grid(visible=False)
        finish(figure, axes, title)
    return figure
