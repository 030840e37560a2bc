"""Metrics of figures, by name: a file for each subject, an entry for each metric."""

from rampmeter.papers.metrics.applications import APPLICATIONS
from rampmeter.papers.metrics.collectives import COLLECTIVES
from rampmeter.papers.metrics.fabric import FABRIC
from rampmeter.papers.metrics.flows import FLOWS
from rampmeter.papers.metrics.messages import MESSAGES
from rampmeter.papers.metrics.shares import SHARES
from rampmeter.papers.metrics.spec import Metric, MetricSpec, Points, Settings

MAX_LOAD: Metric = "max-load"
"""The metric of searches; all others are of runs."""

METRICS: dict[Metric, MetricSpec] = {
    **FLOWS,
    **MESSAGES,
    **SHARES,
    **FABRIC,
    **COLLECTIVES,
    **APPLICATIONS,
    MAX_LOAD: MetricSpec("Maximum sustained load", "of a search: maximum sustained load"),
}

__all__ = ["MAX_LOAD", "METRICS", "Metric", "MetricSpec", "Points", "Settings"]
