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
from rampmeter.papers.ledger import Ledger, Wanted
from rampmeter.runner import Job, Outcome, Stop, Watcher, n_cores, run_all

if TYPE_CHECKING:
    from rampmeter._core import Progress


@dataclass(frozen=True)
class Filled:
    """The outcome of filling the ledger."""

    n_made: int
    n_left: int
    """Runs that are still missing; a search counts as one for each seed."""
    stopped_by: signal.Signals | None
    """The signal that ended it: SIGINT, SIGTERM, or none."""


Watching: TypeAlias = Callable[[list[Job]], AbstractContextManager[Watcher]]
"""Returns a watcher of jobs."""


def fill(ledger: Ledger, figures: Sequence[Figure], hours: float, watching: Watching) -> Filled:
    """Runs missing entries, the cheapest first, until the time is over or a signal arrives.

    A run that ends is entered at once. An interrupted one starts again the next time. The next
    probe of a search depends on the entry of the last one.
    """
    stop = Stop(timeout=hours * 3600.0)
    n_made = 0
    size = 4 * n_cores()
    missing = [one for figure in figures for one in ledger.missing(figure)]
    while missing and not stop.is_set():
        missing.sort(key=lambda one: one.cost)
        wanted = {one.name: one for one in missing[:size]}
        with tempfile.TemporaryDirectory(prefix="rampmeter-ledger-") as folder:
            jobs = [
                Job(name, one.plan, Path(folder) / str(n))
                for n, (name, one) in enumerate(wanted.items())
            ]
            with watching(jobs) as watcher:
                entering = _Entering(ledger, wanted, watcher)
                batch = run_all(jobs, entering, stop=stop)
        n_made += len(entering.made)
        batch.raise_failures()
        missing = [one for one in missing if one.name not in entering.made]
        for figure in {one.figure.folder: one.figure for one in entering.searched}.values():
            known = {one.name for one in missing}
            missing += [one for one in ledger.missing(figure) if one.name not in known]
    return Filled(n_made, len(missing), stop.by)


class _Entering:
    """Enters runs as they end, and passes progress on."""

    def __init__(self, ledger: Ledger, wanted: Mapping[str, Wanted], watcher: Watcher) -> None:
        self._ledger, self._wanted, self._watcher = ledger, wanted, watcher
        self.made: set[str] = set()
        self.searched: list[Wanted] = []
        """Probes that have been entered."""

    def on_start(self, job: Job) -> None:
        """Called when the job starts."""
        self._watcher.on_start(job)

    def on_progress(self, job: Job, progress: "Progress") -> None:
        """Called some times a second with the progress of the job."""
        self._watcher.on_progress(job, progress)

    def on_end(self, outcome: Outcome) -> None:
        """Called when the job has ended."""
        if outcome.run is not None and outcome.state == "ran":
            wanted = self._wanted[outcome.job.name]
            self._ledger.add(wanted, outcome.run)
            self.made.add(outcome.job.name)
            if wanted.load is not None:
                self.searched.append(wanted)
            shutil.rmtree(outcome.job.out)
        self._watcher.on_end(outcome)
