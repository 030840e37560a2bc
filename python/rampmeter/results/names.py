"""Names of transports, workloads, keys and measures as papers write them, for plots."""

from collections.abc import Sequence
from typing import Any, Final

from rampmeter.plan import schema
from rampmeter.text.toml import literal

WORKLOADS: Final = {"imc10": "IMC10", "web-search": "Web Search", "data-mining": "Data Mining"}
"""Size distributions as papers write them."""

KEYS: Final = {
    "workload.load": "Load",
    "workload.sizes": "Workload",
    "workload.fan": "Fan-in",
    "transport.name": "Transport",
}
"""Names of keys that are not the last part of the key."""

UNITS: Final = {
    "gbps": "Gbit/s",
    "us": "µs",
    "ns": "ns",
    "ms": "ms",
    "bytes": "bytes",
    "packets": "packets",
}
"""Units by the last word of a key."""

MEASURES: Final = {
    "utilisation": "Utilisation of hosts' links",
    "goodput_gbps": "Goodput (Gbit/s)",
    "delivered_share": "Delivered share of packets",
    "nfct": "Mean FCT over mean ideal",
    "deadlines_met": "Share of deadlines met",
    "slowdown_mean": "Mean slowdown",
    "slowdown_p50": "Median slowdown",
    "slowdown_p99": "99th-percentile slowdown",
    "slowdown_p999": "99.9th-percentile slowdown",
    "slowdown_max": "Maximum slowdown",
    "completion_us": "Completion time (µs)",
    "bus_gbps": "Bus bandwidth (Gbit/s)",
    "call_mean_us": "Mean latency of calls (µs)",
    "call_p99_us": "99th-percentile latency of calls (µs)",
}
"""Names of the measures of runs."""


def transport_name(label: str) -> str:
    """Returns a transport's label as papers write it; other labels stay as they are.

    >>> transport_name("dcpim"), transport_name("pfabric:window-initial=60"), transport_name("mine")
    ('dcPIM', 'pFabric, window-initial = 60', 'mine')
    """
    name, colon, rest = label.partition(":")
    if name not in schema.names():
        return label
    title = next(about["title"] for about in schema.transports() if about["name"] == name)
    # The title of the ideal has an article, since its texts are sentences.
    words = [str(title).removeprefix("the ").replace("ideal", "Ideal")]
    if colon:
        words += [part.replace("=", " = ") for part in rest.split(",")]
    return ", ".join(words)


def measure_name(name: str) -> str:
    """Returns the name of a measure with its unit."""
    return MEASURES.get(name) or _in_parentheses(*_words_and_unit(name.replace("_", "-")))


def key_name(key: str) -> str:
    """Returns the name of a key of a plan with its unit.

    >>> key_name("workload.load"), key_name("topology.access-gbps")
    ('Load', 'Access (Gbit/s)')
    """
    return _in_parentheses(*_key_and_unit(key))


def value_name(value: Any) -> str:
    """Returns a value of a key as it is written in a plot: `IMC10`, `0.7`, `ecmp`."""
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, str):
        return WORKLOADS.get(value, value)
    return str(value) if isinstance(value, int) else literal(value)


def setting_name(key: str, value: Any) -> str:
    """Returns a key with its value: `Load 0.7`; a workload is its name alone."""
    if key == "workload.sizes" and value in WORKLOADS:
        return WORKLOADS[value]
    name, unit = _key_and_unit(key)
    return " ".join(filter(None, (name, value_name(value), unit)))


def interval_name(n_seeds: Sequence[int]) -> str:
    """Returns the legend entry of intervals over seeds, or by batch means of single runs.

    >>> interval_name([5, 5]), interval_name([3, 5]), interval_name([1])
    ('95 % over 5 seeds', '95 % over 3 to 5 seeds', '95 % by batch means')
    """
    low, high = min(n_seeds, default=1), max(n_seeds, default=1)
    if high == 1:
        return "95 % by batch means"
    return f"95 % over {high} seeds" if low == high else f"95 % over {low} to {high} seeds"


def _key_and_unit(key: str) -> tuple[str, str]:
    """Returns the name of a key of a plan, and its unit, which may be empty."""
    name = KEYS.get(key)
    return (name, "") if name else _words_and_unit(key.rpartition(".")[2])


def _words_and_unit(name: str) -> tuple[str, str]:
    """Returns the words of a name, and the unit at its end, which may be empty."""
    *words, last = name.split("-")
    if words and last in UNITS:
        return " ".join(words).capitalize(), UNITS[last]
    return " ".join([*words, last]).capitalize(), ""


def _in_parentheses(name: str, unit: str) -> str:
    return f"{name} ({unit})" if unit else name
