"""Ratios of our run of recorded flows to the recorded one, and the flows that differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from rampmeter.on_demand import np
from rampmeter.replays.recording import Floats, Recording
from rampmeter.results.run import Run
from rampmeter.text.arguments import argument_error
from rampmeter.text.locations import Location

if TYPE_CHECKING:
    from numpy.typing import NDArray

End: TypeAlias = Literal["acked", "delivered"]
Ideal: TypeAlias = Literal["own", "recorded", "none"]
ENDS: Final[tuple[End, ...]] = get_args(End)
IDEALS: Final[tuple[Ideal, ...]] = get_args(Ideal)

PACKET_BYTES: Final = 1460
"""Bytes of a packet of the size classes."""
CLASSES: Final = ((1, 1), (2, 7), (8, 49), (50, 343), (344, 2401), (2402, 10**9))
"""Packets of the size classes."""
CLASS_NAMES: Final = ("1", "2-7", "8-49", "50-343", "344-2401", "above 2401")
CLASS_MIN: Final = 200
"""Minimum number of flows of the furthest class; smaller classes are only measured."""
PERCENTILES: Final = (50, 99)

SIMULATED: Final[Mapping[End, tuple[str, str]]] = {
    "acked": ("acked_ps", "acked_ideal_ps"),
    "delivered": ("fct_ps", "ideal_ps"),
}
"""Columns of our time and our ideal time."""


@dataclass(frozen=True)
class ComparedTimes:
    """The times that are compared."""

    ends_at: End
    """The end of a flow: `acked` at the sender, or `delivered` at the receiver."""
    ideal: Ideal
    """Ideal times of slowdowns: each simulator's own, the recorded ones, or none (times alone)."""
    from_us: float = 0.0
    """Flows that arrive before this are omitted."""

    @classmethod
    def of(
        cls,
        recording: Recording,
        ends_at: End | None = None,
        ideal: Ideal | None = None,
        from_us: float = 0.0,
    ) -> ComparedTimes:
        """Returns terms with defaults that follow from the recorded columns.

        A table that has `delivered` or `acked` as well is compared at delivery, others at the last
        acknowledgement. Slowdowns are over recorded ideals if there are any.
        """
        if ends_at is None:
            ends_at = "delivered" if {"delivered", "acked"} & recording.times.keys() else "acked"
        has_ideal = "ideal" in recording.times
        if ideal is None:
            ideal = "recorded" if has_ideal else "none"
        if ideal != "none" and not has_ideal:
            raise Location(recording.file).error(expected=f"a column ideal_ps for --ideal {ideal}")
        return cls(ends_at, ideal, from_us)

    def recorded_time(self, recording: Recording) -> str:
        """Returns the recorded time that is compared: the one of the end's name, else `fct`."""
        name = self.ends_at if self.ends_at in recording.times else "fct"
        if name not in recording.times:
            raise Location(recording.file).error(
                expected=f"a column {self.ends_at}_ps or fct_ps for --ends-at {self.ends_at}"
            )
        return name


@dataclass(frozen=True)
class Ratios:
    """Simulated over recorded, of all compared flows and by size class."""

    flows: int
    mean: float | None
    classes: tuple[float | None, ...]
    class_flows: tuple[int, ...]
    furthest: float | None
    """The ratio of the class of at least `CLASS_MIN` flows that is furthest from 1."""
    p50: float | None
    p99: float | None

    def to_json(self) -> dict[str, Any]:
        """Returns the ratios as plain values."""
        return {
            "flows": self.flows,
            "mean": self.mean,
            "classes": list(self.classes),
            "class-flows": list(self.class_flows),
            "furthest": self.furthest,
            "p50": self.p50,
            "p99": self.p99,
        }

    @classmethod
    def of_json(cls, table: Mapping[str, Any]) -> Ratios:
        """Reads ratios; raises `KeyError`, `TypeError` or `ValueError` if they are damaged."""

        def ratio(value: Any) -> float | None:
            return None if value is None else float(value)

        classes = tuple(ratio(value) for value in table["classes"])
        class_flows = tuple(int(value) for value in table["class-flows"])
        if len(classes) != len(CLASSES) or len(class_flows) != len(CLASSES):
            raise ValueError(f"expected {len(CLASSES)} classes, got {len(classes)}")
        return cls(
            int(table["flows"]),
            ratio(table["mean"]),
            classes,
            class_flows,
            *(ratio(table[name]) for name in ("furthest", "p50", "p99")),
        )


