"""Measured values compared with expected ones, and verdicts."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from rampmeter.papers.entry import Entry
from rampmeter.papers.expected import CellId, ExpectedValue, Tolerance
from rampmeter.papers.figure import Figure, Mode, SubFigure
from rampmeter.papers.measure import CellValues, measure
from rampmeter.papers.metrics import MAX_LOAD, Metric
from rampmeter.papers.search import SearchProbes
from rampmeter.results.run import Run
from rampmeter.text.numbers import count

Verdict: TypeAlias = Literal["match", "miss", "fewer flows", "not judged"]
FEWER_FLOWS: Verdict = "fewer flows"
"""The verdict on a run with fewer flows than the value was published for."""
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
SEEDS_WANTED = 3
"""Minimum number of seeds; a verdict on fewer is marked."""
NO_FACT = "no published value"

PILOT = Mode("pilot")

Results: TypeAlias = Mapping[str, Mapping[int, Run | Entry | SearchProbes]]
"""The complete runs by id and seed, or entries of the ledger, and the probes of searches."""


@dataclass(frozen=True)
class Basis:
    """The runs on which verdicts are based."""

    mode: Mode
    seeds: Sequence[int]
    left_out: frozenset[str] = frozenset()
    """Runs of the figure that were not made."""
    pilots: frozenset[str] = frozenset()
    """Runs that are pilot runs, whatever the mode."""

    def flows_of(self, figure: Figure, run_id: str) -> int | None:
        """Returns the flows of a run; `None` if its workload has no number of them."""
        mode = PILOT if run_id in self.pilots else self.mode
        return figure.run(run_id).flows_in(mode, figure.published_flows)

    def flows_needed(self, figure: Figure, run_id: str, published: int | None) -> int:
        """Returns the number of flows that a run needs to be judged by a published value.

        It is the value's own number, or the figure's. Without either it is the run's number of
        flows in the figure, so that reduced runs are not judged. It is 0 if any number suffices.
        Pilot runs always need a number.
        """
        if published == 0 and run_id not in self.pilots:
            return 0
        own = figure.run(run_id).flows
        return 0 if own is None else published or figure.published_flows or own

    def fewer_flows(self, figure: Figure, run_id: str, published: int | None) -> str:
        """Describes the lack of flows of a run with fewer than it needs; empty if it has enough."""
        needed = self.flows_needed(figure, run_id, published)
        flows = self.flows_of(figure, run_id) if needed else None
        if flows is None or flows >= needed:
            return ""
        return f"{count(flows)} of {count(needed)} flows"

    def why_left_out(self) -> str:
        """Returns the reason for a run without values: full figures are from the ledger."""
        return "no entry in the ledger" if self.mode.name == "full" else "not in the reduced run"


@dataclass(frozen=True)
class Measurement:
    """A value over the seeds of a run."""

    by_seed: Mapping[int, float]
    """One value a seed; NaN if the run of a seed has none."""
    n_counted: int
    """Flows that it was computed from, over all seeds."""

    @property
    def values(self) -> tuple[float, ...]:
        """The values of the seeds that have one."""
        return tuple(value for value in self.by_seed.values() if math.isfinite(value))

    @property
    def without(self) -> tuple[int, ...]:
        """The seeds whose runs have no value."""
        return tuple(seed for seed, value in self.by_seed.items() if not math.isfinite(value))

    @property
    def mean(self) -> float:
        """The mean over the seeds that have a value; NaN if none has."""
        return sum(self.values) / len(self.values) if self.values else math.nan

    def to_json(self) -> dict[str, Any]:
        """Returns the value as plain values; NaN is `null`."""
        values = self.values
        return {
            "mean": self.mean if values else None,
            "min": min(values, default=None),
            "max": max(values, default=None),
            "by_seed": {
                str(seed): value if math.isfinite(value) else None
                for seed, value in self.by_seed.items()
            },
            "flows_counted": self.n_counted,
        }


@dataclass(frozen=True)
class ValueRow:
    """One line of a sub-figure's table."""

    cell: CellId
    fact: ExpectedValue | None
    measured: Measurement | None
    variant: Measurement | None
    verdict: Verdict
    reason: str
    """Reason for no judgement, or for a miss at any tolerance; empty otherwise."""
    flows: int | None = None
    """Flows of the run, if its workload has a number of them."""
    flows_needed: int = 0
    """Flows that the run needs for a verdict of match or miss; 0 for any number."""
    lack: str = ""
    """The flows of the run and those that it needs, if it has fewer."""

    @property
    def n_seeds(self) -> int:
        """The seeds behind the verdict."""
        return len(self.measured.values) if self.measured else 0

    @property
    def is_within(self) -> bool | None:
        """True if the mean is within the tolerance, for any number of flows; `None` without it."""
        if self.fact is None or self.measured is None or not self.measured.values:
            return None
        return self.fact.tolerance.allows(self.fact.expected, self.measured.mean)

    @property
    def is_undecided(self) -> bool:
        """True if a value is expected, and the measured one neither matches nor misses it yet."""
        is_open = self.fact is not None and self.verdict not in ("match", "miss")
        return is_open and self.n_seeds > 0

    @property
    def difference(self) -> float | None:
        """Measured less expected, as the tolerance counts it."""
        if self.fact is None or self.measured is None or not self.measured.values:
            return None
        difference = self.measured.mean - self.fact.expected
        if self.fact.tolerance.kind == "absolute":
            return difference
        return difference / self.fact.expected if self.fact.expected else None

    def to_json(self) -> dict[str, Any]:
        """Returns the row as plain values."""
        tolerance = self.fact.tolerance if self.fact else None
        return {
            "run": self.cell.run,
            "metric": self.cell.metric,
            "bin": self.cell.bin,
            "expected": self.fact.expected if self.fact else None,
            "source": self.fact.source if self.fact else None,
            "is_recorded": self.fact is not None and self.fact.is_recorded,
            "revision": self.fact.revision if self.fact else "",
            "flows": self.flows,
            "published_flows": self.flows_needed,
            "measured": self.measured.to_json() if self.measured else None,
            "variant": self.variant.to_json() if self.variant else None,
            "seeds": self.n_seeds,
            "difference": self.difference,
            "tolerance": {"kind": tolerance.kind, "value": tolerance.value} if tolerance else None,
            "is_within": self.is_within,
            "verdict": self.verdict,
            "reason": self.reason,
        }


