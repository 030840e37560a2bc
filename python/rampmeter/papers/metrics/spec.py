"""The parts of a metric of figures."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rampmeter.results.run import Run
from rampmeter.text.toml import TomlValue

Metric: TypeAlias = str
"""The name of a metric."""

Settings: TypeAlias = Mapping[str, TomlValue]
"""The `app` table of a figure's run."""

Points: TypeAlias = Sequence[float]
"""The values at which a metric is computed; empty for one value a run."""


@dataclass(frozen=True)
class MetricSpec:
    """A metric of figures: its words, and one of the ways to compute it."""

    label: str
    """Label of an axis."""
    definition: str
    """Definition in Markdown, for the table of documented metrics."""
    of_run: Callable[[Run], float] | None = None
    """Computes a value of a whole run; NaN if the run has none."""
    at_points: Callable[[Run, Points], list[float]] | None = None
    """Computes a value at each point of a panel."""
    of_application: Callable[[Run, Points, Settings], list[float]] | None = None
    """Computes a value at each point, or a single one, with the settings of an application."""
    of_flows: str | None = None
    """Name of the statistic of a panel's flows, a field of `selection.Statistics`."""

    def values(self, run: Run, points: Points, settings: Settings) -> list[float]:
        """Computes the metric of a run: one value for each point, or a single one.

        Raises `ValueError` if the metric is not of a run, or needs points and there are none.
        """
        if self.of_application is not None:
            return self.of_application(run, points, settings)
        if self.at_points is not None and points:
            return self.at_points(run, points)
        if self.of_run is not None:
            return [self.of_run(run)]
        raise ValueError(f"{self.label}: expected a metric with a value of a run")

    def of(self, run: Run) -> float:
        """Computes the metric of a whole run. Raises `ValueError` if it has no such value."""
        return self.values(run, (), {})[0]

    @property
    def needs_points(self) -> bool:
        """Returns true if the metric has values at points only."""
        return self.at_points is not None and self.of_run is None


def number(run: Run, key: str) -> float:
    """Returns a number of a run's summary; NaN if it has none."""
    value = run.summary[key]
    return math.nan if value is None else float(value)
