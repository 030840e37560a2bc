"""Values of one run in a panel."""

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from rampmeter.papers.application import OF_APPLICATIONS, Points, Settings, of_application
from rampmeter.papers.figure import SubFigure
from rampmeter.papers.metric import OF_FLOWS, Metric
from rampmeter.papers.occupancy import OCCUPANCY, occupancy_kb
from rampmeter.papers.rounds import OF_COLLECTIVES, of_collectives
from rampmeter.papers.selection import Flows, Statistics, by_size, finished_before, overall
from rampmeter.results import Run

CellValues: TypeAlias = dict[tuple[Metric, int | None], tuple[float, int]]
"""The values of one run in one panel, with the number of flows behind each."""


HOPS = ("host-up", "tor-up", "spine-down", "tor-down")
"""The tiers that a packet between racks traverses, in their order; points count them from 1."""


def measure(
    panel: SubFigure, run: Run, ideal: str = "figure", settings: Settings | None = None
) -> CellValues:
    """Computes the values of one run in a panel."""
    submitted = int(run.summary["flows"]["submitted"])
    cells: CellValues = {}
    for metric in panel.metrics:
        if metric in OF_APPLICATIONS:
            values = of_application(metric, run, panel.points, settings or {})
        elif metric in BY_POINT and panel.points:
            values = BY_POINT[metric](run, panel.points)
        elif metric in OF_FLOWS:
            continue
        else:
            values = [of_run(run, metric)]
        idxs = range(len(values)) if panel.points else [None]
        cells |= {(metric, i): (v, submitted) for i, v in zip(idxs, values, strict=True)}
    of_flows = [metric for metric in panel.metrics if metric in OF_FLOWS]
    if not of_flows:
        return cells
    flows = Flows.of(run, ideal)
    counted = finished_before(flows, panel.finished_before)
    counted &= flows.between(panel.above_bytes, panel.up_to_bytes)
    if panel.without_bytes is not None:
        counted &= flows.size_bytes != panel.without_bytes
    if panel.drawing == "by-size":
        groups = by_size(flows, counted, panel.edges_bytes)
        return {
            (metric, idx): _statistic(group, metric)
            for idx, group in enumerate(groups)
            for metric in of_flows
        }
    group = overall(flows, counted)
    return cells | {(metric, None): _statistic(group, metric) for metric in of_flows}


def of_run(run: Run, metric: Metric) -> float:
    """Returns a metric of a whole run, from its summary; NaN if the run has none."""
    summary = run.summary
    if metric == "drop-rate":
        return sum(_drop_rates(run).values())
    if metric == "throughput":
        return _throughput(run)
    if metric == "retransmitted-share":
        return _retransmitted_share(run)
    if metric == "unscheduled":
        return _unscheduled(run)
    if metric == "tenant-share":
        return _tenant_share(run)
    if metric == "violations":
        return _violations(run)
    if metric == "core-memory":
        return _core_memory(run)
    if metric == "minimum-delivered-share":
        return _least_served(run)
    if metric == "rejected":
        return float(summary["flows"]["rejected"] / max(1, summary["flows"]["submitted"]))
    if metric == "late":
        return _late_share(run)
    if metric == "bound-us":
        return _bound_us(run)
    if metric in OCCUPANCY:
        return occupancy_kb(run, metric)
    if metric in OF_COLLECTIVES:
        return of_collectives(run, metric)
    value = summary[OF_SUMMARY.get(metric, metric)]
    return math.nan if value is None else float(value)


OF_SUMMARY: dict[Metric, str] = {
    "deadlines-met": "deadlines_met",
    # dcPIM's figures call this utilisation; in a summary `utilisation` is that of links.
    "delivered-share": "delivered_share",
}
"""Metrics that summaries have under other names."""


def _drop_rates(run: Run) -> dict[str, float]:
    """Returns the data packets dropped in each tier, over those dropped anywhere or delivered."""
    dropped = {str(tier["name"]): int(tier["data_drops"]) for tier in run.summary["tiers"]}
    arrived = int(run.summary["counters"]["data_packets"])
    of = max(1, sum(dropped.values()) + arrived)
    return {name: n / of for name, n in dropped.items()}


def _throughput(run: Run) -> float:
    """Returns bytes delivered until arrivals stopped, over the capacity of all access links."""
    ports = {str(tier["name"]): int(tier["ports"]) for tier in run.summary["tiers"]}
    topology = run.manifest["plan"]["topology"]
    gbps = float(topology.get("access-gbps", topology.get("gbps")))
    return float(run.summary["goodput_gbps"]) / (ports["host-up"] * gbps)


def _retransmitted_share(run: Run) -> float:
    """Returns the payload bytes of retransmissions over all bytes sent, of acknowledged flows."""
    table = run.columns("size_bytes", "retransmitted_bytes", "acked_ps")
    done = table["acked_ps"].is_valid().to_numpy(zero_copy_only=False)
    size, again = (table[name].to_numpy()[done] for name in ("size_bytes", "retransmitted_bytes"))
    return float(again.sum() / max(1, again.sum() + size.sum()))


def _unscheduled(run: Run) -> float:
    """Returns the share of messages sent without a request; NaN if there is no scheduler."""
    counts = run.summary["transport"]
    if "unscheduled" not in counts:
        return math.nan
    unscheduled, scheduled = int(counts["unscheduled"]), int(counts["scheduled"])
    return unscheduled / max(1, unscheduled + scheduled)


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


