"""A receiver that batches the packets of one flow (cosy section 6.2, after Reframer).

The first packet of a flow that arrives at an empty buffer starts a timeout. When it expires, all
received packets of the flow are forwarded as one batch. Programs that work on batches of one flow
have more cache hits. The shorter the times between packets of a flow are, the more packets a
timeout gathers. Times are in microseconds.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from rampmeter.apps.capture import Arrivals
from rampmeter.on_demand import np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def gaps_us(arrivals: Arrivals) -> NDArray[np.float64]:
    """Returns the times between packets of the same flow, of all flows."""
    order = np.lexsort((arrivals.time_us, arrivals.flow))
    time, flow = arrivals.time_us[order], arrivals.flow[order]
    gaps: NDArray[np.float64] = np.diff(time)[np.diff(flow) == 0]
    return gaps


def batches(arrivals: Arrivals, timeout_us: float) -> NDArray[np.int64]:
    """Returns the packets in each batch; one that arrives as the timeout expires is included."""
    sizes: list[int] = []
    for times in _by_flow(arrivals):
        start = 0
        while start < len(times):
            end = bisect_right(times, times[start] + timeout_us, lo=start)
            sizes.append(end - start)
            start = end
    return np.asarray(sizes, dtype=np.int64)


def mean_batch(arrivals: Arrivals, timeout_us: float) -> float:
    """Returns the mean number of packets per batch."""
    sizes = batches(arrivals, timeout_us)
    return float(sizes.mean()) if sizes.size else float("nan")


def delayed(arrivals: Arrivals, mean_us: float, seed: int = 1) -> Arrivals:
    """Returns the packets with random delays, exponential and independent, as by a busy network.

    The order of a flow's packets does not change; nor does its throughput over many packets.
    """
    rng = np.random.default_rng(seed)
    time = arrivals.time_us + rng.exponential(mean_us, arrivals.time_us.size)
    order = np.argsort(time, kind="stable")
    return Arrivals(time[order], arrivals.flow[order])


def _by_flow(arrivals: Arrivals) -> list[list[float]]:
    """Returns the times of each flow's packets, in order."""
    order = np.lexsort((arrivals.time_us, arrivals.flow))
    time, flow = arrivals.time_us[order], arrivals.flow[order]
    cuts = np.flatnonzero(np.diff(flow)) + 1
    return [part.tolist() for part in np.split(time, cuts)] if time.size else []
