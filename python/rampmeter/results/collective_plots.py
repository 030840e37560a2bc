"""Completion times of collectives of one run, or of several transports."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rampmeter import plots
from rampmeter.analysis.confidence import Interval, interval
from rampmeter.results.names import interval_name
from rampmeter.results.rounds import name_of, us
from rampmeter.text.locations import Location

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def collectives(
    summaries: Mapping[str, Sequence[Mapping[str, Any]]], folder: Path, ax: "Axes | None" = None
) -> "Figure":
    """Draws the completion time of each round, a panel for each collective.

    `summaries` are those of the seeds of each transport, by its name. Rounds that did not complete
    have no mark. Bounds are those of the first transport. Raises `ResultError`, with the folder of
    the results, if there are no collectives.
    """
    panels: dict[str, list[plots.Series]] = {}
    bounds: dict[str, list[tuple[float, Interval]]] = {}
    for name, seeds in summaries.items():
        times: dict[str, dict[int, list[float | None]]] = {}
        for summary in seeds:
            for row in summary.get("collectives", []):
                rounds = times.setdefault(name_of(row), {})
                rounds.setdefault(row["round"], []).append(us(row["completion_ps"]))
                if row["round"] not in dict(bounds.setdefault(name_of(row), [])):
                    bound = interval([us(row["lower_bound_ps"])])
                    bounds[name_of(row)].append((row["round"], bound))
        for collective, rounds in times.items():
            values = [(float(number), interval(rounds[number])) for number in sorted(rounds)]
            panels.setdefault(collective, []).append(plots.Series(name, values))
    if not panels:
        raise Location(folder).result_error(expected="a run with collectives", got="one without")
    for collective, values in bounds.items():
        panels[collective].append(plots.Series(plots.BOUND, sorted(values)))
    n_seeds = [len(seeds) for seeds in summaries.values()]
    note = interval_name(n_seeds) if max(n_seeds) > 1 else ""
    return plots.completion_times(panels, interval=note, ax=ax)