def _least_served(run: Run) -> float:
    """Returns the smaller share of delivered bytes: of messages within pods, or between pods.

    Both shares are of the bytes submitted, and count messages that had arrived in full when
    arrivals stopped. NaN unless the network is a fat-tree with messages of both kinds.
    """
    topology = run.manifest["plan"]["topology"]
    if topology["kind"] != "fat-tree":
        return math.nan
    hosts = int(topology["k"]) ** 2 // 4
    table = run.columns("src", "dst", "size_bytes", "arrival_ps", "fct_ps")
    src, dst, size, arrival = (
        table[name].to_numpy() for name in ("src", "dst", "size_bytes", "arrival_ps")
    )
    # Comparisons with NaN, which unfinished messages have, are false.
    fct = table["fct_ps"].to_numpy().astype(np.float64)
    arrived = arrival + fct <= int(run.summary["counters"]["last_arrival_ps"])
    within = src // hosts == dst // hosts
    if within.all() or not within.any():
        return math.nan
    return min(float(size[kind & arrived].sum() / size[kind].sum()) for kind in (within, ~within))


def _tenant_share(run: Run) -> float:
    """Returns the first tenant's share of the bytes delivered until arrivals stopped."""
    return _shares(run, [int(run.summary["counters"]["last_arrival_ps"])])[0]


def _tenant_shares(run: Run, points: Points) -> list[float]:
    """Returns the first tenant's share of the bytes delivered between each point and its
    predecessor, in milliseconds.

    NaN after arrivals stopped.
    """
    last = int(run.summary["counters"]["last_arrival_ps"])
    ends = [point * 1e9 for point in points]
    shares = _shares(run, ends)
    return [share if end <= last else math.nan for share, end in zip(shares, ends, strict=True)]


def _shares(run: Run, ends_ps: Points) -> list[float]:
    table = run.tenants
    if table is None:
        return [math.nan] * len(ends_ps)
    time, tenant, delivered = (
        table[name].to_numpy() for name in ("time_ps", "tenant", "delivered_bytes")
    )
    # Counts since the run began: of the first tenant, and of all.
    counts = [np.zeros(2)]
    for end in ends_ps:
        until = time <= end
        last = until & (time == time[until].max()) if until.any() else until
        counts.append(np.array([delivered[last & (tenant == 0)].sum(), delivered[last].sum()]))
    steps = np.diff(counts, axis=0)
    return [float(own / of_all) if of_all > 0 else math.nan for own, of_all in steps]


def _goodputs(run: Run, points: Points) -> list[float]:
    """Returns the message bytes delivered over the capacity of the receivers' links.

    Headers are included. Points are microseconds; each value is from the point's predecessor to
    the point. Receivers are the destinations of flows. NaN if the run recorded no deliveries, and
    after its end.
    """
    table = run.tenants
    if table is None:
        return [math.nan] * len(points)
    topology = run.manifest["plan"]["topology"]
    gbps = float(topology.get("access-gbps", topology.get("gbps", 100.0)))
    receivers = len(np.unique(run.columns("dst")["dst"].to_numpy()))
    time, delivered = (table[name].to_numpy() for name in ("time_ps", "delivered_bytes"))
    instants, places = np.unique(time, return_inverse=True)
    totals = np.bincount(places, weights=delivered)
    edges = np.array([0.0, *points]) * 1e6
    # The count at the last sample until each edge; none before the first sample.
    before = np.searchsorted(instants, edges, side="right")
    at, total = (np.concatenate([[0.0], column])[before] for column in (instants, totals))
    bits = np.diff(total) * 8.0
    spans_ps = np.diff(at)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = bits / (spans_ps * 1e-3 * gbps * receivers)
    ended = edges[1:] > instants[-1]
    return [math.nan if end else float(share) for share, end in zip(shares, ended, strict=True)]


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


def _flows_below(run: Run, points: Points) -> list[float]:
    """Returns the share of flows that have at most each number of full packets."""
    packets = run.columns("size_bytes")["size_bytes"].to_numpy()
    packets = packets / float(run.manifest["derived"]["payload-bytes"])
    return [float((packets <= point).mean()) for point in points]


def _late_share(run: Run) -> float:
    """Returns the share of admitted messages that were acknowledged after their bound.

    A message that failed or is unfinished has no such time, and is late.
    """
    table = run.columns("acked_ps", "bound_ps", "status")
    admitted = table["status"].to_numpy() != "rejected"
    if table["bound_ps"].null_count or not admitted.any():
        return math.nan
    time, bound = (table[name].to_numpy().astype(np.float64) for name in ("acked_ps", "bound_ps"))
    # Comparisons with NaN are false.
    return float(1.0 - (time <= bound)[admitted].mean())


def _bound_us(run: Run) -> float:
    """Returns the maximum of the promised bounds on the time from submission to outcome."""
    bounds = run.columns("bound_ps")["bound_ps"]
    return float(bounds.to_numpy().max()) / 1e6 if bounds.null_count == 0 else math.nan


def _statistic(group: Statistics, metric: Metric) -> tuple[float, int]:
    return float(getattr(group, metric.replace("-", "_"))), group.count


BY_POINT: dict[Metric, Callable[[Run, Points], list[float]]] = {
    "tenant-share": _tenant_shares,
    "goodput": _goodputs,
    "drop-rate": _hop_drops,
    "packets-below": _packets_below,
    "flows-below": _flows_below,
}
"""Metrics of whole runs with a value per point, in panels with points."""
