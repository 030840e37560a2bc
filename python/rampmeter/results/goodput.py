"""Goodput of the whole network over time, with the outages of links and nodes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from rampmeter import plots
from rampmeter.on_demand import np, pa
from rampmeter.results.outages import outages_of
from rampmeter.results.pictures import Window

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

BINS: Final = 200
"""Number of intervals of a run without `run.rates-us`."""


class Run(Protocol):
    """The parts of a run that have its flows, rates and outages."""

    @property
    def summary(self) -> dict[str, Any]:
        """Statistics."""

    @property
    def manifest(self) -> dict[str, Any]:
        """Its plan."""

    @property
    def rates(self) -> "pa.Table | None":
        """The bytes of each flow in each interval, if it has them."""

    @property
    def outages(self) -> "pa.Table | None":
        """Failures and repairs, if it has any."""

    def columns(self, *names: str) -> "pa.Table":
        """Returns columns of its flows."""


def goodput(runs: Mapping[str, Run], window: Window, ax: "Axes | None" = None) -> "Figure":
    """Draws the goodput over time, a line for each run, and outages as grey bands.

    Outages are those of the first run that has some.
    """
    events = next((run.outages for run in runs.values() if run.outages is not None), None)
    end_ps = max(map(_end, runs.values()))
    lines = {name: _steps(run, window.until(end_ps)) for name, run in runs.items()}
    start, end = window.until(end_ps)
    outages = () if events is None else outages_of(events)
    bands = [(failed, end if until is None else until) for _, failed, until, _ in outages]
    bands = [band for band in bands if band[0] < end and band[1] > start]
    return plots.over_time(lines, (start, end), "Goodput (Gbit/s)", scale=8e3, bands=bands, ax=ax)


def _end(run: Run) -> float:
    """Returns the last arrival, or the end of a run that mostly drains."""
    arrival, end = (float(run.summary["counters"][key]) for key in ("last_arrival_ps", "end_ps"))
    return arrival if arrival > end / 2 else end


def _steps(
    run: Run, window_ps: tuple[float, float]
) -> "tuple[NDArray[np.float64], NDArray[np.float64]]":
    """Returns starts of intervals in ps and bytes per ps in them."""
    rates = run.rates
    edges, delivered = _of_flows(run, window_ps) if rates is None else _of_rates(rates, run)
    return edges[:-1], np.diff(delivered) / np.maximum(np.diff(edges), 1.0)


def _of_rates(rates: "pa.Table", run: Run) -> "tuple[NDArray[np.float64], NDArray[np.float64]]":
    """Returns the ends of intervals with rates, from 0, and the bytes delivered until then."""
    interval = float(run.manifest["plan"]["run"]["rates-us"]) * 1e6
    # Intervals without flows have no rows.
    place = np.ceil(rates["time_ps"].to_numpy() / interval).astype(np.int64)
    each = np.bincount(place, weights=rates["delivered_bytes"].to_numpy())
    edges = np.arange(each.size, dtype=np.float64) * interval
    return edges, np.cumsum(each).astype(np.float64)


def _of_flows(
    run: Run, window_ps: tuple[float, float]
) -> "tuple[NDArray[np.float64], NDArray[np.float64]]":
    """Returns equal intervals of a window, if each flow has its bytes evenly over its time."""
    flows = run.columns("arrival_ps", "fct_ps", "delivered_bytes")
    starts = flows["arrival_ps"].to_numpy().astype(np.float64)
    times = flows["fct_ps"].cast(pa.float64()).to_numpy()
    end_ps = float(run.summary["counters"]["end_ps"])
    ends = np.where(np.isnan(times), end_ps, starts + times)
    rates = flows["delivered_bytes"].to_numpy() / np.maximum(ends - starts, 1.0)
    # The rate of the network changes where flows start and end.
    at = np.concatenate([[0.0], starts, ends])
    order = np.argsort(at, kind="stable")
    changes = np.cumsum(np.concatenate([[0.0], rates, -rates])[order])
    at = at[order]
    delivered = np.concatenate([[0.0], np.cumsum(changes[:-1] * np.diff(at))])
    edges = np.linspace(*window_ps, BINS + 1)
    return edges, np.interp(edges, at, delivered)
