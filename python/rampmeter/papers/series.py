"""Drawings of single packets, probes and crashes: their series, kept as plain values."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from matplotlib.figure import Figure as Drawing

from rampmeter.papers.application import crashes_of, draw_crashes, draw_probes, probes_of
from rampmeter.papers.figure import SubFigure
from rampmeter.papers.slots import NO_SLOTS, draw_slots, slots_of
from rampmeter.results import Run

Series: TypeAlias = Mapping[str, Any]
"""The points of a drawing, of one run; texts, numbers and lists of them."""
WITH_SERIES = ("time-space", "probes", "crashes")
"""Drawings whose points are not values of metrics."""


def series_of(panel: SubFigure, run: Run) -> Series | None:
    """Returns the series of a run in a panel; none if its drawing has none."""
    match panel.drawing:
        case "time-space":
            return slots_of(panel, run)
        case "probes":
            return probes_of(run)
        case "crashes":
            return crashes_of(run)
        case _:
            return None


def draw_series(panel: SubFigure, series: Sequence[tuple[str, Any]], title: str) -> Drawing:
    """Draws the series of a panel, which have names."""
    if panel.drawing == "time-space":
        return draw_slots(series[0][1] if series else NO_SLOTS, panel.window_ns, title)
    draw = draw_probes if panel.drawing == "probes" else draw_crashes
    return draw(series, title)
