"""The bias of pilot runs, measured on values of which there are full runs too."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rampmeter.on_demand import np
from rampmeter.papers.expected import CellId
from rampmeter.papers.figure import Figure, Mode
from rampmeter.papers.ledger import FULL, SEEDS, Ledger
from rampmeter.papers.metrics import Metric
from rampmeter.papers.verdict import PILOT, Basis, rows_of
from rampmeter.text.numbers import markdown


@dataclass(frozen=True)
class PairOfValues:
    """A value of pilot runs and that of full runs, each the mean of the seeds."""

    cell: CellId
    pilot: float
    full: float
    pilot_is_within: bool | None
    """True if the pilot's value is within the tolerance; `None` if no value is published."""
    full_is_within: bool | None

    @property
    def ratio(self) -> float:
        """The pilot's value over that of full runs; NaN if that is 0."""
        return self.pilot / self.full if self.full else math.nan


def pairs_of(figure: Figure, ledger: Ledger) -> list[PairOfValues]:
    """Returns the values of a figure that have current entries of both, with all seeds."""
    by_mode = {run.id: ledger.by_mode(figure, run) for run in figure.runs if run.search is None}
    both = {
        run: of
        for run, of in by_mode.items()
        if len(of) > 1 and all(seeds.keys() == set(SEEDS) for seeds in of.values())
    }
    if not both:
        return []
    left_out = frozenset(run.id for run in figure.runs if run.id not in both)

    def rows(mode: Mode) -> dict[CellId, tuple[float, bool | None]]:
        runs = {run: of[mode] for run, of in both.items()}
        return {
            row.cell: (row.measured.mean, row.is_within)
            for panel in figure.sub_figures
            for row in rows_of(figure, panel, runs, Basis(mode, SEEDS, left_out))
            if row.measured is not None
        }

    full = rows(FULL)
    return [
        PairOfValues(cell, pilot, full[cell][0], is_within, full[cell][1])
        for cell, (pilot, is_within) in rows(PILOT).items()
        if cell in full and math.isfinite(pilot) and math.isfinite(full[cell][0])
    ]


def bias_table(pairs: Iterable[PairOfValues]) -> list[str]:
    """Returns a Markdown table of the ratio of pilot runs to full runs, by metric."""
    by_metric: dict[Metric, list[PairOfValues]] = {}
    for pair in pairs:
        by_metric.setdefault(pair.cell.metric, []).append(pair)
    rows = [[f"`{metric}`", *_cells(of)] for metric, of in sorted(by_metric.items())]
    head = ("metric", "values", "median", "10 %", "90 %", "published", "same verdict")
    return markdown(head, rows)


def _cells(pairs: Sequence[PairOfValues]) -> list[str]:
    ratios = [pair.ratio for pair in pairs if math.isfinite(pair.ratio)]
    judged = [pair for pair in pairs if pair.full_is_within is not None]
    same = [pair for pair in judged if pair.pilot_is_within == pair.full_is_within]
    low, median, high = np.percentile(ratios, [10, 50, 90]) if ratios else (math.nan,) * 3
    shown = [f"{value:.3f}" if math.isfinite(value) else "-" for value in (median, low, high)]
    return [str(len(pairs)), *shown, str(len(judged) or "-"), str(len(same)) if judged else "-"]
