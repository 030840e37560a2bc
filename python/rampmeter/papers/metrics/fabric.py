"""Metrics of ports and switches: drops, delays, queues and memory."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rampmeter.on_demand import np
from rampmeter.papers.metrics.spec import Metric, MetricSpec, Points
from rampmeter.results.run import Run

if TYPE_CHECKING:
    from numpy.typing import NDArray

HOPS = ("host-up", "tor-up", "spine-down", "tor-down")
"""The tiers that a packet between racks traverses, in their order; points count them from 1."""

TO_HOSTS = "tor-down"
"""The tier of the ports to hosts."""


def _drop_rates(run: Run) -> dict[str, float]:
    """Returns the data packets dropped in each tier, over those dropped anywhere or delivered."""
    dropped = {str(tier["name"]): int(tier["data_drops"]) for tier in run.summary["tiers"]}
    arrived = int(run.summary["counters"]["data_packets"])
    of = max(1, sum(dropped.values()) + arrived)
    return {name: n / of for name, n in dropped.items()}


def _hop_drops(run: Run, points: Points) -> list[float]:
    """Returns the drop rate of each hop."""
    rates = _drop_rates(run)
    return [rates.get(HOPS[int(point) - 1], 0.0) for point in points]


def _packets_below(run: Run, points: Points) -> list[float]:
    """Returns the share of data packets that were in the fabric for at most each point, in µs."""
    table = run.latencies
    if table is None:
        return [math.nan] * len(points)
    data = table["packets"].to_numpy(zero_copy_only=False) == "data"
    latency, count = (table[name].to_numpy()[data] for name in ("latency_ps", "count"))
    total = max(1, int(count.sum()))
    return [float(count[latency <= point * 1e6].sum() / total) for point in points]


def _violations(run: Run) -> float:
    """Counts collisions without unscheduled packets; NaN if switches have memory."""
    collisions = run.summary.get("collisions")
    if collisions is None:
        return math.nan
    return float(sum(n for kind, n in collisions["kinds"].items() if kind != "unscheduled"))


def _core_memory(run: Run) -> float:
    """Returns the maximum cells in a core switch, plus overflowed cells, over its memory.

    Above 1 only if cells overflowed (Fastpod §3.4). NaN if core switches store no cells.
    """
    memory = run.manifest["derived"].get("transport.core-cells-max")
    if memory is None:
        return math.nan
    counts = run.summary["transport"]
    return float((counts["core_cells_max"] + counts["core_overflows"]) / memory)


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


def _switch_mean(run: Run) -> float:
    queued = _of_switches(run)
    return float(queued.mean()) / 1e3 if queued.size else math.nan


def _switch_max(run: Run) -> float:
    queued = _of_switches(run)
    return float(queued.max()) / 1e3 if queued.size else math.nan


_OF_PORTS = "queue of a port to a host: mean over samples and ports, and maximum at any instant"
_OF_SWITCHES = "all queues of a ToR, over samples until arrivals stop; needs `run.links = true`"

FABRIC: dict[Metric, MetricSpec] = {
    "drop-rate": MetricSpec(
        "Data packets dropped (fraction)",
        "data packets dropped over dropped or delivered; at points: by hop, 1 is the sender's "
        "interface",
        of_run=lambda run: sum(_drop_rates(run).values()),
        at_points=_hop_drops,
    ),
    "packets-below": MetricSpec(
        "Fraction of packets",
        "at points in us: share of data packets that were in the fabric at most that long",
        at_points=_packets_below,
    ),
    "violations": MetricSpec(
        "Collisions",
        "collisions without an unscheduled packet, in fabrics without queues",
        of_run=_violations,
    ),
    "core-memory": MetricSpec(
        "Memory used (fraction)",
        "peak of cells in a core switch, dropped ones included, over its memory (Fastpod §3.4)",
        of_run=_core_memory,
    ),
    "queue-mean-kb": MetricSpec(
        "Queue of ports to hosts, mean (KB)",
        _OF_PORTS,
        of_run=lambda run: _of_tier(run, "queues", "tier", "mean_bytes"),
    ),
    "queue-max-kb": MetricSpec(
        "Queue of ports to hosts, max. (KB)",
        _OF_PORTS,
        of_run=lambda run: _of_tier(run, "tiers", "name", "queue_max_bytes"),
    ),
    "switch-mean-kb": MetricSpec(
        "Memory used of a ToR, mean (KB)", _OF_SWITCHES, of_run=_switch_mean
    ),
    "switch-max-kb": MetricSpec(
        "Memory used of a ToR, max. (KB)", _OF_SWITCHES, of_run=_switch_max
    ),
}
