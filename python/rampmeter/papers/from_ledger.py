"""A figure from the ledger: drawn and judged without running anything."""

from pathlib import Path

from rampmeter._core import ResultError
from rampmeter.papers.figure import Figure
from rampmeter.papers.ledger import FULL, Ledger, common_seeds
from rampmeter.papers.reproduce import REPORT, Report, draw_panels, write_report
from rampmeter.papers.verdict import Row

WITH_RUNS = ("time-space", "probes", "crashes", "sustained", "pareto")
"""Drawings that need flows, slots or probes of searches, which the ledger does not keep."""


def report_from_ledger(figure: Figure, ledger: Ledger, out: Path) -> Report:
    """Tables, plots and `report.json` of a figure from current entries.

    Sub-figures without an entry, or whose drawing needs more than values, are left out. Raises
    `ResultError` if none is left.
    """
    current = ledger.current(figure)
    seeds = common_seeds(current)
    absent = frozenset(run for run, of in current.items() if not of)
    chosen = [
        panel
        for panel in figure.sub_figures
        if panel.drawing not in WITH_RUNS and not absent.issuperset(panel.runs)
    ]
    if not chosen:
        raise ResultError(
            f"{ledger.root}: expected entries of {figure.paper} {figure.number} for a plot, "
            "found none; `rampmeter papers --fill HOURS` makes them"
        )
    rows, claims = ledger.rows(figure)
    by_panel: dict[str, list[Row]] = {panel.id: [] for panel in chosen}
    for row in rows:
        by_panel.get(row.cell.sub_figure, []).append(row)
    panels = draw_panels(figure, by_panel, (FULL, seeds, absent), {}, out)
    report = Report(figure, FULL, tuple(panels), tuple(claims), tuple(seeds), out / REPORT)
    entries = [(run, entry) for run, of in current.items() for entry in of.values()]
    made = {
        "is_interrupted": False,
        "wall_seconds": round(sum(entry.seconds for _, entry in entries), 1),
        "failures": [],
        "rejections": [],
        "runs": [
            {
                **{"run": run, "seed": entry.seed, "flows": entry.flows, "status": "entry"},
                **{"commit": entry.commit, "date": entry.date, "wall_seconds": entry.seconds},
            }
            for run, entry in entries
        ],
    }
    write_report(report, made)
    return report
