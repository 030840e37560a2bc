"""The ledger: measured values of figures, in the repository without the underlying flows.

`papers/ledger/<paper>/<figure>/<run>.json` has the values of one run of a figure, or of the probes
of one search, seed by seed. Each entry has digests of its dependencies: the plan, the recorded
results of its transports, and the definitions of its values. It is stale if one has changed since.

A full run has as many flows as published, a pilot run at most 10 % of them (`Mode`). A run counts
if it has current entries of all seeds. Pilot runs replace missing full runs, and their values are
marked. Their entries stay when full runs have been entered, and show the bias of pilot runs.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias

from rampmeter.papers.claims import ClaimRow, claim_rows
from rampmeter.papers.entry import Entry, run_provenance
from rampmeter.papers.figure import Figure, FigureRun, Mode, SubFigure
from rampmeter.papers.measure import CellValues, measure
from rampmeter.papers.metrics import METRICS
from rampmeter.papers.reproduce import cost_of, job_name, probe_name
from rampmeter.papers.search import SearchProbes
from rampmeter.papers.series import Series, series_of
from rampmeter.papers.verdict import PILOT, Basis, ValueRow, rows_of
from rampmeter.plan.plan import Plan
from rampmeter.results.run import Run
from rampmeter.text.files import write_text
from rampmeter.text.json_object import read_json
from rampmeter.text.locations import Location

LEDGER = "ledger"
RECORDED = "recorded.json"
"""Digests of results of every transport and preset."""
MIXED = "mixed"
"""Key of recorded results between hosts of several rates."""
LINKS = "links"
"""Kind of topologies whose links are listed."""
FULL = Mode("full")
SEEDS = (1, 2, 3)


EntriesBySeed: TypeAlias = Mapping[int, Entry | SearchProbes]
"""Entries, or probes of searches, by seed."""


FileState: TypeAlias = tuple[int, int, int]
"""The number, time of change and size of a file."""


@dataclass(frozen=True)
class Current:
    """Current entries of a figure, and the basis of verdicts on them."""

    runs: Mapping[str, EntriesBySeed]
    """Entries of all seeds, or probes of searches that have ended, by run; empty without them."""
    basis: Basis


@dataclass(frozen=True)
class MissingRun:
    """A run of a figure with one seed, or a probe of a search, without an entry."""

    figure: Figure
    run: FigureRun
    seed: int
    load: float | None = None
    """Load of the probe; `None` of other runs."""
    mode: Mode = FULL

    @property
    def flows(self) -> int | None:
        """Flows of the run: as many as published, or fewer in a pilot run."""
        return self.run.flows_in(self.mode, self.figure.published_flows)

    @cached_property
    def plan(self) -> Plan:
        """The plan of the run."""
        return self.figure.plan_of(self.run, self.flows, self.seed, self.load)

    def complete_plan(self) -> dict[str, Any]:
        """Returns the plan of the run with all defaults."""
        return self.figure.complete_plan_of(self.run, self.flows, self.seed, self.load)

    @property
    def name(self) -> str:
        """The name in progress lines."""
        figure = f"{self.figure.paper} {self.figure.number}"
        if self.mode == PILOT:
            figure += " pilot"
        if self.load is not None:
            return f"{figure} {probe_name(self.run.id, self.load, self.seed)}"
        return f"{figure} {job_name(self.run.id, self.seed)}"

    @property
    def cost(self) -> float:
        """Estimated number of data packets of the run."""
        return cost_of(self.figure, self.run, self.flows)


class Ledger:
    """The entries of figures under a folder `papers`."""

    def __init__(self, root: Path) -> None:
        self.root = root / LEDGER
        self._recorded = read_json(root / RECORDED)
        self._lock = Lock()
        self._versions: dict[tuple[Path, str, float | None, Mode], tuple[str, str]] = {}
        self._values: dict[tuple[Path, str], str] = {}
        self._read: dict[Path, tuple[FileState, list[Entry]]] = {}
        """Entries by file, with the state in which the file was read."""

    def file_of(self, figure: Figure, run: FigureRun) -> Path:
        """Returns the file of a run."""
        return self.root / figure.paper / figure.folder.name / f"{run.id}.json"

    def entries(self, figure: Figure, run: FigureRun) -> list[Entry]:
        """Returns the entries of a run, stale ones too."""
        file = self.file_of(figure, run)
        if not file.is_file():
            return []
        found = file.stat()
        state = (found.st_ino, found.st_mtime_ns, found.st_size)
        before, entries = self._read.get(file, (None, []))
        if before != state:
            tables = read_json(file).get("seeds")
            if not isinstance(tables, list):
                raise Location(file).result_error(expected="a list of seeds", got=tables)
            entries = [Entry.of_json(table, file) for table in tables]
            self._read[file] = state, entries
        return [*entries]

    def is_current(self, entry: Entry, figure: Figure, run: FigureRun) -> bool:
        """Returns true if the entry's dependencies have not changed."""
        mode = self.mode_of(entry, figure, run)
        if mode is None or entry.values != self._values_digest(figure, run):
            return False
        # Digests of plans are without seeds.
        missing = MissingRun(figure, run, SEEDS[0], entry.load, mode)
        return (entry.plan, entry.results) == self.versions(missing)

    def _values_digest(self, figure: Figure, run: FigureRun) -> str:
        key = (figure.folder, run.id)
        if key not in self._values:
            self._values[key] = values_digest(figure, run)
        return self._values[key]

    def mode_of(self, entry: Entry, figure: Figure, run: FigureRun) -> Mode | None:
        """Returns if an entry is of a full or of a pilot run; `None` if its flows are of neither.

        A run with few flows is a full one.
        """
        by_flows = {run.flows_in(mode, figure.published_flows): mode for mode in (PILOT, FULL)}
        return by_flows.get(entry.flows)

    def versions(self, missing: MissingRun) -> tuple[str, str]:
        """Returns digests of the plan and of the recorded results of its transports."""
        key = (missing.figure.folder, missing.run.id, missing.load, missing.mode)
        if key not in self._versions:
            complete = missing.complete_plan()
            self._versions[key] = (plan_digest(complete), self.results_version(complete))
        return self._versions[key]

    def results_version(self, complete: Mapping[str, Any]) -> str:
        """Returns a digest of the results recorded of a plan's transports with their presets.

        Results between hosts of several rates belong to plans that list their links. Hosts of the
        other topologies have one rate.
        """
        transports = complete["transport"]
        tables = transports if isinstance(transports, list) else [transports]
        has_links = complete["topology"]["kind"] == LINKS
        recorded = (self._recorded[table["name"]][table["preset"]] for table in tables)
        return _digest(
            [
                {kind: value for kind, value in digests.items() if has_links or kind != MIXED}
                for digests in recorded
            ]
        )

    def add(self, missing: MissingRun, done: Run) -> None:
        """Enters a run's values for a figure.

        They replace those of a run with the same seed, load and mode, and entries of neither mode.
        """
        figure, run = missing.figure, missing.run
        panels = _panels_of(figure, run)
        if run.search is not None:
            submitted = int(done.summary["flows"]["submitted"])
            metric = run.search.metric
            cells: dict[str, CellValues] = {
                metric: {(metric, None): (METRICS[metric].of(done), submitted)}
            }
            series: dict[str, Series] = {}
        else:
            cells = {p.id: measure(p, done, figure.ideal, run.app) for p in panels}
            series = {p.id: points for p in panels if (points := series_of(p, done)) is not None}
        plan, results = self.versions(missing)
        entry = Entry(
            seed=missing.seed,
            flows=missing.flows,
            plan=plan,
            results=results,
            values=values_digest(figure, run),
            cells=cells,
            load=missing.load,
            series=series if missing.seed == SEEDS[0] else {},
            **run_provenance(done),
        )
        with self._lock:
            entries = [
                one
                for one in self.entries(figure, run)
                if self.mode_of(one, figure, run) is not None
                and (one.seed, one.load, one.flows) != (entry.seed, entry.load, entry.flows)
            ]
            entries.append(entry)
            entries.sort(key=lambda one: (-(one.flows or 0), one.seed, one.load or 0.0))
            # A line for each entry.
            lines = ",\n".join(json.dumps(one.to_json(), allow_nan=False) for one in entries)
            text = f'{{"run": {json.dumps(run.id)}, "seeds": [\n{lines}\n]}}\n'
            write_text(self.file_of(figure, run), text)

    def missing(self, figure: Figure) -> list[MissingRun]:
        """Returns full and pilot runs without a current entry, and the next probes of searches.

        Pilot runs are not missing where full runs of all seeds are known.
        """
        lacking = []
        for run in figure.runs:
            by_mode = self.by_mode(figure, run)
            modes = [FULL] if _is_complete(by_mode[FULL]) else by_mode
            for mode, seed in product(modes, SEEDS):
                entry = by_mode[mode].get(seed)
                if run.search is not None:
                    probes = entry.values if isinstance(entry, SearchProbes) else {}
                    if (load := run.search.next_load(probes)) is not None:
                        lacking.append(MissingRun(figure, run, seed, load, mode))
                elif entry is None:
                    lacking.append(MissingRun(figure, run, seed, mode=mode))
        return lacking

    def current(self, figure: Figure) -> Current:
        """Returns the entries by which a figure is judged: of full runs, or else of pilot runs."""
        runs: dict[str, EntriesBySeed] = {}
        pilots = []
        for run in figure.runs:
            by_mode = self.by_mode(figure, run)
            complete = {mode: of for mode, of in by_mode.items() if _is_complete(of)}
            mode = next(iter(complete), FULL)
            runs[run.id] = complete.get(mode, {})
            if mode == PILOT:
                pilots.append(run.id)
        absent = frozenset(run for run, of in runs.items() if not of)
        return Current(runs, Basis(FULL, SEEDS, absent, frozenset(pilots)))

    def current_entries(self, figure: Figure, run: FigureRun) -> list[Entry]:
        """Returns the entries of a run that are not stale, those of pilot runs too."""
        return [
            entry
            for entry in self.entries(figure, run)
            if entry.seed in SEEDS and self.is_current(entry, figure, run)
        ]

    def by_mode(self, figure: Figure, run: FigureRun) -> dict[Mode, EntriesBySeed]:
        """Returns current entries of a run by mode and seed, those of full runs first.

        A run with few flows has no pilot runs. Searches have their probes by seed.
        """
        flows = dict.fromkeys(run.flows_in(mode, figure.published_flows) for mode in (FULL, PILOT))
        entries = self.current_entries(figure, run)
        return {
            mode: _by_seed(run, [entry for entry in entries if entry.flows == n])
            for n, mode in zip(flows, (FULL, PILOT), strict=False)
        }

    def rows(self, figure: Figure) -> tuple[list[ValueRow], list[ClaimRow]]:
        """Judges values and claims of a figure by current entries."""
        current = self.current(figure)
        rows = [
            row
            for panel in figure.sub_figures
            for row in rows_of(figure, panel, current.runs, current.basis)
        ]
        return rows, claim_rows(figure, rows, current.basis)


