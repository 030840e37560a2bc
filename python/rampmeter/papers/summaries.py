"""Titles, costs and matches of all figures, as `rampmeter papers` lists them.

They depend on the plans of 1500 runs, which take seconds to complete. So they are stored in the
folder of caches of the user, with a fingerprint of all files that they depend on: those of `papers`
and of the package, by name, size and time of change. One changed file makes them again.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rich.table import Table

from rampmeter import _core, extension
from rampmeter.papers.costs import costs_of, duration, matches
from rampmeter.papers.figure import list_figures, load_figure
from rampmeter.papers.ledger import Ledger
from rampmeter.results.tables import new_table
from rampmeter.text.files import write_text

CACHE: Final = "XDG_CACHE_HOME"
"""Variable with the folder of caches; `~/.cache` without it."""
PACKAGE: Final = Path(__file__).resolve().parents[1]
SKIPPED: Final = frozenset({"__pycache__"})


@dataclass(frozen=True)
class FigureSummary:
    """A figure in the list of all figures."""

    folder: str
    """Name of the folder of its paper."""
    paper: str
    number: str
    title: str
    claim: str
    quick_seconds: float
    """Processor seconds with `--quick`."""
    full_seconds: float
    matches: str
    """Number of published values and claims that the ledger's runs match."""


def summaries(root: Path) -> list[FigureSummary]:
    """Returns the summaries of all figures in `root`, stored ones if no file has changed."""
    file, fingerprint = _cache_file(root), _fingerprint(root)
    with suppress(OSError, ValueError, KeyError, TypeError):
        stored = json.loads(file.read_text(encoding="utf-8"))
        if stored["fingerprint"] == fingerprint:
            return [FigureSummary(**one) for one in stored["figures"]]
    ledger = Ledger(root)
    found = [_summary(folder, ledger) for folder in list_figures(root)]
    table = {"fingerprint": fingerprint, "figures": [asdict(one) for one in found]}
    # Without a folder of caches the summaries are made each time.
    with suppress(OSError, ValueError):
        write_text(file, json.dumps(table))
    return found


def list_table(figures: Sequence[FigureSummary], n_cores: int) -> Table:
    """Returns a table of figures with processor times on `n_cores`, and the ledger's verdicts."""
    table = new_table("Figures", "figure", "title", "quick", "full", "matches")
    paper = ""
    for figure in figures:
        if figure.paper != paper:
            # Names of papers on lines of their own leave room for titles.
            paper = figure.paper
            table.add_row(paper, style="bold")
        costs = map(duration, (figure.quick_seconds, figure.full_seconds))
        table.add_row(f"  {figure.number}", figure.title, *costs, figure.matches)
    table.columns[1].no_wrap = False
    table.columns[1].justify = table.columns[4].justify = "left"
    table.caption = (
        f"Processor time, which {n_cores} cores share. quick: --quick; full: 3 seeds.\n"
        "Matches are those of the ledger; pilot: with a tenth of the flows or fewer."
    )
    return table


def _summary(folder: Path, ledger: Ledger) -> FigureSummary:
    figure = load_figure(folder)
    quick, full = (cost.seconds for cost in costs_of(figure, ledger))
    return FigureSummary(
        folder.parent.name,
        figure.paper,
        str(figure.number),
        figure.title,
        figure.claim,
        quick,
        full,
        matches(figure, ledger),
    )


def _cache_file(root: Path) -> Path:
    """Returns the file of summaries; each folder of papers has its own."""
    name = hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:16]
    folder = os.environ.get(CACHE) or Path.home() / ".cache"
    return Path(folder) / "rampmeter" / f"papers-{name}.json"


def _fingerprint(root: Path) -> str:
    """Returns a digest of the names, sizes and times of change of all files that are read."""
    states = [_core.VERSION, _core.COMMIT]
    states += sorted(state for folder in (root, PACKAGE) for state in _states(folder))
    library = os.environ.get(extension.VARIABLE)
    states += [library, str(Path(library).stat().st_mtime_ns)] if library else []
    return hashlib.sha256("\n".join(states).encode()).hexdigest()


def _states(folder: Path) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name in SKIPPED:
                continue
            if entry.is_dir(follow_symlinks=True):
                yield from _states(Path(entry.path))
            else:
                found = entry.stat()
                yield f"{entry.path} {found.st_size} {found.st_mtime_ns}"