@dataclass(frozen=True)
class Flow:
    """A flow of both runs."""

    number: int
    arrival_ps: int
    src: str
    dst: str
    size_bytes: int
    theirs_ps: float
    ours_ps: float

    @property
    def ratio(self) -> float:
        """Simulated time divided by the recorded one."""
        return self.ours_ps / self.theirs_ps

    def to_json(self) -> dict[str, Any]:
        """Returns the flow as plain values; `null` if we have no time."""
        is_finished = bool(np.isfinite(self.ours_ps))
        return {
            "flow": self.number,
            "arrival_ps": self.arrival_ps,
            "src": self.src,
            "dst": self.dst,
            "size_bytes": self.size_bytes,
            "theirs_ps": round(self.theirs_ps),
            "ours_ps": round(self.ours_ps) if is_finished else None,
            "ratio": round(self.ratio, 6) if is_finished else None,
        }


class Replay:
    """The flows of both runs, in our order of arrival."""

    def __init__(self, run: Run, recording: Recording, terms: ComparedTimes) -> None:
        """Reads our run; raises `ResultError` if it is not of the recorded flows."""
        self.run, self.recording, self.terms = run, recording, terms
        recorded_time = terms.recorded_time(recording)
        table = run.flows.sort_by("flow")
        self.numbers: NDArray[np.int64] = table["flow"].to_numpy().astype(np.int64)
        if self.numbers.size and int(self.numbers[-1]) >= recording.n_rows:
            raise Location(run.path).result_error(
                expected=f"the {recording.n_rows} flows of {recording.file}",
                got=f"flow {self.numbers[-1]}",
            )
        self._table = table
        self.sizes: NDArray[np.int64] = table["size_bytes"].to_numpy().astype(np.int64)
        self.arrivals: NDArray[np.int64] = table["arrival_ps"].to_numpy().astype(np.int64)
        time, ideal = SIMULATED[terms.ends_at]
        self.simulated = _floats(table[time])
        at = recording.order[self.numbers]
        if not np.array_equal(recording.sizes[at], self.sizes):
            first = int(np.argmax(recording.sizes[at] != self.sizes))
            raise Location(run.path).result_error(
                expected=f"the flows of {recording.file}",
                got=f"a flow {self.numbers[first]} of another size",
            )
        self.recorded = recording.times[recorded_time][at]
        self.simulated_ideals = _floats(table[ideal])
        self.recorded_ideals: Floats | None = None
        if "ideal" in recording.times:
            self.recorded_ideals = recording.times["ideal"][at]
        in_time = self.arrivals >= terms.from_us * 1e6
        if not in_time.any():
            raise argument_error("from_us", "a time at or before the last arrival", terms.from_us)
        self._is_recorded: NDArray[np.bool_] = in_time & ~np.isnan(self.recorded)
        if terms.ideal != "none" and self.recorded_ideals is not None:
            self._is_recorded &= ~np.isnan(self.recorded_ideals)
        self.n_unrecorded = int((in_time & ~self._is_recorded).sum())
        """Flows without a recorded time; they are omitted."""
        self.compared: NDArray[np.bool_] = self._is_recorded & ~np.isnan(self.simulated)

    def ratios(self) -> Ratios:
        """Returns ratios of mean slowdowns, and of two percentiles."""
        simulated, recorded = self.simulated, self.recorded
        if self.terms.ideal != "none" and self.recorded_ideals is not None:
            own = self.terms.ideal == "own"
            simulated = simulated / (self.simulated_ideals if own else self.recorded_ideals)
            recorded = recorded / self.recorded_ideals
        packets = -(-self.sizes // PACKET_BYTES)

        def mean_ratio(chosen: NDArray[np.bool_]) -> float | None:
            return (
                round(float(simulated[chosen].mean() / recorded[chosen].mean()), 4)
                if chosen.any()
                else None
            )

        def percentile(q: int) -> float | None:
            if not self.compared.any():
                return None
            ratio = np.percentile(simulated[self.compared], q) / np.percentile(
                recorded[self.compared], q
            )
            return round(float(ratio), 4)

        members = [self.compared & (packets >= low) & (packets <= high) for low, high in CLASSES]
        classes = tuple(mean_ratio(of) for of in members)
        counts = tuple(int(of.sum()) for of in members)
        counted = [
            ratio
            for ratio, n in zip(classes, counts, strict=True)
            if ratio is not None and n >= CLASS_MIN
        ]
        furthest = max(counted, key=lambda ratio: abs(ratio - 1), default=None)
        everything = mean_ratio(self.compared)
        p50, p99 = (percentile(q) for q in PERCENTILES)
        return Ratios(int(self.compared.sum()), everything, classes, counts, furthest, p50, p99)

    @cached_property
    def time_ratios(self) -> Floats:
        """Simulated times divided by recorded ones, NaN of flows that are not compared."""
        return np.where(self.compared, self.simulated / self.recorded, np.nan)

    def n_within(self, tolerance: float) -> int:
        """Returns the number of flows whose times differ by at most a share of the recorded one."""
        return int((np.abs(self.time_ratios[self.compared] - 1.0) <= tolerance).sum())

    def furthest_flows(self, n: int) -> list[Flow]:
        """Returns the flows whose times differ by the largest factors, the largest first."""
        factors = np.abs(np.log(self.time_ratios))
        differing = np.flatnonzero(np.nan_to_num(factors) > 0.0)
        order = np.lexsort((self.arrivals[differing], -factors[differing]))
        return self._flows(differing[order[:n]])

    def first_flows(self, n: int, tolerance: float) -> list[Flow]:
        """Returns the earliest flows whose times differ by more than that share."""
        differing = np.flatnonzero(np.nan_to_num(np.abs(self.time_ratios - 1.0)) > tolerance)
        order = np.argsort(self.arrivals[differing], kind="stable")
        return self._flows(differing[order[:n]])

    def unfinished(self) -> list[Flow]:
        """Returns the recorded flows that have no end in our run."""
        return self._flows(np.flatnonzero(self._is_recorded & np.isnan(self.simulated)))

    def ideals(self) -> tuple[float, int] | None:
        """Returns the mean ratio of simulated and recorded ideals, and the number of equal ones."""
        if self.recorded_ideals is None or not self.compared.any():
            return None
        simulated, recorded = (
            self.simulated_ideals[self.compared],
            self.recorded_ideals[self.compared],
        )
        return round(float(np.nanmean(simulated / recorded)), 4), int((simulated == recorded).sum())

    def _flows(self, at: NDArray[np.int64]) -> list[Flow]:
        return [self._flow(int(idx)) for idx in at]

    def _flow(self, at: int) -> Flow:
        return Flow(
            int(self.numbers[at]),
            int(self.arrivals[at]),
            self._host("src", at),
            self._host("dst", at),
            int(self.sizes[at]),
            float(self.recorded[at]),
            float(self.simulated[at]),
        )

    def _host(self, end: str, at: int) -> str:
        named = f"{end}_name"
        if named in self._table.column_names:
            return str(self._table[named][at].as_py())
        return f"h{self._table[end][at].as_py()}"


def _floats(column: Any) -> Floats:
    values: Floats = column.to_numpy().astype(np.float64)
    return values
