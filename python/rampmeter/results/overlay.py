"""Plots of several runs over each other, each by its own flows."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rampmeter import plots
from rampmeter.on_demand import np
from rampmeter.results.names import interval_name
from rampmeter.results.plot_list import PlotList
from rampmeter.results.run import Run
from rampmeter.results.slowdown import series_of_groups, slowdown_groups
from rampmeter.text.arguments import argument_error, mapping_argument
from rampmeter.text.locations import Location

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Overlay(PlotList):
    """Plots of several runs, each by its own flows: runs of one plan or of different ones.

    >>> Overlay({"load .3": run, "load .8": other}).fct_cdf()  # doctest: +SKIP
    """

    def __init__(self, runs: Mapping[str, Run]) -> None:
        mapping_argument("runs", runs, "names to runs")
        if not runs:
            raise Location(key="runs").error(expected="at least one")
        for name, run in runs.items():
            runs_of(run, f"runs[{name!r}]")
        self._runs = dict(runs)

    def __repr__(self) -> str:
        return f"<plots of {', '.join(self._runs)}: {', '.join(self.names())}>"

    def slowdown_by_size(self, *, ax: "Axes | None" = None) -> "Figure":
        """Draws the mean and 99th percentile of slowdown by flow size, of each run."""
        series = [
            series_of_groups(name, slowdown_groups(run.summary)) for name, run in self._runs.items()
        ]
        return plots.slowdown_by_size(series, interval=interval_name([1]), ax=ax)

    def fct_cdf(self, *, ax: "Axes | None" = None) -> "Figure":
        """Draws the distributions of completion times; flows that were not delivered never end."""
        curves = {}
        for name, run in self._runs.items():
            fct = run.columns("fct_ps")["fct_ps"].to_numpy().astype(np.float64)
            curves[name] = np.where(np.isnan(fct), math.inf, fct)
        return plots.fct_cdfs(curves, ax=ax)


def runs_of(value: Any, name: str) -> list[Run]:
    """Returns one run or several as a list; raises `PlanError` for anything else."""
    runs = list(value) if isinstance(value, list | tuple) else [value]
    for run in runs:
        if not isinstance(run, Run):
            raise argument_error(name, "a run or several", run, "`rm.Run(folder)` opens one")
    folders = [run.path.resolve() for run in runs]
    for idx, folder in enumerate(folders):
        # A run twice would have intervals of no width.
        if folder in folders[:idx]:
            got = f"{runs[idx].path} twice"
            raise Location(key=name).error(expected="each run once", got=got)
    return runs
