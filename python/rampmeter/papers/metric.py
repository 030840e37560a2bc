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
    "max-load",
    "queue-mean-kb",
    "queue-max-kb",
    "switch-mean-kb",
    "switch-max-kb",
    "over-bound",
    "bus-share",
    "goodput",
]

OF_FLOWS = ("min", "mean", "p99", "p999", "max", "fct-ms")
"""Metrics of the slowdown of single flows, and the mean of their completion times in milliseconds;
the others are of a run as a whole."""
METRICS: tuple[Metric, ...] = get_args(Metric)

MAX_LOAD: Metric = "max-load"
"""The metric of searches; all others are of runs."""

Y_LABELS: dict[Metric, str] = {
    "utilisation": "Utilisation (delivered / offered)",
    "throughput": "Throughput (of all access links)",
    "mean": "Mean slowdown",
    "p99": "Slowdown, 99th percentile",
    "nfct": "Normalised FCT",
    "deadlines-met": "Deadlines met (fraction)",
    "drop-rate": "Data packets dropped (fraction)",
    "tenant-share": "First tenant's share of bytes",
    "fct-ms": "Mean FCT (ms)",
    "sent-again": "Bytes sent again (fraction)",
    "unscheduled": "Flows that are not scheduled (fraction)",
    "min": "Least slowdown",
    "p999": "Slowdown, 99.9th percentile",
    "max": "Largest slowdown",
    "rejected": "Messages rejected (fraction)",
    "late": "Messages beyond their bound (fraction)",
    "bound-us": "Delay bound (µs)",
    "detection-us": "Longest time to detection (µs)",
    "detection-limit-us": "Limit of the time to detection (µs)",
    "false-suspicions": "False suspicions",
    "false-positive": "Probability of a false positive",
    "tail-us": "Read latency, p99.9 (µs)",
    "spinner-share": "Spinner's throughput (of alone)",
    "kiops": "Reads (thousands a second)",
    "batch": "Packets a batch",
    "gaps-below": "Fraction of times",
    "packets-below": "Fraction of packets",
    "violations": "Collisions",
    "core-memory": "Memory used (fraction)",
    "least-served": "Bytes delivered (fraction)",
    "max-load": "Maximum sustained load",
    "queue-mean-kb": "Queue of ports to hosts, mean (KB)",
    "queue-max-kb": "Queue of ports to hosts, max. (KB)",
    "switch-mean-kb": "Memory used of a ToR, mean (KB)",
    "switch-max-kb": "Memory used of a ToR, max. (KB)",
    "over-bound": "Completion time over its bound",
    "bus-share": "Bus bandwidth (of a host's link)",
    "goodput": "Goodput (of receivers' links)",
}
"""What axes call a metric."""
