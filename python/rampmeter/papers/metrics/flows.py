"""Metrics of single flows, and of their sizes."""

from rampmeter.papers.metrics.spec import Metric, MetricSpec, Points
from rampmeter.results.run import Run


def _flows_below(run: Run, points: Points) -> list[float]:
    """Returns the share of flows that have at most each number of full packets."""
    packets = run.columns("size_bytes")["size_bytes"].to_numpy()
    packets = packets / float(run.manifest["derived"]["payload-bytes"])
    return [float((packets <= point).mean()) for point in points]


_SLOWDOWN = "slowdown of the panel's flows over the figure's `ideal`"

FLOWS: dict[Metric, MetricSpec] = {
    "min": MetricSpec("Minimum slowdown", _SLOWDOWN, of_flows="min"),
    "mean": MetricSpec("Mean slowdown", _SLOWDOWN, of_flows="mean"),
    "p99": MetricSpec("Slowdown, 99th percentile", _SLOWDOWN, of_flows="p99"),
    "p999": MetricSpec("Slowdown, 99.9th percentile", _SLOWDOWN, of_flows="p999"),
    "max": MetricSpec("Maximum slowdown", _SLOWDOWN, of_flows="max"),
    "fct-ms": MetricSpec(
        "Mean FCT (ms)", "mean completion time of the panel's flows, in ms", of_flows="fct_ms"
    ),
    "flows-below": MetricSpec(
        "Fraction of flows",
        "at points in full packets: share of flows that have at most that many",
        at_points=_flows_below,
    ),
}
