"""The ledger: measured values of figures, kept in the repository without the flows behind them.

`papers/ledger/<paper>/<figure>/<run>.json` has the values of one run of a figure, seed by seed, and
what they depend on: the plan, and the recorded results of its transport. An entry is stale if
either has changed since. Every run has as many flows as published.
"""

import hashlib
import json
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias

from rampmeter import _core
from rampmeter._core import ResultError
from rampmeter.papers.claims import ClaimRow, claim_rows
from rampmeter.papers.entry import Entry
from rampmeter.papers.figure import Figure, FigureRun, Mode
from rampmeter.papers.measure import measure
from rampmeter.papers.reproduce import cost_of
from rampmeter.papers.verdict import Row, rows_of
from rampmeter.plan import Plan
from rampmeter.results import Run, read_json
from rampmeter.runner import Job, Outcome, Stop, Watcher, n_cores, run_all

if TYPE_CHECKING:
    from rampmeter._core import Progress

LEDGER = "ledger"
RECORDED = "recorded.json"
"""Digests of results of every transport and preset."""
FULL = Mode("full")
SEEDS = (1, 2, 3)
NOT_RUN = "not run"


@dataclass(frozen=True)
class Wanted:
    """A run of a figure with one seed."""

    figure: Figure
    run: FigureRun
    seed: int

    @property
    def flows(self) -> int | None:
        """Flows of the run: as many as published."""
        return self.run.flows_in(FULL, self.figure.published_flows)

    @cached_property
    def plan(self) -> Plan:
        """The plan of the run."""
        return self.figure.plan_of(self.run, self.flows, self.seed)

    @property
    def name(self) -> str:
        """The name in progress lines."""
        return f"{self.figure.paper} {self.figure.number} {self.run.id} seed {self.seed}"

    @property
    def cost(self) -> float:
        """About the data packets of the run."""
        return cost_of(self.figure, self.run, self.flows)


class Ledger:
    """The entries of figures under a folder `papers`."""

    def __init__(self, root: Path) -> None:
        self.root = root / LEDGER
        self._recorded = read_json(root / RECORDED)
        self._lock = Lock()

    def file_of(self, figure: Figure, run: FigureRun) -> Path:
        """The file of a run."""
        return self.root / figure.paper / figure.folder.name / f"{run.id}.json"

    def entries(self, figure: Figure, run: FigureRun) -> dict[int, Entry]:
        """The entries of a run by seed, stale ones too."""
        file = self.file_of(figure, run)
        if not file.is_file():
            return {}
        tables = read_json(file).get("seeds")
        if not isinstance(tables, list):
            raise ResultError(f"{file}: expected a list of seeds, got {tables}")
        found = [Entry.of_json(table, file) for table in tables]
        return {entry.seed: entry for entry in found}

    def is_current(self, entry: Entry, wanted: Wanted) -> bool:
        """Returns true if neither the plan nor results of its transports have changed."""
        complete = wanted.plan.check()
        return (entry.plan, entry.results) == (
            plan_digest(complete),
            self.results_version(complete),
        )

    def results_version(self, complete: Mapping[str, Any]) -> str:
        """Returns the version of the results of a plan's transports with their presets."""
        transports = complete["transport"]
        tables = transports if isinstance(transports, list) else [transports]
        return _digest([self._recorded[table["name"]][table["preset"]] for table in tables])

    def add(self, wanted: Wanted, done: Run) -> None:
        """Enters what a figure needs of a run, in place of an entry of the same seed."""
        figure, run = wanted.figure, wanted.run
        complete = wanted.plan.check()
        panels = [panel for panel in figure.sub_figures if run.id in panel.runs]
        entry = Entry(
            seed=wanted.seed,
            flows=wanted.flows,
            plan=plan_digest(complete),
            results=self.results_version(complete),
            version=_core.VERSION,
            commit=_core.COMMIT,
            date=datetime.now(UTC).date().isoformat(),
            seconds=round(float(done.manifest["wall_seconds"]), 1),
            cells={panel.id: measure(panel, done, figure.ideal, run.app) for panel in panels},
        )
        with self._lock:
            known = self.entries(figure, run) | {entry.seed: entry}
            _write(self.file_of(figure, run), run.id, (known[seed] for seed in sorted(known)))

    def missing(self, figures: Iterable[Figure]) -> list[Wanted]:
        """Runs without a current entry, the cheapest first; probes of searches are left out."""
        wanted = [
            Wanted(figure, run, seed)
            for figure in figures
            for run in figure.runs
            if run.search is None
            for seed in SEEDS
        ]
        known = {id(one): self.entries(one.figure, one.run).get(one.seed) for one in wanted}
        lacking = [
            one
            for one in wanted
            if (entry := known[id(one)]) is None or not self.is_current(entry, one)
        ]
        return sorted(lacking, key=lambda one: one.cost)

    def rows(self, figure: Figure) -> tuple[list[Row], list[ClaimRow]]:
        """Values and claims of a figure, judged by current entries."""
        current = self.current(figure)
        absent = frozenset(run for run, of in current.items() if not of)
        rows = [
            row
            for panel in figure.sub_figures
            for row in rows_of(figure, panel, current, FULL, (), absent)
        ]
        return rows, claim_rows(figure, rows, FULL, common_seeds(current), absent)

    def current(self, figure: Figure) -> dict[str, dict[int, Entry]]:
        """Current entries of a figure by run and seed."""
        current: dict[str, dict[int, Entry]] = {}
        for run in figure.runs:
            entries = self.entries(figure, run) if run.search is None else {}
            current[run.id] = {
                seed: entry
                for seed, entry in entries.items()
                if self.is_current(entry, Wanted(figure, run, seed))
            }
        return current

    def verdicts(self, figure: Figure) -> Counter[str]:
        """Counts the verdicts on values and claims of a figure; `not run` without an entry."""
        rows, claims = self.rows(figure)
        found = [row.verdict for row in rows if row.fact is not None]
        found += [claim.verdict for claim in claims]
        return Counter(NOT_RUN if verdict == "not judged" else verdict for verdict in found)