def _by_seed(run: FigureRun, entries: Iterable[Entry]) -> EntriesBySeed:
    """Returns the entries of a run in one mode by seed; of a search, its probes."""
    if run.search is None:
        return {entry.seed: entry for entry in entries}
    metric = run.search.metric
    found: dict[int, dict[float, tuple[float, int]]] = {}
    for entry in entries:
        if entry.load is not None:
            found.setdefault(entry.seed, {})[entry.load] = entry.cells[metric][metric, None]
    return {
        seed: SearchProbes(
            run.search,
            {load: value for load, (value, _) in of.items()},
            sum(n for _, n in of.values()),
        )
        for seed, of in found.items()
    }


def _is_complete(entries: EntriesBySeed) -> bool:
    """Returns true if there are entries of all seeds, and all searches have ended."""
    return entries.keys() == set(SEEDS) and not any(map(_is_open, entries.values()))


def _is_open(found: Entry | SearchProbes) -> bool:
    """Returns true for a search that has not ended."""
    return isinstance(found, SearchProbes) and found.search.next_load(found.values) is not None


def plan_digest(complete: Mapping[str, Any]) -> str:
    """Returns a digest of a complete plan without its seed."""
    return _digest({key: value for key, value in complete.items() if key != "seed"})


def _panels_of(figure: Figure, run: FigureRun) -> list[SubFigure]:
    """Returns the sub-figures that show a run, or the run that it is a variant of."""
    names = {run.id, run.variant_of}
    return [panel for panel in figure.sub_figures if names.intersection(panel.runs)]


def values_digest(figure: Figure, run: FigureRun) -> str:
    """Returns a digest of everything but the run's plan that its values depend on."""
    panels = _panels_of(figure, run)
    return _digest(
        {
            "ideal": figure.ideal,
            "application": run.app,
            "search": run.search.metric if run.search else None,
            "sub-figures": {panel.id: panel.definition for panel in panels},
        }
    )


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
