"""What sub-figures show of runs, by name."""

from typing import Literal, TypeAlias, get_args

Metric: TypeAlias = Literal[
    "utilisation",
    "throughput",
    "min",
    "mean",
    "p99",
    "p999",
    "max",
    "nfct",
    "fct-ms",
    "sent-again",
    "unscheduled",
    "deadlines-met",
    "drop-rate",
    "tenant-share",
    "rejected",
    "late",
    "bound-us",
    "detection-us",
    "detection-limit-us",
    "false-suspicions",
    "false-positive",
    "tail-us",
    "spinner-share",
    "kiops",
    "batch",
    "gaps-below",
    "packets-below",
    "violations",
    "core-memory",
    "least-served",
    "goodput",
]

OF_FLOWS = ("min", "mean", "p99", "p999", "max", "fct-ms")
"""Metrics of the slowdown of single flows, and the mean of their completion times in milliseconds;
the others are of a run as a whole."""
METRICS: tuple[Metric, ...] = get_args(Metric)