def rows_of(figure: Figure, panel: SubFigure, runs: Results, basis: Basis) -> list[ValueRow]:
    """Returns the table of a panel."""
    reduced = figure.expected.reduced
    is_quick = basis.mode.name == "quick"
    facts = {**figure.expected.facts, **(reduced if is_quick else {})}
    rows = []
    for run_id in panel.runs:
        variant = figure.variant(run_id)
        flows = basis.flows_of(figure, run_id)
        of_run = _over_seeds(figure, panel, runs, run_id)
        of_variant = _over_seeds(figure, panel, runs, variant.id) if variant else {}
        n_bins = max(1, len(panel.labels))
        for idx in range(n_bins) if panel.labels else [None]:
            for metric in panel.metrics:
                cell = CellId(panel.id, run_id, metric, idx)
                measured = of_run.get((metric, idx))
                fact = facts.get(cell)
                needed, lack = 0, ""
                if run_id in basis.left_out:
                    judged = _not_judged(basis.why_left_out())
                elif is_quick and cell in reduced:
                    needed = figure.expected.reduced_flows[run_id]
                    judged = judge(fact, measured, basis.seeds)
                else:
                    published = fact.published_flows if fact else 0
                    needed = basis.flows_needed(figure, run_id, published) if fact else 0
                    lack = basis.fewer_flows(figure, run_id, published) if fact else ""
                    judged = (FEWER_FLOWS, lack) if lack else judge(fact, measured, basis.seeds)
                rows.append(
                    ValueRow(
                        cell,
                        fact,
                        measured,
                        of_variant.get((metric, idx)),
                        *judged,
                        flows=flows,
                        flows_needed=needed,
                        lack=lack,
                    )
                )
    return rows


def judge(
    fact: ExpectedValue | None, measured: Measurement | None, seeds: Iterable[int]
) -> tuple[Verdict, str]:
    """Returns a verdict on the mean of the seeds, with a reason if the values do not show it.

    If a value is expected, every seed must have one.
    """
    if fact is None:
        return _not_judged(NO_FACT)
    lack = without_value(measured, seeds)
    if lack or measured is None:
        return "miss", lack
    return ("match" if fact.tolerance.allows(fact.expected, measured.mean) else "miss"), ""


def without_value(measured: Measurement | None, seeds: Iterable[int]) -> str:
    """Lists the seeds without a value, in words; empty if all have one."""
    values = measured.by_seed if measured else {}
    unfinished = [seed for seed in seeds if seed not in values]
    empty = list(measured.without) if measured else []
    parts = [
        f"{'seed' if len(of) == 1 else 'seeds'} {', '.join(map(str, of))}: {what}"
        for of, what in ((unfinished, "run not finished"), (empty, "no value"))
        if of
    ]
    return "; ".join(parts)


def _not_judged(reason: str) -> tuple[Verdict, str]:
    return "not judged", reason


def tolerance_text(tolerance: Tolerance) -> str:
    """Formats a tolerance."""
    if tolerance.kind == "relative":
        return f"±{tolerance.value * 100:g} %"
    return f"±{tolerance.value:g}"


def _over_seeds(
    figure: Figure, panel: SubFigure, runs: Results, run_id: str
) -> dict[tuple[Metric, int | None], Measurement]:
    settings = figure.run(run_id).app
    by_seed: dict[int, CellValues] = {}
    for seed, run in runs.get(run_id, {}).items():
        if isinstance(run, SearchProbes):
            by_seed[seed] = {(MAX_LOAD, None): (run.highest, run.flows)}
        elif isinstance(run, Entry):
            by_seed[seed] = dict(run.cells[panel.id])
        else:
            by_seed[seed] = measure(panel, run, figure.ideal, settings)
    keys = dict.fromkeys(key for cells in by_seed.values() for key in cells)
    joined = {}
    for key in keys:
        of_seeds = {seed: cells.get(key, (math.nan, 0)) for seed, cells in by_seed.items()}
        values = {seed: value if n else math.nan for seed, (value, n) in of_seeds.items()}
        joined[key] = Measurement(values, sum(n for _, n in of_seeds.values()))
    return joined
