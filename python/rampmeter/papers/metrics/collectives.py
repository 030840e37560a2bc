"""Metrics of the slowest round of collectives."""

import math
from typing import Any

from rampmeter.papers.metrics.spec import Metric, MetricSpec
from rampmeter.results.run import Run


def _rounds(run: Run) -> list[dict[str, Any]]:
    """Returns all rounds; none if not all flows of a round were delivered."""
    rounds: list[dict[str, Any]] = run.summary["collectives"]
    return [] if any(one["completion_ps"] is None for one in rounds) else rounds


def _lower_bound_ratio(run: Run) -> float:
    return max((float(one["lower_bound_ratio"]) for one in _rounds(run)), default=math.nan)


def _bus_share(run: Run) -> float:
    topology = run.manifest["plan"]["topology"]
    gbps = float(topology.get("access-gbps", topology.get("gbps")))
    return min((float(one["bus_gbps"]) for one in _rounds(run)), default=math.nan) / gbps


COLLECTIVES: dict[Metric, MetricSpec] = {
    "over-bound": MetricSpec(
        "Completion time over its bound",
        "slowest round of a collective: completion time over its lower bound "
        "(`collectives[].lower_bound_ratio`)",
        of_run=_lower_bound_ratio,
    ),
    "bus-share": MetricSpec(
        "Bus bandwidth (of a host's link)",
        "slowest round: bus bandwidth over the rate of a host's link; of an all-reduce "
        "2 (n - 1) / n S / B over the time",
        of_run=_bus_share,
    ),
}
