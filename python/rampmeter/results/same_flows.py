"""The flows of one plan under several transports, matched by their numbers, and their slowdown."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from rampmeter import _core
from rampmeter.on_demand import np, pa
from rampmeter.results.run import Run
from rampmeter.results.scope import counted_until, warm_up_flows
from rampmeter.results.slowdown import Group, overall_slowdown, slowdown_groups
from rampmeter.text.locations import Location

if TYPE_CHECKING:
    from numpy.typing import NDArray

Failures: TypeAlias = Literal["excluded", "infinite"]
"""Flows that some transport did not deliver: left out everywhere, or infinitely slow there."""
FAILURES: tuple[Failures, ...] = get_args(Failures)
Floats: TypeAlias = "NDArray[np.float64]"


class SameFlows:
    """The flows of one seed under every transport, by their numbers."""

    def __init__(self, runs: Mapping[str, Run], failures: Failures) -> None:
        self._runs = runs
        names = ("flow", "size_bytes", "src", "dst", "arrival_ps", "fct_ps", "ideal_ps")
        tables = {label: run.columns(*names) for label, run in runs.items()}
        n = max(_n_flows(table) for table in tables.values())
        self._fct: dict[str, Floats] = {}
        self._ideal: dict[str, Floats] = {}
        self.sizes = np.full(n, -1, np.int64)
        endpoints = np.full((2, n), -1, np.int64)
        excluded = np.zeros(n, bool)
        for label, table in tables.items():
            at = table["flow"].to_numpy()
            same = [(self.sizes, "size_bytes"), (endpoints[0], "src"), (endpoints[1], "dst")]
            for known, name in same:
                _fill(known, at, table[name].to_numpy(), label)
            self._fct[label] = _by_number(n, at, table["fct_ps"])
            self._ideal[label] = _by_number(n, at, table["ideal_ps"])
            arrival = _by_number(n, at, table["arrival_ps"])
            until = counted_until(runs[label].manifest, arrival)
            excluded |= arrival + self._fct[label] >= until
        self.first = max(map(_warm_up, runs.values()))
        excluded[: self.first] = True
        if failures == "excluded":
            for fct in self._fct.values():
                excluded |= np.isnan(fct)
        # Negative sizes are computations, on which others depend, and no flows.
        excluded |= self.sizes < 0
        self.counted: NDArray[np.bool_] = ~excluded

    def is_delivered(self, *labels: str) -> "NDArray[np.bool_]":
        """Returns true for the flows that all of some transports delivered, by number."""
        found: NDArray[np.bool_] = ~np.any([np.isnan(self._fct[one]) for one in labels], axis=0)
        return found

    def fct(self, label: str) -> Floats:
        """Returns completion times of the flows that count, in picoseconds."""
        fct = self._fct[label][self.counted]
        return np.where(np.isnan(fct), math.inf, fct)

    def nfct(self, label: str) -> float | None:
        """Returns the mean completion time over mean ideal."""
        ideal = float(self._ideal[label][self.counted].sum())
        return float(self.fct(label).sum()) / ideal if ideal > 0 else None

    def groups(self, label: str) -> list[Group]:
        """Returns slowdown by size in multiples of one BDP, and of all flows."""
        first = next(iter(self._runs.values()))
        summary = self._runs[label].summary
        bins = slowdown_groups(first.summary)
        everything = overall_slowdown(summary)
        if self._matches_summary(summary, bins):
            return [*slowdown_groups(summary), everything]
        sizes, fct = self.sizes[self.counted], self.fct(label)
        ideal = self._ideal[label][self.counted]
        slowdown = np.divide(fct, ideal, out=np.full(fct.shape, math.nan), where=ideal > 0)
        uppers = [group.upper_bytes for group in bins if group.upper_bytes is not None]
        place = np.searchsorted(np.array(uppers, np.int64), sizes)
        # If the simulator reports intervals, flows are of one steady process.
        steady = bool(everything.ci)
        each = [
            _group(slowdown[place == idx], one.label, one.upper_bytes, is_steady=steady)
            for idx, one in enumerate(bins)
        ]
        return [*each, _group(slowdown, everything.label, None, is_steady=steady)]

    def _matches_summary(self, summary: Mapping[str, Any], bins: Sequence[Group]) -> bool:
        """Returns true if a summary's statistics are over the same flows and bins as these are."""
        own = slowdown_groups(summary)
        edges = [group.upper_bytes for group in bins]
        return (
            [group.upper_bytes for group in own] == edges
            and overall_slowdown(summary).count == int(self.counted.sum())
            and all(not np.isnan(fct[self.counted]).any() for fct in self._fct.values())
            and {_warm_up(run) for run in self._runs.values()} == {self.first}
        )


def _n_flows(table: "pa.Table") -> int:
    numbers = table["flow"].to_numpy()
    return int(numbers.max()) + 1 if numbers.size else 0


def _by_number(n: int, at: "NDArray[Any]", column: "pa.ChunkedArray[Any]") -> Floats:
    values = np.full(n, math.nan)
    values[at] = column.to_numpy().astype(np.float64)
    return values


def _fill(
    known: "NDArray[np.int64]", at: "NDArray[Any]", values: "NDArray[Any]", label: str
) -> None:
    """Records values by number; raises if different ones are recorded."""
    new = values.astype(np.int64)
    before = known[at]
    if ((before >= 0) & (before != new)).any():
        raise Location(key=label).result_error(
            expected="the same flows as in the runs before", got="others"
        )
    known[at] = new


def _warm_up(run: Run) -> int:
    return warm_up_flows(run.summary, run.manifest)


def _group(slowdown: Floats, label: str, upper_bytes: int | None, *, is_steady: bool) -> Group:
    """Returns statistics of slowdowns, as the simulator computes them for a steady process."""
    values = slowdown[~np.isnan(slowdown)]
    return Group.of(_core.statistics(values.tobytes(), is_steady), label, upper_bytes)