@dataclass(frozen=True)
class Filled:
    """The outcome of filling the ledger."""

    n_made: int
    stopped_by: signal.Signals | None
    """The signal that ended it: SIGINT, SIGTERM, or none."""


Watching: TypeAlias = Callable[[list[Job]], AbstractContextManager[Watcher]]
"""Returns a watcher of jobs."""


def fill(ledger: Ledger, missing: Sequence[Wanted], hours: float, watching: Watching) -> Filled:
    """Runs what is missing in its order, until the time is over or a signal comes.

    A run that ends is entered at once. Those that are cut off begin anew the next time.
    """
    stop = Stop(timeout=hours * 3600.0)
    n_made = 0
    size = 4 * n_cores()
    for start in range(0, len(missing), size):
        wanted = {one.name: one for one in missing[start : start + size]}
        with tempfile.TemporaryDirectory(prefix="rampmeter-ledger-") as folder:
            jobs = [
                Job(name, one.plan, Path(folder) / str(n))
                for n, (name, one) in enumerate(wanted.items())
            ]
            with watching(jobs) as watcher:
                entering = _Entering(ledger, wanted, watcher)
                batch = run_all(jobs, entering, stop=stop)
        n_made += entering.n_made
        batch.raise_failures()
        if stop.is_set():
            break
    return Filled(n_made, stop.by)


class _Entering:
    """Enters runs as they end, and passes progress on."""

    def __init__(self, ledger: Ledger, wanted: Mapping[str, Wanted], watcher: Watcher) -> None:
        self._ledger, self._wanted, self._watcher = ledger, wanted, watcher
        self.n_made = 0

    def on_start(self, job: Job) -> None:
        """Called when the job starts."""
        self._watcher.on_start(job)

    def on_progress(self, job: Job, progress: "Progress") -> None:
        """Called some times a second with the progress of the job."""
        self._watcher.on_progress(job, progress)

    def on_end(self, outcome: Outcome) -> None:
        """Called when the job has ended."""
        if outcome.run is not None and outcome.state == "ran":
            self._ledger.add(self._wanted[outcome.job.name], outcome.run)
            self.n_made += 1
            shutil.rmtree(outcome.job.out)
        self._watcher.on_end(outcome)


def common_seeds(current: Mapping[str, Mapping[int, Entry]]) -> list[int]:
    """Returns the seeds that all runs with entries have."""
    common = [set(of) for of in current.values() if of]
    return sorted(set.intersection(*common)) if common else []


def plan_digest(complete: Mapping[str, Any]) -> str:
    """Returns a digest of a complete plan without its seed."""
    return _digest({key: value for key, value in complete.items() if key != "seed"})


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def _write(file: Path, run: str, entries: Iterable[Entry]) -> None:
    """Writes a file with a line for each entry, whole or not at all."""
    lines = (json.dumps(entry.to_json(), allow_nan=False) for entry in entries)
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".part")
    text = f'{{"run": {json.dumps(run)}, "seeds": [\n' + ",\n".join(lines) + "\n]}\n"
    part.write_text(text, encoding="utf-8")
    part.replace(file)
