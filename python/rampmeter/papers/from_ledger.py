"""A figure from the ledger: drawn and judged without running anything."""

import multiprocessing
import signal
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from rampmeter.papers.entry import Entry
from rampmeter.papers.figure import Figure, SubFigure, load_figure
from rampmeter.papers.ledger import FULL, SEEDS, EntriesBySeed, Ledger
from rampmeter.papers.reproduce import REPORT, Report, draw_panels, write_report
from rampmeter.papers.search import SearchProbes
from rampmeter.papers.series import WITH_SERIES, Series
from rampmeter.papers.verdict import ValueRow


def draw_all(root: Path, outs: Mapping[Path, Path], n_processes: int) -> list[Path]:
    """Draws figures from the ledger in `root`, several at a time.

    `outs` has the folder of the results of each figure's folder. Returns those that were written:
    figures without entries are omitted.
    """
    # Only one thread of Python runs at a time, and drawing is Python.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(n_processes, context, signal.signal, _IGNORED) as pool:
        drawn = pool.map(partial(_draw, root), outs, outs.values())
        return [out for out, is_drawn in zip(outs.values(), drawn, strict=True) if is_drawn]


_IGNORED = (signal.SIGINT, signal.SIG_IGN)
"""Ctrl-C stops the command, which then starts no further figures."""


def _draw(root: Path, folder: Path, out: Path) -> bool:
    return report_from_ledger(load_figure(folder), Ledger(root), out) is not None


def report_from_ledger(figure: Figure, ledger: Ledger, out: Path) -> Report | None:
    """Makes tables, plots and `report.json` of a figure from current entries.

    Sub-figures without entries are omitted. Returns nothing if there are no others.
    """
    current = ledger.current(figure)
    absent = current.basis.left_out
    series = {panel.id: _series(panel, current.runs) for panel in figure.sub_figures}
    chosen = [
        panel
        for panel in figure.sub_figures
        if (not absent.issuperset(panel.runs) or not panel.runs)
        and (panel.drawing not in WITH_SERIES or series[panel.id])
    ]
    if not chosen:
        return None
    rows, claims = ledger.rows(figure)
    by_panel: dict[str, list[ValueRow]] = {panel.id: [] for panel in chosen}
    for row in rows:
        by_panel.get(row.cell.sub_figure, []).append(row)
    panels = draw_panels(figure, by_panel, current.basis, series, out)
    searches = {
        run: {seed: one for seed, one in of.items() if isinstance(one, SearchProbes)}
        for run, of in current.runs.items()
        if of and figure.run(run).search is not None
    }
    report = Report(figure, FULL, tuple(panels), tuple(claims), SEEDS, out / REPORT, searches)
    entries = [
        (run.id, entry)
        for run in figure.runs
        if current.runs[run.id]
        for entry in ledger.current_entries(figure, run)
        if entry.flows == current.basis.flows_of(figure, run.id)
    ]
    made = {
        "is_interrupted": False,
        "wall_seconds": round(sum(entry.seconds for _, entry in entries), 1),
        "failures": [],
        "rejections": [],
        "runs": [
            {
                **{"run": run, "seed": entry.seed, "load": entry.load},
                **{"status": "entry", "commit": entry.commit, "date": entry.date},
                # Entries have no flows that a report can link to.
                "folder": "",
                "flows": {"submitted": entry.flows, "delivered": None},
                "wall_seconds": entry.seconds,
            }
            for run, entry in entries
        ],
    }
    write_report(report, made)
    return report


def _series(panel: SubFigure, runs: Mapping[str, EntriesBySeed]) -> dict[str, Series]:
    """Returns the series of the first seed by run."""
    firsts = {run: runs[run].get(SEEDS[0]) for run in panel.runs}
    return {
        run: entry.series[panel.id]
        for run, entry in firsts.items()
        if isinstance(entry, Entry) and panel.id in entry.series
    }
