"""Runs a plan through several transports and seeds, so that they can be compared."""

import math
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias

from rampmeter._core import PlanError
from rampmeter.analysis.confidence import SEEDS_FIRST, SEEDS_MAX, Interval, next_count
from rampmeter.choices.naming import TransportChoice
from rampmeter.choices.seeds import Seeds, extended, listed
from rampmeter.plan.plan import Plan
from rampmeter.results.comparison import Comparison
from rampmeter.results.missing import COMPARISON
from rampmeter.results.run import Run
from rampmeter.results.same_flows import Failures
from rampmeter.running.folder_lock import lock_folder
from rampmeter.running.run_length import FLOWS, RunLength
from rampmeter.running.runner import (
    Batch,
    Job,
    JobOutcome,
    naming_errors,
    reject_other_kinds,
)
from rampmeter.text.cautions import Caution

PILOTS: Final = "pilots"
"""Folder of the runs by which the number of flows is chosen."""
RunJobs: TypeAlias = Callable[[list[Job]], Batch]
"""Runs jobs, such as `runner.run_all`."""


@dataclass(frozen=True)
class ComparisonJob:
    """Transports to compare with one plan, and the folder of their results."""

    plan: Plan
    choices: Sequence[TransportChoice]
    folder: Path
    seeds: Seeds | None = None
    """Number of seeds of each transport, from the plan's on, or the seeds. If it is `None`, one, or
    as many as the precision requires."""
    precision: float | None = None
    """Half the width that the intervals of mean slowdowns may have, as a share of the mean."""
    failures: Failures = "excluded"
    force: bool = False
    """Replaces results of other plans."""
    run_length: RunLength | None = None
    """Numbers of flows among which pilots choose; `None` for the flows of the plan."""

    def run(self, run_jobs: RunJobs) -> tuple[Comparison | None, Batch]:
        """Runs jobs without results, with more seeds until the intervals are small enough.

        The comparison has the transports of which all runs are complete; it is `None` if there are
        none. Raises the errors of `run_all`, and `ResultError` if the folder has other results, or
        if another run writes to it.
        """
        reject_other_kinds(self.folder, kind=COMPARISON)
        try:
            with lock_folder(self.folder):
                if self.run_length is not None:
                    return self._run_with_length(self.run_length, run_jobs)
                return self._run(run_jobs)
        except PlanError:
            # The lock has made the folder if there was none. One with files remains.
            with suppress(OSError):
                self.folder.rmdir()
            raise

    def _run(self, run_jobs: RunJobs) -> tuple[Comparison | None, Batch]:
        outcomes: list[JobOutcome] = []
        seconds = 0.0
        n_done, n_seeds = 0, len(self._listed)
        while True:
            batch = run_jobs([*self._jobs(range(n_done, n_seeds))])
            outcomes += batch.outcomes
            seconds += batch.wall_seconds
            batch = Batch(tuple(outcomes), batch.stopped_by, seconds)
            comparison = self._comparison(batch, n_seeds)
            is_complete = len(batch.runs()) == len(outcomes)
            more = self._seeds_needed(comparison) if comparison and is_complete else None
            if more is None:
                return comparison, batch
            n_done, n_seeds = n_seeds, more

    def _run_with_length(
        self, length: RunLength, run_jobs: RunJobs
    ) -> tuple[Comparison | None, Batch]:
        """Runs like `run`, with the flows of the first pilots that are all long enough."""
        flows = length.first
        while True:
            job = replace(self, plan=self.plan.with_((FLOWS, flows)), run_length=None)
            if flows >= length.flows_max:
                return job._run(run_jobs)
            folder = self.folder / PILOTS / str(flows)
            plan = job.plan.with_(("seed", self._seed(0)))
            pilots = replace(job, plan=plan, folder=folder, seeds=None, precision=None)
            comparison, batch = pilots._run(run_jobs)
            if comparison is None or len(comparison.labels) < len(self.choices):
                return None, batch
            runs = [(label, run) for label, of in comparison.runs.items() for run in of]
            if all(length.is_enough(run.summary, label) for label, run in runs):
                # These runs are those of the first seed.
                for pilot, first in zip(pilots._jobs(range(1)), job._jobs(range(1)), strict=True):
                    if not first.out.exists():
                        partial = first.out.with_name(f"{first.out.name}.partial")
                        shutil.copytree(pilot.out, partial, dirs_exist_ok=True)
                        partial.rename(first.out)
                return job._run(run_jobs)
            flows = length.after(flows)

    def warnings(self, comparison: Comparison) -> list[Caution]:
        """Returns a warning for each transport whose interval is wider than the precision."""
        precision = self.precision
        if precision is None:
            return []
        return [
            Caution(
                f"The interval of {label}'s mean slowdown is {mean.relative:.3f} of the mean, "
                f"wider than {precision:g}, with {mean.n} seeds. At most {SEEDS_MAX} are run.",
                "wide-interval",
                {"transport": label, "ci_percent": 100 * mean.relative, "seeds": mean.n},
            )
            for label, mean in self._means(comparison).items()
            if mean.relative is not None and not mean.is_within(precision)
        ]

    def _seeds_needed(self, comparison: Comparison) -> int | None:
        """Returns the number of seeds that the precision requires; `None` if there are enough."""
        if self.precision is None:
            return None
        # An infinite mean has no interval for any number of seeds.
        finite = [m for m in self._means(comparison).values() if math.isfinite(m.mean)]
        return next_count(finite, self.precision)

    @staticmethod
    def _means(comparison: Comparison) -> dict[str, Interval]:
        return {label: comparison.slowdowns(label)[-1].mean for label in comparison.labels}

    @property
    def _is_single(self) -> bool:
        return self.seeds is None and self.precision is None

    def _jobs(self, numbers: range) -> Iterator[Job]:
        # With a table `load` all plans count the same packets.
        has_transport = self.plan.get("transport") is not None
        counted = None
        if self.plan.get("load") is None:
            counted = self._packet(self.plan if has_transport else self.choices[0].of(self.plan))
        for choice in self.choices:
            plan = choice.of(self.plan)
            with naming_errors(choice.label):
                is_other = counted is not None and self._packet(plan) != counted
            if counted is not None and is_other:
                payload, header = counted
                plan = plan.with_(("load.payload-bytes", payload), ("load.header-bytes", header))
            for number in numbers:
                folder = self.folder / choice.folder
                if not self._is_single:
                    folder /= f"seed-{self._seed(number)}"
                name = self._name(choice, number)
                yield Job(name, plan.with_(("seed", self._seed(number))), folder, self.force)

    @staticmethod
    def _packet(plan: Plan) -> tuple[int, int]:
        """Returns the payload and headers in bytes of the full packets of a plan's transport."""
        derived = plan.derived()
        payload = int(derived["payload-bytes"])
        return payload, int(derived["packet-bytes"]) - payload

    def _name(self, choice: TransportChoice, number: int) -> str:
        if self._is_single:
            return choice.label
        return f"{choice.label} seed {self._seed(number)}"

    @property
    def _listed(self) -> tuple[int, ...]:
        """The seeds that each transport has at first."""
        by_default = 1 if self.precision is None else SEEDS_FIRST
        return listed(by_default if self.seeds is None else self.seeds, self.plan.seed)

    def _seed(self, number: int) -> int:
        """Returns a seed by its number, from 0."""
        return extended(self._listed, number + 1)[number]

    def _comparison(self, batch: Batch, n_seeds: int) -> Comparison | None:
        complete = batch.runs()
        runs: dict[str, list[Run]] = {}
        for choice in self.choices:
            names = [self._name(choice, number) for number in range(n_seeds)]
            if all(name in complete for name in names):
                runs[choice.label] = [complete[name] for name in names]
        return Comparison(runs, failures=self.failures) if runs else None
