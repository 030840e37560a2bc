"""Run lengths of `flows = "auto"`: pilots of growing length, until one is long enough.

A pilot is the run of a point with the first seed. All points have a pilot with `workload.flows`
flows, then those with twice as many that need them. A pilot is long enough if half the interval of
its mean slowdown (by batch means) is within the precision, and no warning calls it too short. A
longer run begins with the flows of a shorter one. All transports of a point have the same number of
flows, so that they are compared by the same ones: that of the transport that needs most.

Pilots are stored. So a sweep that is continued and its shards choose the same lengths. The last
pilot of a point is its run of the first seed.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from rampmeter.running.run_length import RunLength
from rampmeter.sweeps.dataset import PILOTS, RUNS, Dataset
from rampmeter.sweeps.drive import Driver, DriverOutcome
from rampmeter.sweeps.spec import Replication, Sweep
from rampmeter.text.numbers import count, counted


@dataclass
class ChosenLengths:
    """The numbers of flows of points."""

    flows: dict[int, int] = field(default_factory=dict)
    """By the number of the point."""
    at_most: list[int] = field(default_factory=list)
    """Points for which the maximum is not enough."""
    outcome: DriverOutcome | None = None
    """The outcome of pilots that were stopped or failed, so that lengths are missing."""

    def text(self) -> str:
        """Returns a sentence about the lengths."""
        low, high = min(self.flows.values()), max(self.flows.values())
        span = count(low) if low == high else f"{count(low)} to {count(high)}"
        missed = f"; not enough at {counted(len(self.at_most), 'point')}" if self.at_most else ""
        return f"runs have {span} flows{missed}"


def choose_lengths(
    sweep: Sweep,
    length: RunLength,
    dataset: Dataset,
    points: Iterable[int],
    run: Callable[[Driver, str], DriverOutcome] | None,
) -> ChosenLengths:
    """Chooses the number of flows of points; `run` makes pilots that are not stored.

    Without `run`, points whose pilots are missing have the maximum. Raises `PlanError` if the
    arrivals of a point are not a stationary process, whose runs have no interval.
    """
    n_transports = len(sweep.transports)
    groups = sorted({number // n_transports for number in points})
    pilots = replace(sweep, replication=Replication(sweep.replication.seeds[:1]))
    chosen = ChosenLengths()
    flows = length.first
    while groups:
        numbers = [group * n_transports + idx for group in groups for idx in range(n_transports)]
        lengths = dict.fromkeys(numbers, flows)
        kind = f"{PILOTS}/{flows}"
        driver = Driver(pilots.with_lengths(lengths), dataset, points=numbers, kind=kind)
        if driver.n_todo:
            if run is None:
                chosen.flows |= dict.fromkeys(numbers, length.flows_max)
                return chosen
            outcome = run(
                driver, f"pilots of {count(flows)} flows: {counted(driver.n_todo, 'run')}"
            )
            if not outcome.is_complete:
                chosen.outcome = outcome
                return chosen
        enough = _enough(pilots, dataset, kind, numbers, length)
        short = sorted({number // n_transports for number in numbers if not enough[number]})
        if flows >= length.flows_max:
            chosen.at_most = [number for number in numbers if not enough[number]]
            short = []
        chosen.flows |= {n: flows for n in numbers if n // n_transports not in short}
        groups, flows = short, length.after(flows)
    return chosen


def _enough(
    sweep: Sweep, dataset: Dataset, kind: str, numbers: Sequence[int], length: RunLength
) -> dict[int, bool]:
    """Returns for each point whether its pilot is long enough."""
    (seed,) = sweep.replication.seeds
    rows = dataset.table(kind, [(number, seed) for number in numbers]).to_pylist()
    return {
        row["point"]: length.is_enough(json.loads(row["summary"]), sweep.points[row["point"]].name)
        for row in rows
    }


def store_last_pilots(sweep: Sweep, dataset: Dataset, chosen: ChosenLengths) -> None:
    """Stores the last pilots as the runs of the first seed that they are."""
    seed = sweep.replication.seeds[0]
    done = dataset.done()
    for number, flows in chosen.flows.items():
        if (number, seed) not in done:
            dataset.copy(f"{PILOTS}/{flows}", RUNS, number, seed)
