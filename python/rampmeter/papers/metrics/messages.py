"""Metrics of messages as a scheduler or an application sees them."""

import math

from rampmeter.on_demand import np
from rampmeter.papers.metrics.spec import Metric, MetricSpec, number
from rampmeter.results.run import Run


def _unscheduled(run: Run) -> float:
    """Returns the share of messages sent without a request; NaN if there is no scheduler."""
    counts = run.summary["transport"]
    if "unscheduled" not in counts:
        return math.nan
    unscheduled, scheduled = int(counts["unscheduled"]), int(counts["scheduled"])
    return unscheduled / max(1, unscheduled + scheduled)


def _late_share(run: Run) -> float:
    """Returns the share of admitted messages that were acknowledged after their bound.

    A message that failed or is unfinished has no such time, and is late.
    """
    table = run.columns("acked_ps", "delay_bound_ps", "status")
    admitted = table["status"].to_numpy() != "rejected"
    if table["delay_bound_ps"].null_count or not admitted.any():
        return math.nan
    time, bound = (
        table[name].to_numpy().astype(np.float64) for name in ("acked_ps", "delay_bound_ps")
    )
    # Comparisons with NaN are false.
    return float(1.0 - (time <= bound)[admitted].mean())


def _bound_us(run: Run) -> float:
    """Returns the maximum of the promised bounds on the time from submission to outcome."""
    bounds = run.columns("delay_bound_ps")["delay_bound_ps"]
    return float(bounds.to_numpy().max()) / 1e6 if bounds.null_count == 0 else math.nan


def _rejected(run: Run) -> float:
    flows = run.summary["flows"]
    return float(flows["rejected"] / max(1, flows["submitted"]))


MESSAGES: dict[Metric, MetricSpec] = {
    "nfct": MetricSpec(
        "Normalised FCT",
        "`nfct` of [`summary.json`](../results.md)",
        of_run=lambda run: number(run, "nfct"),
    ),
    "deadlines-met": MetricSpec(
        "Deadlines met (fraction)",
        "`deadlines_met` of the summary",
        of_run=lambda run: number(run, "deadlines_met"),
    ),
    "unscheduled": MetricSpec(
        "Flows that are not scheduled (fraction)",
        "share of messages that were sent without a request to a scheduler",
        of_run=_unscheduled,
    ),
    "rejected": MetricSpec(
        "Messages rejected (fraction)", "share of messages that were rejected", of_run=_rejected
    ),
    "late": MetricSpec(
        "Messages beyond their bound (fraction)",
        "of messages that were not rejected, share whose sender was notified after its bound",
        of_run=_late_share,
    ),
    "bound-us": MetricSpec(
        "Delay bound (µs)", "longest delay bound of a message, in us", of_run=_bound_us
    ),
}
