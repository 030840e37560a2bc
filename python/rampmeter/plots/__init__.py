"""Plots: pure functions from tables to matplotlib figures."""

from rampmeter.plots.application import (
    DetectionSeries,
    OperatingPoint,
    crashes,
    curves,
    operating_points,
    probes,
)
from rampmeter.plots.bound import SlowdownSpread, Tradeoff, spread, sustainable_share, tradeoff
from rampmeter.plots.distribution import fct_cdf, fct_cdfs, queue_cdf
from rampmeter.plots.load import Line, Point, by_load
from rampmeter.plots.pareto import Curve, pareto
from rampmeter.plots.replicated import Series, replicated
from rampmeter.plots.size import SLOWDOWN, GroupSeries, SizeSeries, grouped, slowdown_by_size
from rampmeter.plots.time import tenant_shares, utilisation
from rampmeter.plots.time_space import PacketTransit, time_space
from rampmeter.plots.topology import topology

__all__ = [
    "SLOWDOWN",
    "Curve",
    "DetectionSeries",
    "GroupSeries",
    "Line",
    "OperatingPoint",
    "PacketTransit",
    "Point",
    "Series",
    "SizeSeries",
    "SlowdownSpread",
    "Tradeoff",
    "by_load",
    "crashes",
    "curves",
    "fct_cdf",
    "fct_cdfs",
    "grouped",
    "operating_points",
    "pareto",
    "probes",
    "queue_cdf",
    "replicated",
    "slowdown_by_size",
    "spread",
    "sustainable_share",
    "tenant_shares",
    "time_space",
    "topology",
    "tradeoff",
    "utilisation",
]
