"""Selection of the flows that a figure's statistics count, and the statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rampmeter.on_demand import np
from rampmeter.results.run import IDEALS, Run

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Flows:
    """The columns that statistics need, one element a flow; `took_ps` is NaN if unfinished."""

    arrival_ps: NDArray[np.float64]
    size_bytes: NDArray[np.int64]
    took_ps: NDArray[np.float64]
    ideal_ps: NDArray[np.float64]

    @classmethod
    def of(cls, run: Run, ideal: str = "figure") -> Flows:
        """Returns the columns of a run, with the completion time that belongs to an ideal."""
        time_column, ideal_column = IDEALS[ideal]
        table = run.columns("arrival_ps", "size_bytes", time_column, ideal_column)
        return cls(
            table["arrival_ps"].to_numpy().astype(np.float64),
            table["size_bytes"].to_numpy().astype(np.int64),
            table[time_column].to_numpy().astype(np.float64),
            table[ideal_column].to_numpy().astype(np.float64),
        )

    def between(self, above_bytes: int, up_to_bytes: int | None) -> NDArray[np.bool_]:
        """Returns the flows that are longer than the one size and not longer than the other."""
        longer: NDArray[np.bool_] = self.size_bytes > above_bytes
        return longer if up_to_bytes is None else longer & (self.size_bytes <= up_to_bytes)

    def slowdown(self) -> NDArray[np.float64]:
        """Returns each flow's completion time over its ideal."""
        return self.took_ps / self.ideal_ps


@dataclass(frozen=True)
class Statistics:
    """Statistics of the slowdown of some flows, and their mean completion time in milliseconds.

    NaN if there are no flows.
    """

    count: int
    min: float
    mean: float
    p99: float
    p999: float
    max: float
    fct_ms: float

    @classmethod
    def of(cls, flows: Flows, counted: NDArray[np.bool_]) -> Statistics:
        """Returns the statistics of some flows. Percentiles are interpolated linearly, as in the
        authors' scripts."""
        slowdown = flows.slowdown()[counted]
        if slowdown.size == 0:
            return cls(0, *[float("nan")] * 6)
        p99, p999 = np.percentile(slowdown, [99.0, 99.9], method="linear")
        least, most = slowdown.min(), slowdown.max()
        fct_ms = flows.took_ps[counted].mean() / 1e9
        values = (least, slowdown.mean(), p99, p999, most, fct_ms)
        return cls(int(slowdown.size), *map(float, values))


def finished_before(flows: Flows, fraction: float | None) -> NDArray[np.bool_]:
    """Returns the flows that finish before this fraction of the arrivals, or, for `None`, at all.

    With 1 000 000 flows and 0.4 these are the flows that finish before the 400 000th arrival.
    The number of that arrival is rounded up, so it is the last one if `fraction` is 1.
    """
    if fraction is None:
        return np.isfinite(flows.took_ps)
    if not 0.0 < fraction <= 1.0:
        raise ValueError(f"fraction: expected above 0 and at most 1, got {fraction}")
    n_flows = flows.arrival_ps.size
    if n_flows == 0:
        return np.zeros(0, dtype=np.bool_)
    nth = min(n_flows, max(1, int(np.ceil(fraction * n_flows - 1e-9))))
    mark = np.partition(flows.arrival_ps, nth - 1)[nth - 1]
    # Comparisons with NaN are false, so unfinished flows are excluded.
    finished: NDArray[np.bool_] = (flows.arrival_ps + flows.took_ps) < mark
    return finished


def by_size(
    flows: Flows, counted: NDArray[np.bool_], edges_bytes: Sequence[int]
) -> list[Statistics]:
    """Returns statistics by size bin; a flow of exactly an edge's size is in the bin above."""
    bins = np.searchsorted(np.asarray(edges_bytes), flows.size_bytes, side="right")
    return [Statistics.of(flows, counted & (bins == idx)) for idx in range(len(edges_bytes) + 1)]


def overall(flows: Flows, counted: NDArray[np.bool_]) -> Statistics:
    """Returns the statistics of all counted flows."""
    return Statistics.of(flows, counted)
