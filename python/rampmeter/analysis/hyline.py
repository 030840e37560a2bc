"""Hyline's thresholds: published ones, and a power law between and beyond them.

The model behind them (Abbasloo, Xu, Chao: *To schedule or not to schedule*, Computer Networks 172,
2020) is not public in a usable form. Its published part is table 4 of the CAPTON paper (Zhou, Lee:
*CAPTON - Centralized All-Path Transmission for Over-Subscribed Datacenter Networks*, IEEE Access
2022): thresholds of two workloads, by the load of hosts' links and by that of the uplinks of racks.
Both are one function of the load, which the table rounds up to tenths, to 0.9 at most.
"""

from math import exp, log
from statistics import linear_regression
from typing import Final, Literal

TABLE: Final = {
    "web-search": {
        0.2: 9_180_000,
        0.3: 7_450_000,
        0.4: 6_420_000,
        0.5: 5_720_000,
        0.6: 5_200_000,
        0.7: 4_800_000,
        0.8: 4_470_000,
        0.9: 4_200_000,
    },
    "data-mining": {
        0.2: 35_100_000,
        0.3: 28_050_000,
        0.4: 23_770_000,
        0.5: 20_900_000,
        0.6: 18_820_000,
        0.7: 17_210_000,
        0.8: 15_930_000,
        0.9: 14_880_000,
    },
}
"""Published thresholds in bytes, by workload and load (table 4 of the CAPTON paper)."""


def hyline_threshold(sizes: Literal["web-search", "data-mining"], load: float) -> int:
    """Returns the threshold in bytes for `rm.Hyline(short_flow_bytes=...)`.

    `sizes` is one of the two workloads of which thresholds are published. `load` is that of hosts'
    links or that of the uplinks of racks, above 0 and up to 1. At tenths from 0.2 to 0.9 the result
    is the published threshold, otherwise that of `power_law`. The paper rounds loads up to tenths,
    to 0.9 at most: its threshold at 0.291 is that at 0.3.

    >>> hyline_threshold("web-search", 0.8)
    4470000
    """
    if sizes not in TABLE:
        raise ValueError(f"sizes: expected one of {', '.join(TABLE)}, got {sizes!r}")
    if not 0.0 < load <= 1.0:
        raise ValueError(f"load: expected a number above 0 and up to 1, got {load}")
    for published, threshold in TABLE[sizes].items():
        if abs(load - published) < 1e-9:
            return threshold
    factor, exponent = power_law(sizes)
    return round(factor * float(load**exponent))


def power_law(sizes: str) -> tuple[float, float]:
    """Returns factor (bytes) and exponent of the power of the load closest to a workload's table.

    It has the least squares of relative errors, in logarithms.
    """
    loads, thresholds = TABLE[sizes].keys(), TABLE[sizes].values()
    exponent, offset = linear_regression([log(x) for x in loads], [log(y) for y in thresholds])
    return exp(offset), exponent
