"""Plots: pure functions from tables to matplotlib figures.

A module is imported on first use of one of its names. Matplotlib takes 0.3 s to import, and all
results have plots.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rampmeter.plots.application import (
        DetectionSeries,
        OperatingPoint,
        crashes,
        curves,
        operating_points,
        probes,
    )
    from rampmeter.plots.blame import (
        CauseBars,
        CauseDifferences,
        CauseKey,
        cause_differences,
        slowdown_by_cause,
        wait_matrices,
    )
    from rampmeter.plots.bound import SlowdownSpread, Tradeoff, spread, sustainable_share, tradeoff
    from rampmeter.plots.collectives import BOUND, completion_times
    from rampmeter.plots.distribution import fct_cdf, fct_cdfs, queue_cdf
    from rampmeter.plots.heat import heat_maps
    from rampmeter.plots.load import Line, Point, by_load
    from rampmeter.plots.network import topology
    from rampmeter.plots.pareto_curves import Curve, pareto
    from rampmeter.plots.replications import Series, replicated
    from rampmeter.plots.size import (
        SLOWDOWN,
        GroupSeries,
        SizeSeries,
        grouped,
        sizes_by_panel,
        slowdown_by_size,
    )
    from rampmeter.plots.style import figure_format
    from rampmeter.plots.time import over_time, tenant_shares, utilisation
    from rampmeter.plots.transits import LinkRows, PacketTransit, time_space, time_spaces

__all__ = [
    "BOUND",
    "SLOWDOWN",
    "CauseBars",
    "CauseDifferences",
    "CauseKey",
    "Curve",
    "DetectionSeries",
    "GroupSeries",
    "Line",
    "LinkRows",
    "OperatingPoint",
    "PacketTransit",
    "Point",
    "Series",
    "SizeSeries",
    "SlowdownSpread",
    "Tradeoff",
    "by_load",
    "cause_differences",
    "completion_times",
    "crashes",
    "curves",
    "fct_cdf",
    "fct_cdfs",
    "figure_format",
    "grouped",
    "heat_maps",
    "operating_points",
    "over_time",
    "pareto",
    "probes",
    "queue_cdf",
    "replicated",
    "sizes_by_panel",
    "slowdown_by_cause",
    "slowdown_by_size",
    "spread",
    "sustainable_share",
    "tenant_shares",
    "time_space",
    "time_spaces",
    "topology",
    "tradeoff",
    "utilisation",
    "wait_matrices",
]

_NAMES: Final = {
    "application": (
        "DetectionSeries",
        "OperatingPoint",
        "crashes",
        "curves",
        "operating_points",
        "probes",
    ),
    "blame": (
        "CauseBars",
        "CauseDifferences",
        "CauseKey",
        "cause_differences",
        "slowdown_by_cause",
        "wait_matrices",
    ),
    "bound": ("SlowdownSpread", "Tradeoff", "spread", "sustainable_share", "tradeoff"),
    "collectives": ("BOUND", "completion_times"),
    "distribution": ("fct_cdf", "fct_cdfs", "queue_cdf"),
    "heat": ("heat_maps",),
    "load": ("Line", "Point", "by_load"),
    "pareto_curves": ("Curve", "pareto"),
    "replications": ("Series", "replicated"),
    "size": (
        "SLOWDOWN",
        "GroupSeries",
        "SizeSeries",
        "grouped",
        "sizes_by_panel",
        "slowdown_by_size",
    ),
    "style": ("figure_format",),
    "time": ("over_time", "tenant_shares", "utilisation"),
    "transits": ("LinkRows", "PacketTransit", "time_space", "time_spaces"),
    "network": ("topology",),
}
"""Names of each module."""
_MODULES: Final = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Returns a function or a type of the module that has it."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
