"""Completion times of rounds of collectives."""

import math

from rampmeter.papers.metric import Metric
from rampmeter.results import Run

OF_COLLECTIVES: tuple[Metric, ...] = ("over-bound", "bus-share")


def of_collectives(run: Run, metric: Metric) -> float:
    """Returns a metric of the slowest round; NaN if not all flows of a round were delivered.

    `over-bound` is the completion time over its lower bound. `bus-share` is the bus bandwidth over
    the rate of a host's link: of an all-reduce 2 (n - 1) / n S / B over the completion time, which
    no algorithm can have above 1.
    """
    rounds = run.summary["collectives"]
    if not rounds or any(one["completion_ps"] is None for one in rounds):
        return math.nan
    if metric == "over-bound":
        return max(float(one["over_bound"]) for one in rounds)
    topology = run.manifest["plan"]["topology"]
    gbps = float(topology.get("access-gbps", topology.get("gbps")))
    return min(float(one["bus_gbps"]) for one in rounds) / gbps
