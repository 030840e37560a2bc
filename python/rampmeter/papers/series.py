"""Series of single packets, probes and crashes, as plain values; they are drawn elsewhere."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from rampmeter.papers.application import crashes_of, probes_of
from rampmeter.papers.figure import SubFigure
from rampmeter.papers.slots import slots_of
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
