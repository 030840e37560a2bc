"""Metrics of bytes that were delivered."""

import math

from rampmeter.on_demand import np
from rampmeter.papers.metrics.spec import Metric, MetricSpec, Points, number
from rampmeter.results.run import Run


def _throughput(run: Run) -> float:
    """Returns bytes delivered until arrivals stopped, over the capacity of all access links."""
    ports = {str(tier["name"]): int(tier["ports"]) for tier in run.summary["tiers"]}
    topology = run.manifest["plan"]["topology"]
    gbps = float(topology.get("access-gbps", topology.get("gbps")))
    return float(run.summary["goodput_gbps"]) / (ports["host-up"] * gbps)


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


def _retransmitted_share(run: Run) -> float:
    """Returns the payload bytes of retransmissions over all bytes sent, of acknowledged flows."""
    table = run.columns("size_bytes", "retransmitted_bytes", "acked_ps")
    done = table["acked_ps"].is_valid().to_numpy(zero_copy_only=False)
    size, again = (table[name].to_numpy()[done] for name in ("size_bytes", "retransmitted_bytes"))
    return float(again.sum() / max(1, again.sum() + size.sum()))


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


SHARES: dict[Metric, MetricSpec] = {
    "delivered-share": MetricSpec(
        "Delivered share (of offered bytes)",
        "`delivered_share` of [`summary.json`](../results.md)",
        # dcPIM's figures call this utilisation; in a summary `utilisation` is that of links.
        of_run=lambda run: number(run, "delivered_share"),
    ),
    "throughput": MetricSpec(
        "Throughput (of all access links)",
        "`goodput_gbps` of the summary over the capacity of all access links",
        of_run=_throughput,
    ),
    "goodput": MetricSpec(
        "Goodput (of receivers' links)",
        "at points in us: bytes delivered since the point before, over the capacity of receivers' "
        "links; needs several tenants",
        at_points=_goodputs,
    ),
    "retransmitted-share": MetricSpec(
        "Retransmitted bytes (fraction)",
        "retransmitted share of the sent payload, of acknowledged flows",
        of_run=_retransmitted_share,
    ),
    "minimum-delivered-share": MetricSpec(
        "Bytes delivered (fraction)",
        "`min(intra-pod, inter-pod)` share of bytes in messages that completed by the last arrival",
        of_run=_least_served,
    ),
    "tenant-share": MetricSpec(
        "First tenant's share of bytes",
        "first tenant's share of delivered bytes until arrivals stop; at points in ms: since the "
        "point before",
        of_run=_tenant_share,
        at_points=_tenant_shares,
    ),
}
