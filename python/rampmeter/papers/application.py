"""What figures of applications show: values and drawings that are computed from finished runs."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from matplotlib.figure import Figure as Drawing

from rampmeter import plots
from rampmeter.apps import detector
from rampmeter.papers.figure import Metric
from rampmeter.results import Run
from rampmeter.toml import TomlValue

Settings: TypeAlias = Mapping[str, TomlValue]
"""The `app` table of a figure's run."""

Points: TypeAlias = Sequence[float]
"""Where a metric is computed; empty for one value a run."""


def of_application(metric: Metric, run: Run, points: Points, settings: Settings) -> list[float]:
    """A metric of an application: a value a point, or a single one."""
    return OF_APPLICATIONS[metric](run, points, settings)


def draw_runs(drawing: str, runs: Sequence[tuple[str, Run]], title: str) -> Drawing:
    """A drawing that is made from runs, which have names."""
    if drawing == "probes":
        return _probes([run for _, run in runs], title)
    return plots.crashes([_sweep(name, run) for name, run in runs], title=title)


def _detection_us(run: Run, points: Points, settings: Settings) -> list[float]:
    after = detector.detections_us(detector.Probes.of(run), detector.outages(run))
    # A crash that is never noticed makes the maximum NaN.
    return [float(np.max(after, initial=0.0))]


def _detection_limit_us(run: Run, points: Points, settings: Settings) -> list[float]:
    return [detector.limit_us(detector.Probes.of(run))]


def _false_suspicions(run: Run, points: Points, settings: Settings) -> list[float]:
    return [float(detector.false_suspicions(detector.Probes.of(run), detector.outages(run)))]


def _false_positive(run: Run, points: Points, settings: Settings) -> list[float]:
    probes = detector.Probes.of(run)
    return [detector.false_positive(probes, int(misses)) for misses in points or (1,)]


OF_APPLICATIONS: dict[Metric, Callable[[Run, Points, Settings], list[float]]] = {
    "detection-us": _detection_us,
    "detection-limit-us": _detection_limit_us,
    "false-suspicions": _false_suspicions,
    "false-positive": _false_positive,
}
"""How each metric of an application is computed."""


def _probes(runs: Sequence[Run], title: str) -> Drawing:
    if not runs:
        return plots.probes([], [], [], [], title=title)
    probes = detector.Probes.of(runs[0])
    ends = (probes.sent_us + probes.fate_us)[probes.answered]
    return plots.probes(
        probes.sent_us.tolist(),
        ends.tolist(),
        detector.suspicions_us(probes).tolist(),
        [(one.from_us, one.until_us) for one in detector.outages(runs[0])],
        title=title,
    )


def _sweep(name: str, run: Run) -> plots.Sweep:
    probes, crashes = detector.Probes.of(run), detector.outages(run)
    at = np.array([crash.from_us for crash in crashes])
    last = probes.sent_us[np.searchsorted(probes.sent_us, at, side="right") - 1]
    after = detector.detections_us(probes, crashes)
    return plots.Sweep(name, (at - last).tolist(), after.tolist(), detector.limit_us(probes))
