"""Fills the ledger: runs missing entries, the cheapest first."""

import shutil
import signal
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from rampmeter.papers.figure import Figure
from rampmeter.papers.ledger import Ledger, MissingRun
from rampmeter.running.runner import Job, JobOutcome, JobWatcher, StopCondition, n_cores, run_all

if TYPE_CHECKING:
    from rampmeter._core import Progress


@dataclass(frozen=True)
class FillResult:
    """Result of a fill of the ledger."""

    n_made: int
    n_left: int
    """Runs that are still missing; a search counts as one for each seed."""
    stopped_by: signal.Signals | None
    """The signal that ended it: SIGINT, SIGTERM, or none."""


Watching: TypeAlias = Callable[[list[Job]], AbstractContextManager[JobWatcher]]
"""Returns a watcher of jobs."""


def fill(ledger: Ledger, figures: Sequence[Figure], hours: float, watching: Watching) -> FillResult:
    """Runs missing entries, the cheapest first, until the time has expired or a signal arrives.

    A run that ends is entered at once. An interrupted one starts again the next time. The next
    probe of a search depends on the entry of the last one.
    """
    stop = StopCondition(timeout=hours * 3600.0)
    n_made = 0
    size = 32 * n_cores()
    missing = [one for figure in figures for one in ledger.missing(figure)]
    while missing and not stop.is_set():
        missing.sort(key=lambda one: one.cost)
        batch_runs = {one.name: one for one in missing[:size]}
        with tempfile.TemporaryDirectory(prefix="rampmeter-ledger-") as folder:
            jobs = [
                Job(name, one.plan, Path(folder) / str(n))
                for n, (name, one) in enumerate(batch_runs.items())
            ]
            with watching(jobs) as watcher:
                entering = _LedgerWriter(ledger, batch_runs, watcher)
                batch = run_all(jobs, entering, stop=stop)
        n_made += len(entering.made)
        batch.raise_failures()
        missing = [one for one in missing if one.name not in entering.made]
        for figure in {one.figure.folder: one.figure for one in entering.searched}.values():
            names = {one.name for one in missing}
            missing += [one for one in ledger.missing(figure) if one.name not in names]
    return FillResult(n_made, len(missing), stop.by)


class _LedgerWriter:
    """Watcher that enters completed runs in the ledger, and forwards progress."""

    def __init__(
        self, ledger: Ledger, missing: Mapping[str, MissingRun], watcher: JobWatcher
    ) -> None:
        self._ledger, self._missing, self._watcher = ledger, missing, watcher
        self.made: set[str] = set()
        self.searched: list[MissingRun] = []
        """Probes that have been entered."""

    def on_start(self, job: Job) -> None:
        """Forwards the start of a job."""
        self._watcher.on_start(job)

    def on_progress(self, job: Job, progress: "Progress") -> None:
        """Forwards the progress of a job."""
        self._watcher.on_progress(job, progress)

    def on_end(self, outcome: JobOutcome) -> None:
        """Enters the results of a job, and forwards its end."""
        if outcome.run is not None and outcome.state == "ran":
            missing = self._missing[outcome.job.name]
            self._ledger.add(missing, outcome.run)
            self.made.add(outcome.job.name)
            if missing.load is not None:
                self.searched.append(missing)
            shutil.rmtree(outcome.job.out)
        self._watcher.on_end(outcome)
