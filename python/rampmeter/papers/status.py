"""Totals of the ledger: verdicts and processor hours of figures and papers."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rampmeter.analysis.confidence import interval
from rampmeter.papers.bias import bias_table, pairs_of
from rampmeter.papers.claims import ClaimRow
from rampmeter.papers.entry import Entry
from rampmeter.papers.expected import CellId
from rampmeter.papers.figure import Figure, list_figures, load_figure
from rampmeter.papers.ledger import LEDGER, Ledger
from rampmeter.papers.misses import Explanation, explanations, find_explanation
from rampmeter.papers.verdict import FEWER_FLOWS, Basis, ValueRow
from rampmeter.text.numbers import NONE, markdown

NOT_RUN = "not run"
"""The verdict on a value without entries of all seeds."""
PILOT_MATCH, PILOT_MISS = "pilot match", "pilot miss"
"""Provisional verdicts, on values of pilot runs."""
NAMES = ("match", "miss", PILOT_MATCH, PILOT_MISS, NOT_RUN)


@dataclass(frozen=True)
class FigureStatus:
    """A figure judged by the ledger."""

    figure: Figure
    rows: tuple[ValueRow, ...]
    """Rows with a published value."""
    claims: tuple[ClaimRow, ...]
    entries: dict[str, list[Entry]]
    """Current entries by run."""
    basis: Basis
    """The basis of the verdicts."""
    explanations: tuple[Explanation, ...] = ()

    @classmethod
    def of(cls, figure: Figure, ledger: Ledger) -> "FigureStatus":
        """Judges a figure by its current entries."""
        rows, claims = ledger.rows(figure)
        entries = {run.id: ledger.current_entries(figure, run) for run in figure.runs}
        published = tuple(row for row in rows if row.fact is not None)
        basis = ledger.current(figure).basis
        return cls(figure, published, tuple(claims), entries, basis, tuple(explanations(figure)))

    @property
    def verdicts(self) -> Counter[str]:
        """The number of values and claims by verdict."""
        return Counter(verdict_of(row) for row in self.judged)

    @property
    def cpu_hours(self) -> float:
        """Processor hours of all current entries."""
        return sum(entry.seconds for of in self.entries.values() for entry in of) / 3600.0

    @property
    def judged(self) -> list[ValueRow | ClaimRow]:
        """Published values, then claims."""
        return [*self.rows, *self.claims]

    @property
    def misses(self) -> list[ValueRow | ClaimRow]:
        """Values and claims that do not match."""
        return [row for row in self.judged if row.verdict == "miss"]

    def to_json(self) -> dict[str, Any]:
        """Returns the figure's values and verdicts as plain values."""
        return {
            "paper": self.figure.paper,
            "figure": self.figure.number,
            "verdicts": dict(self.verdicts),
            "cpu_hours": round(self.cpu_hours, 3),
            "values": [self._row(row) for row in self.rows],
            "claims": [self._claim(row) for row in self.claims],
        }

    def _row(self, row: ValueRow) -> dict[str, Any]:
        values = row.measured.values if row.measured else ()
        ci = interval(values).ci
        return {
            "sub_figure": row.cell.sub_figure,
            **row.to_json(),
            "verdict": verdict_of(row),
            "mean_ci": ci,
            **self._cause(row),
            "made": self._sources([row.cell]),
        }

    def _claim(self, row: ClaimRow) -> dict[str, Any]:
        made = self._sources(row.claim.cells)
        explained = self._cause(row)
        return row.to_json() | {"verdict": verdict_of(row), **explained, "made": made}

    def explanation(self, row: ValueRow | ClaimRow) -> tuple[str, str]:
        """Returns the cause of a miss, or that it is open, and a command that shows it."""
        found = find_explanation(self.explanations, row)
        if found is None:
            name = f"{self.figure.paper} {self.figure.number}"
            return "Open. Not examined.", f"rampmeter papers {name} --from-ledger"
        return found.text, found.command

    def _cause(self, row: ValueRow | ClaimRow) -> dict[str, str]:
        if row.verdict != "miss":
            return {}
        cause, command = self.explanation(row)
        return {"cause": cause, "command": command}

    def _sources(self, cells: Iterable[CellId]) -> list[dict[str, Any]]:
        """Returns the entries that values are from."""
        return [
            {
                "run": run,
                **{"seed": entry.seed, "load": entry.load, "flows": entry.flows},
                **{"plan": entry.plan, "results": entry.results},
                **{"commit": entry.commit, "date": entry.date},
                "cpu_hours": round(entry.seconds / 3600.0, 4),
            }
            for run in dict.fromkeys(cell.run for cell in cells)
            for entry in self.entries.get(run, [])
            if entry.flows == self.basis.flows_of(self.figure, run)
        ]


