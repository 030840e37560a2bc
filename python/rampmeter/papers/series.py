"""Series of single packets, probes and crashes, as plain values; they are drawn elsewhere."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from rampmeter.apps import detector
from rampmeter.on_demand import np
from rampmeter.papers.figure import SubFigure
from rampmeter.papers.slots import slots_of
from rampmeter.results.run import Run

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


def probes_of(run: Run) -> dict[str, Any]:
    """Returns probes, suspicions and crashes of a run as plain values, in microseconds."""
    probes = detector.Probes.of(run)
    return {
        "sent": probes.sent_us.tolist(),
        "answered": (probes.sent_us + probes.outcome_us)[probes.answered].tolist(),
        "suspected": detector.suspicions_us(probes).tolist(),
        "crashes": [[one.from_us, one.until_us] for one in detector.outages(run)],
    }


def crashes_of(run: Run) -> dict[str, Any]:
    """Returns the detections of crashes of a run as plain values, in microseconds."""
    probes, crashes = detector.Probes.of(run), detector.outages(run)
    at = np.array([crash.from_us for crash in crashes])
    last = probes.sent_us[np.searchsorted(probes.sent_us, at, side="right") - 1]
    return {
        "since_probe": (at - last).tolist(),
        "detection": detector.detections_us(probes, crashes).tolist(),
        "limit": detector.limit_us(probes),
    }
