"""Plots of the causes of flows' times."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rampmeter import plots
from rampmeter.results.blame_difference import SizeDifference
from rampmeter.results.blame_tables import FlowTimes, cause_name, causes_by_size, wait_matrix

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def slowdown_by_cause(runs: Mapping[str, FlowTimes], ax: "Axes | None" = None) -> "Figure":
    """Draws mean slowdown by flow size, stacked by cause, a panel for each name."""
    return plots.slowdown_by_cause({name: _bars(run) for name, run in runs.items()}, ax=ax)


def waits(runs: Mapping[str, FlowTimes], ax: "Axes | None" = None) -> "Figure":
    """Draws who delayed whom, a panel for each name."""
    first = next(iter(runs.values()))
    sizes = [one.label for one in first.size_classes]
    panels = {name: wait_matrix(run)[1].tolist() for name, run in runs.items()}
    return plots.wait_matrices(panels, sizes, ax=ax)


def differences(names: tuple[str, str], by_size: Sequence[SizeDifference]) -> "Figure":
    """Draws the differences of two transports cause by cause, a panel for each size."""
    labels = [one.label for one in by_size]
    panels = [
        plots.CauseDifferences(
            "all flows" if label == "all" else label,
            {
                plots.CauseKey(cause, "", cause_name(cause)): (at.mean, at.ci)
                for cause, at in one.causes.items()
            },
            (one.total.mean, one.total.ci),
        )
        for label, one in zip(labels, by_size, strict=True)
        if one.count
    ]
    first, other = names
    # One line would be wider than a column of a paper.
    label = f"Slowdown of {first} minus {other} (bars: 95 %)\n← {first} faster     {first} slower →"
    return plots.cause_differences(panels, label)


def _bars(run: FlowTimes) -> "plots.CauseBars":
    groups = causes_by_size(run)
    labels = [one.label for one in groups]
    parts = {
        plots.CauseKey(*key, cause_name(*key)): [one.slowdowns[key] for one in groups]
        for key in groups[0].slowdowns
    }
    return plots.CauseBars(labels, parts)
