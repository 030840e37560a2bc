"""Types of the values in the files of a run, by which broken and foreign files are found."""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from rampmeter.text.json_object import ANY_KEY, Nullable, Shape

Kind: TypeAlias = Literal["whole numbers", "numbers", "texts", "truth values"]

INT: Final = int | None
FLOAT: Final = float | None
_STATISTICS: Final[Mapping[str, Shape]] = {
    "count": int,
    **dict.fromkeys(("mean", "p50", "p99", "p999", "max"), float),
    **dict.fromkeys(("mean_ci", "p50_ci", "p99_ci", "p999_ci"), FLOAT),
}
_BINS: Final[list[Shape]] = [
    {"label": str, "upper_bytes": INT, "stats": Nullable(_STATISTICS)},
]
_COLLECTIVE: Final[Mapping[str, Shape]] = {
    **dict.fromkeys(("operation", "algorithm"), str),
    **dict.fromkeys(("first_host", "hosts", "round", "bytes", "flows", "delivered"), int),
    **dict.fromkeys(("tenant", "host_step", "start_ps", "completion_ps", "lower_bound_ps"), FLOAT),
    **dict.fromkeys(("bound_ps", "lower_bound_ratio", "over_bound"), FLOAT),
    **dict.fromkeys(("algorithm_gbps", "bus_gbps"), FLOAT),
}
_TIER: Final[Mapping[str, Shape]] = {
    "name": str,
    **dict.fromkeys(("ports", "bytes", "queue_max_bytes", "data_drops"), int),
    "utilisation": FLOAT,
    "queue_max_at": Nullable({"from": str, "to": str}),
    "drops": {ANY_KEY: int},
    "pfc": {"pauses": int, "paused_ps": int},
}
SUMMARY_SHAPE: Final[Mapping[str, Shape]] = {
    "status": str,
    "flows": {ANY_KEY: int},
    "window": Nullable({"from_ps": int, "to_ps": int}),
    "warmup": {"rule": str, "flows": int},
    "warnings": [str],
    "warning_codes": [str],
    "warning_values": [{}],
    **dict.fromkeys(("utilisation", "goodput_gbps", "delivered_share", "nfct"), FLOAT),
    "deadlines_met": FLOAT,
    "tenant_goodput_gbps": {ANY_KEY: FLOAT},
    "tenants": {ANY_KEY: _STATISTICS},
    "slowdown": {ANY_KEY: {"overall": Nullable(_STATISTICS), ANY_KEY: _BINS}},
    "tiers": [_TIER],
    "queues": [{"tier": str}],
    "counters": {ANY_KEY: int},
    "collectives": [_COLLECTIVE],
    "rpcs": [
        {**dict.fromkeys(("tenant", "calls", "completed"), int), ANY_KEY: FLOAT},
    ],
}
"""Types of the values of `summary.json`."""
MANIFEST_SHAPE: Final[Mapping[str, Shape]] = {
    "plan": {
        **{key: {} for key in ("topology", "run", "fabric")},
        "transport": ({"name": str}, [{"name": str}]),
        "workload": {"parts": [{}], "phases": [{}]},
        "measure": {"completed-before-flow": INT, "finished-before-arrival": INT},
        "faults": {"outages": [{}]},
    },
    "seed": int,
    **dict.fromkeys(("version", "commit", "status"), str),
    **dict.fromkeys(("wall_seconds", "cpu_seconds"), float),
    "derived": {ANY_KEY: FLOAT},
    "timeline": Nullable(
        {"file": str, "from_ps": int, "until_ps": int, "events": int, "limit_reached": bool}
    ),
    "trace": Nullable({"file": str}),
}
"""Types of the values of `manifest.json`."""

_WHOLE: Final[Kind] = "whole numbers"
_NUMBERS: Final[Kind] = "numbers"
_TEXTS: Final[Kind] = "texts"
NEEDED: Final[Mapping[str, Mapping[str, Kind]]] = {
    "flows.parquet": {
        **dict.fromkeys(("flow", "src", "dst", "arrival_ps", "size_bytes", "fct_ps"), _WHOLE),
        **dict.fromkeys(("acked_ps", "ideal_ps", "acked_ideal_ps", "figure_ideal_ps"), _WHOLE),
    },
    "series.parquet": {
        "time_ps": _WHOLE,
        "tier": _TEXTS,
        **dict.fromkeys(("utilisation", "queue_mean_bytes", "queue_max_bytes"), _NUMBERS),
    },
    "queues.parquet": {"tier": _TEXTS, "queue_bytes": _WHOLE, "samples": _WHOLE},
    "latencies.parquet": {"packets": _TEXTS, "latency_ps": _WHOLE, "count": _WHOLE},
    "links.parquet": {
        **dict.fromkeys(("time_ps", "queue_bytes"), _WHOLE),
        **dict.fromkeys(("from", "to", "tier"), _TEXTS),
        "utilisation": _NUMBERS,
    },
    "drops.parquet": {
        **dict.fromkeys(("time_ps", "packets"), _WHOLE),
        **dict.fromkeys(("from", "to", "reason"), _TEXTS),
    },
    "outages.parquet": {
        **dict.fromkeys(("time_ps", "routed_ps"), _WHOLE),
        **dict.fromkeys(("element", "state"), _TEXTS),
    },
    "tenants.parquet": dict.fromkeys(("time_ps", "tenant", "delivered_bytes"), _WHOLE),
    "rates.parquet": dict.fromkeys(("time_ps", "flow", "delivered_bytes"), _WHOLE),
    "windows.parquet": {**dict.fromkeys(("time_ps", "host", "value"), _WHOLE), "name": _TEXTS},
    "transport.parquet": {"time_ps": _WHOLE, "counter": _TEXTS, "value": _WHOLE},
    "paths.parquet": {"flow": _WHOLE, "path": _TEXTS, "packets": _WHOLE, "bytes": _WHOLE},
    "blame.parquet": {
        **dict.fromkeys(("flow", "part", "time_ps"), _WHOLE),
        **dict.fromkeys(("cause", "stage", "tier"), _TEXTS),
    },
    "blockers.parquet": dict.fromkeys(("flow", "part", "blocker", "time_ps"), _WHOLE),
    "releases.parquet": dict.fromkeys(("flow", "after", "notified_ps"), _WHOLE),
}
"""Columns that readers of a whole table need, and their values. Earlier versions had them, too."""
OPTIONAL: Final[Mapping[str, Mapping[str, Kind]]] = {
    "flows.parquet": {
        "ideal_is_bound": "truth values",
        **dict.fromkeys(("duplicate_bytes", "deadline_ps", "outcome_ps", "tenant"), _WHOLE),
        **dict.fromkeys(("delay_bound_ps", "first_byte_ps", "sent_bytes"), _WHOLE),
        **dict.fromkeys(("retransmitted_bytes", "delivered_bytes"), _WHOLE),
        "status": _TEXTS,
    },
    "links.parquet": {"link": _WHOLE},
}
"""Columns that some readers need, or that some versions did not write."""
NULLABLE: Final = frozenset(
    {
        *("fct_ps", "acked_ps", "deadline_ps", "outcome_ps", "delay_bound_ps", "first_byte_ps"),
        "blocker",
    }
)
"""Columns in which values may be missing."""
