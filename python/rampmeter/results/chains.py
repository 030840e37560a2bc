"""Chains of flows that waited for each other, and the causes of their times."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rampmeter.on_demand import np, pa
from rampmeter.text.locations import Location

if TYPE_CHECKING:
    from numpy.typing import NDArray

RELEASES: Final = "releases.parquet"
PICOSECONDS_PER_US: Final = 1e6
COMPUTATION: Final = "computation"
CONFIRMATION: Final = "confirmation"


def checked_releases(
    releases: "pa.Table | None", flows: "pa.Table", folder: Path
) -> "pa.Table | None":
    """Returns the releases of the run in `folder`, whose flows are in the order of their numbers.

    Raises `ResultError` if the table is of another run.
    """
    if releases is None:
        return None
    numbers = flows["flow"].to_numpy()
    flow, after = (releases[name].to_numpy() for name in ("flow", "after"))
    is_known = np.isin(flow, numbers) & np.isin(after, numbers)
    if not is_known.all():
        expected, got = "flows of the run", f"flow {flow[~is_known][0]} after {after[~is_known][0]}"
        raise Location(folder / RELEASES).result_error(expected=expected, got=got)
    known = releases["notified_ps"].to_numpy().astype(np.float64)
    arrivals, times = (
        flows[name].to_numpy().astype(np.float64) for name in ("arrival_ps", "fct_ps")
    )
    ends = (arrivals + times)[np.searchsorted(numbers, after)]
    starts = arrivals[np.searchsorted(numbers, flow)]
    for idx in np.flatnonzero(~((ends <= known) & (known <= starts)))[:1]:
        expected = f"a time from {ends[idx]:.0f} to {starts[idx]:.0f} ps for flow {flow[idx]}"
        raise Location(folder / RELEASES).result_error(expected=expected, got=f"{known[idx]:.0f}")
    return releases


@dataclass(frozen=True)
class Release:
    """The end of a flow, for which another one had waited."""

    after: int
    """Number of the flow that ended last of those for which the other one waited."""
    notified_us: float
    """Time at which the sender of the other one knew that end."""
    confirmation_us: float
    """Time from the delivery until then; 0 if the sender is the receiver of `after`."""
    computation_us: float
    """Time from then until the other flow was submitted: computations of the sender, pauses between
    rounds, think and service times of calls."""


@dataclass(frozen=True)
class Chain:
    """Flows of which each waited for the one before, and the causes of the chain's time."""

    flows: tuple[int, ...]
    """Their numbers, the first one first."""
    start_us: float
    """Submission of the first flow."""
    time_us: float
    """Time from then until the last flow was delivered."""
    parts: Mapping[tuple[str, str, str], float]
    """Time in microseconds by cause, stage and tier, the longest first. They sum to `time_us`.

    The causes are those of the flows, `computation` and `confirmation`: the time until a sender
    knew that its own flow was delivered.
    """


class Releases:
    """The releases of the flows of a run that waited for others."""

    def __init__(self, table: "pa.Table | None", flows: "pa.Table") -> None:
        """Takes the rows of `releases.parquet` and the flows of the run, by number."""
        self._flows = {
            name: flows[name].to_numpy().astype(np.float64) for name in ("arrival_ps", "fct_ps")
        }
        self._numbers: NDArray[np.int64] = flows["flow"].to_numpy().astype(np.int64)
        rows = [] if table is None else table.to_pylist()
        self._rows: dict[int, dict[str, Any]] = {row["flow"]: row for row in rows}

    def of(self, flow: int) -> Release | None:
        """Returns the release of a flow; `None` if it waited for none."""
        row = self._rows.get(flow)
        if row is None:
            return None
        notified = row["notified_ps"]
        return Release(
            after=row["after"],
            notified_us=notified / PICOSECONDS_PER_US,
            confirmation_us=(notified - self._end(row["after"])) / PICOSECONDS_PER_US,
            computation_us=(self._time("arrival_ps", flow) - notified) / PICOSECONDS_PER_US,
        )

    def chain(self, flow: int, parts: "pa.Table") -> Chain | None:
        """Returns the chain that ends with a flow; `None` if it waited for none.

        `parts` are the parts of all flows of the run.
        """
        chain = [flow, *self._before(flow)][::-1]
        if len(chain) == 1:
            return None
        times = _sums(parts, chain)
        for number in chain[1:]:
            release = self.of(number)
            assert release is not None
            for cause, time in (
                (COMPUTATION, release.computation_us),
                (CONFIRMATION, release.confirmation_us),
            ):
                times[cause, "", ""] = times.get((cause, "", ""), 0.0) + time
        start = self._time("arrival_ps", chain[0])
        order = sorted(times.items(), key=lambda part: -part[1])
        return Chain(
            tuple(chain),
            start / PICOSECONDS_PER_US,
            (self._end(flow) - start) / PICOSECONDS_PER_US,
            {cause: time for cause, time in order if time > 0},
        )

    def _before(self, flow: int) -> Iterator[int]:
        """Yields the flows for which a flow waited, the last one first."""
        while (row := self._rows.get(flow)) is not None:
            flow = row["after"]
            yield flow

    def _time(self, name: str, flow: int) -> float:
        return float(self._flows[name][np.searchsorted(self._numbers, flow)])

    def _end(self, flow: int) -> float:
        return self._time("arrival_ps", flow) + self._time("fct_ps", flow)


def _sums(parts: "pa.Table", flows: list[int]) -> dict[tuple[str, str, str], float]:
    """Returns the time of some flows in microseconds by cause, stage and tier."""
    is_in = np.isin(parts["flow"].to_numpy(), np.array(flows, np.uint64))
    names = ["cause", "stage", "tier"]
    found = parts.filter(pa.array(is_in)).group_by(names).aggregate([("time_ps", "sum")])
    return {
        (row["cause"], row["stage"], row["tier"]): row["time_ps_sum"] / PICOSECONDS_PER_US
        for row in found.to_pylist()
    }
