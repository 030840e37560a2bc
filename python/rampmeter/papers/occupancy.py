"""Memory of switches that packets occupy."""

import math

import numpy as np
from numpy.typing import NDArray

from rampmeter.papers.metric import Metric
from rampmeter.results import Run

OCCUPANCY: tuple[Metric, ...] = (
    "queue-mean-kb",
    "queue-max-kb",
    "switch-mean-kb",
    "switch-max-kb",
)
TO_HOSTS = "tor-down"
"""The tier of the ports to hosts."""


def occupancy_kb(run: Run, metric: Metric) -> float:
    """Returns the mean or maximum queue of ports to hosts, or of their switches, in kilobytes.

    The longest queue is that of any instant. The others are of samples. Those of whole switches
    are of samples until arrivals stopped, and NaN unless `run.links` was set.
    """
    if metric == "queue-max-kb":
        return _of_tier(run, "tiers", "name", "queue_max_bytes")
    if metric == "queue-mean-kb":
        return _of_tier(run, "queues", "tier", "mean_bytes")
    queued = _of_switches(run)
    if queued.size == 0:
        return math.nan
    return float(queued.max() if metric == "switch-max-kb" else queued.mean()) / 1e3


def _of_tier(run: Run, table: str, name: str, key: str) -> float:
    """Returns a number of the summary; NaN if there are no such ports, or no samples."""
    values = [float(tier[key]) for tier in run.summary[table] if tier[name] == TO_HOSTS]
    return values[0] / 1e3 if values else math.nan


def _of_switches(run: Run) -> NDArray[np.int64]:
    """Returns the bytes in all queues of each ToR at each sample."""
    table = run.links
    if table is None:
        return np.zeros(0, dtype=np.int64)
    time, end, tier, queue = (
        table[name].to_numpy() for name in ("time_ps", "from", "tier", "queue_bytes")
    )
    is_tor = np.isin(end, np.unique(end[tier == TO_HOSTS]))
    counted = is_tor & (time <= int(run.summary["counters"]["last_arrival_ps"]))
    _, switches = np.unique(end[counted], return_inverse=True)
    _, instants = np.unique(time[counted], return_inverse=True)
    if switches.size == 0:
        return np.zeros(0, dtype=np.int64)
    queued = np.zeros((switches.max() + 1, instants.max() + 1), dtype=np.int64)
    np.add.at(queued, (switches, instants), queue[counted].astype(np.int64))
    return queued.ravel()
