"""Plots: pure functions from tables to matplotlib figures."""

from rampmeter.plots.distribution import fct_cdf, queue_cdf
from rampmeter.plots.load import Line, Point, by_load
from rampmeter.plots.size import BarSeries, SizeSeries, bars, slowdown_by_size
from rampmeter.plots.time import tenant_shares, utilisation

__all__ = [
    "BarSeries",
    "Line",
    "Point",
    "SizeSeries",
    "bars",
    "by_load",
    "fct_cdf",
    "queue_cdf",
    "slowdown_by_size",
    "tenant_shares",
    "utilisation",
]