def verdict_of(row: ValueRow | ClaimRow) -> str:
    """Returns the verdict of the ledger on a published value or a claim."""
    if row.verdict == FEWER_FLOWS:
        return PILOT_MATCH if row.is_within else PILOT_MISS
    return NOT_RUN if row.verdict == "not judged" else row.verdict


def totals(statuses: Iterable[FigureStatus]) -> list[tuple[str, Counter[str], float]]:
    """Returns verdicts and processor hours by paper, in order; the last one is of all."""
    found: dict[str, tuple[Counter[str], float]] = {}
    for status in statuses:
        for name in (status.figure.paper, "all"):
            counts, hours = found.get(name, (Counter[str](), 0.0))
            found[name] = (counts + status.verdicts, hours + status.cpu_hours)
    everything = [(name, *of) for name, of in found.items() if name != "all"]
    return [*everything, ("all", *found["all"])] if found else []


def columns(counts: Counter[str], cpu_hours: float) -> list[str]:
    """Returns the cells of a line: verdicts, their sum, and processor hours."""
    cells = [str(counts[name] or NONE) for name in NAMES]
    hours = f"{cpu_hours:.1f}" if cpu_hours >= 0.05 else NONE
    return [*cells, str(counts.total()), hours]


def ledger_page(root: Path) -> str:
    """Returns the page of the ledger in `root`: verdicts by figure, and its notes, in Markdown.

    Misses and their causes are on the pages of figures.
    """
    ledger = Ledger(root)
    statuses = [FigureStatus.of(load_figure(folder), ledger) for folder in list_figures(root)]
    lines = [
        "# The ledger",
        "",
        "Verdicts on published values and claims, from runs with as many flows as published and",
        "three seeds. `rampmeter papers PAPER FIGURE --from-ledger` draws a figure from them;",
        "`make ledger` makes the missing runs. Pages of figures list misses with their causes.",
        "",
        "Pilot runs replace missing full runs. They have as many flows as a figure by",
        "default, at most a tenth of those published, but at least 10 000. Their verdicts are",
        "provisional: short runs end before queues and tails have grown.",
        "",
    ]
    rows = [[_link(one.figure), *columns(one.verdicts, one.cpu_hours)] for one in statuses]
    rows += [[name, *columns(counts, hours)] for name, counts, hours in totals(statuses)[-1:]]
    lines += markdown(("figure", *NAMES, "all", "CPU hours"), rows)
    lines += ["", *_bias_of_pilots(statuses, ledger)]
    notes = root / LEDGER / "NOTES.md"
    lines += [notes.read_text(encoding="utf-8").rstrip()] if notes.is_file() else []
    return "\n".join(lines) + "\n"


def _bias_of_pilots(statuses: Iterable[FigureStatus], ledger: Ledger) -> list[str]:
    """Returns the section with the bias of pilot runs; empty if no value has both kinds."""
    pairs = [pair for one in statuses for pair in pairs_of(one.figure, ledger)]
    if not pairs:
        return []
    return [
        "## Bias of pilot runs",
        "",
        "Values of pilot runs over those of full runs, each the mean of three seeds: the median of",
        "all values in figures, and percentiles. Of the published ones, the last column counts",
        "those with the same verdict. No verdict is corrected for this bias.",
        "",
        *bias_table(pairs),
        "",
    ]


def _link(figure: Figure) -> str:
    return f"[{figure.paper} {figure.number}]({figure.paper}/{figure.folder.name}.md)"
