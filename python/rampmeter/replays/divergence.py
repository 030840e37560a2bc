"""Divergence of two runs of the same flows: first difference, and the distribution of all."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rampmeter.on_demand import np
from rampmeter.plan.migration import RenamedSetting, present_plan
from rampmeter.replays.compare import Replay
from rampmeter.replays.recording import Floats
from rampmeter.results.blame_difference import SizeDifference, differences
from rampmeter.results.run import Run
from rampmeter.results.slowdown import slowdown_groups
from rampmeter.text.cautions import is_one_sample
from rampmeter.text.locations import Location

if TYPE_CHECKING:
    from numpy.typing import NDArray

IDENTITY: Final = ("version", "commit", "seed")
"""Entries of manifests that differ between versions of the program, or between seeds."""
NAME: Final = "transport.name"


@dataclass(frozen=True)
class PlanDifference:
    """A key that has another value in the second run; `None` if it is missing."""

    key: str
    first: Any
    second: Any


@dataclass(frozen=True)
class FlowDifference:
    """A flow whose times differ."""

    flow: int
    src: str
    dst: str
    size_bytes: int
    arrivals_us: tuple[float, float]
    """Arrival in the first and in the second run."""
    fcts_us: tuple[float | None, float | None]
    """Completion times; `None` if the flow was not delivered."""
    at_us: float
    """The earlier one of both completions."""


class Divergence:
    """The flows that two runs have in common, by their numbers."""

    def __init__(
        self,
        first: Run,
        numbers: NDArray[np.int64],
        times: tuple[Floats, Floats],
        arrivals: tuple[Floats, Floats],
        tolerance: float = 0.0,
    ) -> None:
        """Takes completion times and arrivals in picoseconds, NaN of flows not delivered.

        Times are equal if they differ by at most `tolerance`, a share of the first one.
        """
        flows = first.flows.sort_by("flow")
        at = np.searchsorted(flows["flow"].to_numpy(), numbers)
        self.first, self.numbers, self.times, self.arrivals = first, numbers, times, arrivals
        self._flows = flows.take(at)
        self.sizes: NDArray[np.int64] = self._flows["size_bytes"].to_numpy().astype(np.int64)
        one, two = times
        self.is_delivered: tuple[NDArray[np.bool_], NDArray[np.bool_]]
        self.is_delivered = (~np.isnan(one), ~np.isnan(two))
        both = self.is_delivered[0] & self.is_delivered[1]
        self.deltas: Floats = np.where(both, two - one, np.nan)
        """Completion time in the second run minus that in the first one, in picoseconds."""
        is_far = np.abs(np.nan_to_num(self.deltas)) > tolerance * np.nan_to_num(one)
        moved = arrivals[0] != arrivals[1]
        self.differs: NDArray[np.bool_] = (
            is_far | moved | (self.is_delivered[0] != self.is_delivered[1])
        )
        """True for flows that differ: in completion time, in arrival, or in being delivered."""

    @classmethod
    def of_runs(cls, first: Run, second: Run, tolerance: float = 0.0) -> Divergence:
        """Compares two runs; raises `ResultError` if their flows are not the same."""
        names = ("flow", "src", "dst", "size_bytes", "arrival_ps", "fct_ps")
        one, two = (run.columns(*names).sort_by("flow") for run in (first, second))
        numbers, at_one, at_two = np.intersect1d(
            one["flow"].to_numpy(), two["flow"].to_numpy(), return_indices=True
        )
        for name in ("src", "dst", "size_bytes"):
            values = one[name].to_numpy()[at_one], two[name].to_numpy()[at_two]
            if (values[0] != values[1]).any():
                idx = int(np.argmax(values[0] != values[1]))
                raise Location(second.path).result_error(
                    expected=f"the flows of {first.path}",
                    got=f"flow {numbers[idx]} with {name} {values[1][idx]} instead of "
                    f"{values[0][idx]}",
                )
        if not numbers.size:
            expected = f"the flows of {first.path}"
            raise Location(second.path).result_error(expected=expected, got="none of them")

        def both(name: str) -> tuple[Floats, Floats]:
            return _floats(one[name])[at_one], _floats(two[name])[at_two]

        found = cls(first, numbers.astype(np.int64), both("fct_ps"), both("arrival_ps"), tolerance)
        found.n_alone = (one.num_rows - len(numbers), two.num_rows - len(numbers))
        return found

    @classmethod
    def of_replay(cls, replay: Replay, tolerance: float = 0.0) -> Divergence:
        """Compares a run with the recorded times of its flows, those that have one."""
        is_recorded = ~np.isnan(replay.recorded)
        if not is_recorded.any():
            raise Location(replay.run.path).result_error(
                expected="flows that both have", got="no recorded time of any flow"
            )
        numbers, arrivals = replay.numbers[is_recorded], replay.arrivals[is_recorded].astype(float)
        times = replay.simulated[is_recorded], replay.recorded[is_recorded]
        found = cls(replay.run, numbers, times, (arrivals, arrivals), tolerance)
        found.n_alone = (int((~is_recorded).sum()), 0)
        return found

    n_alone: tuple[int, int] = (0, 0)
    """Flows that only the first run has, and those that only the second one has."""

    @property
    def n_differing(self) -> int:
        """Number of common flows that differ."""
        return int(self.differs.sum())

    @property
    def is_equal(self) -> bool:
        """True if both have the same flows with the same times."""
        return self.n_differing == 0 and self.n_alone == (0, 0)

    def first_flow(self) -> FlowDifference | None:
        """Returns the flow whose completion, in either run, is the first one that differs."""
        if not self.n_differing:
            return None
        ends = [
            np.where(np.isnan(time), np.inf, arrival + time)
            for time, arrival in zip(self.times, self.arrivals, strict=True)
        ]
        at = np.where(self.differs, np.minimum(*ends), np.inf)
        # Of flows that neither run delivered, the arrivals differ.
        idx = int(np.lexsort((self.numbers, at, ~self.differs))[0])
        row = {name: self._flows[name][idx].as_py() for name in self._flows.column_names}
        fcts = [float(time[idx]) / 1e6 for time in self.times]
        arrivals = [float(arrival[idx]) / 1e6 for arrival in self.arrivals]
        return FlowDifference(
            int(self.numbers[idx]),
            str(row.get("src_name", f"host {row['src']}")),
            str(row.get("dst_name", f"host {row['dst']}")),
            int(self.sizes[idx]),
            (arrivals[0], arrivals[1]),
            (_known(fcts[0]), _known(fcts[1])),
            float(at[idx]) / 1e6,
        )

    def by_size(self) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        """Yields label and flows of each size class of the first run, then all."""
        groups = slowdown_groups(self.first.summary)
        uppers = [group.upper_bytes for group in groups if group.upper_bytes is not None]
        place = np.searchsorted(np.array(uppers, np.int64), self.sizes)
        for idx, group in enumerate(groups):
            yield group.label, place == idx
        yield "all", np.ones(len(place), bool)


def plan_differences(first: Run, second: Run) -> list[PlanDifference]:
    """Returns the keys of plans that differ, and differing seeds, versions and commits.

    Plans of earlier versions are compared with the present names and units of keys. Of different
    transports only their names are compared.
    """
    found = []
    for name in IDENTITY:
        values = first.manifest.get(name), second.manifest.get(name)
        if values[0] != values[1]:
            found.append(PlanDifference(name, *values))
    plans = [dict(_keys(present_plan(run.manifest["plan"])[0])) for run in (first, second)]
    for key in dict.fromkeys((*plans[0], *plans[1])):
        values = plans[0].get(key), plans[1].get(key)
        is_of_transport = key.startswith("transport.") and key != NAME
        if is_of_transport and plans[0].get(NAME) != plans[1].get(NAME):
            continue
        if values[0] != values[1] and key not in IDENTITY:
            found.append(PlanDifference(key, *values))
    return found


def renamed_settings(run: Run) -> list[RenamedSetting]:
    """Returns the settings of a run's plan that have other names now."""
    return present_plan(run.manifest["plan"])[1]


def cause_differences(first: Run, second: Run) -> list[SizeDifference]:
    """Returns differences of slowdown by cause, second minus first; none if one has no causes.

    They are over the flows that count in both runs.
    """
    if first.blame is None or second.blame is None:
        return []
    n = 1 + max(int(one.numbers.max(initial=-1)) for one in (first.blame, second.blame))
    counted = np.ones(n, bool)
    for one in (first.blame, second.blame):
        own = np.zeros(n, bool)
        own[one.numbers[one.counted]] = True
        counted &= own
    is_single = is_one_sample(first.summary) or is_one_sample(second.summary)
    return differences([(second.blame, first.blame, counted)], is_one_sample=is_single)


def _keys(table: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Yields dotted keys and their values; lists are values."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _keys(value, f"{path}{key}.")
        elif value is not None:
            yield f"{path}{key}", json.dumps(value) if isinstance(value, list) else value


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value


def _floats(column: Any) -> Floats:
    values: Floats = column.to_numpy().astype(np.float64)
    return values
