"""Drawings of single packets, probes and crashes, from their series."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rampmeter import plots
from rampmeter.papers.figure import SubFigure

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def draw_series(panel: SubFigure, series: Sequence[tuple[str, Any]], title: str) -> "Drawing":
    """Draws the series of a panel, which have names."""
    if panel.drawing == "time-space":
        return _draw_slots(series[0][1] if series else _NO_SLOTS, panel.window_ns, title)
    draw = _draw_probes if panel.drawing == "probes" else _draw_crashes
    return draw(series, title)


_NO_SLOTS: dict[str, Any] = {"kinds": [], "slot_ns": 0.0, "links": {}}
"""The series of a run that has not ended."""


def _draw_slots(slots: dict[str, Any], window_ns: tuple[float, float], title: str) -> "Drawing":
    """Draws the packets on links, with lines between slots if the transport has any."""
    shown = {link: [plots.PacketTransit(*one) for one in of] for link, of in slots["links"].items()}
    return plots.time_space(
        shown, window_ns, kinds=slots["kinds"], every_ns=slots["slot_ns"], title=title
    )


def _draw_probes(series: Sequence[tuple[str, dict[str, Any]]], title: str) -> "Drawing":
    """Draws the probes of the first series; an empty plot without any."""
    if not series:
        return plots.probes([], [], [], [], title=title)
    of = series[0][1]
    return plots.probes(of["sent"], of["answered"], of["suspected"], of["crashes"], title=title)


def _draw_crashes(series: Sequence[tuple[str, dict[str, Any]]], title: str) -> "Drawing":
    """Draws the time to detection over the time since the last probe."""
    sweeps = [
        plots.DetectionSeries(name, of["since_probe"], of["detection"], of["limit"])
        for name, of in series
    ]
    return plots.crashes(sweeps, title=title)
