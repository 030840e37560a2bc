"""Figures of papers: their runs, the published values, and verdicts on ours.

A figure is a folder `papers/<paper>/fig<number>`, a table one `papers/<paper>/table<number>`.
Its files are `figure.toml` (its runs and panels), `plan.toml` (the common part of the runs),
`expected.toml` (published values and claims) and `NOTES.md`.
"""

from pathlib import Path

from rampmeter.papers.claims import ClaimRow, claim_rows, judge_claim
from rampmeter.papers.figure import Figure, Mode, list_figures, load_figure
from rampmeter.papers.reproduce import (
    Panel,
    Report,
    data_packets,
    jobs_of,
    make_report,
    probes_of,
)
from rampmeter.papers.verdict import SEEDS_WANTED, Measurement, ValueRow, judge, tolerance_text
from rampmeter.text.locations import BAD_FILE, Location

__all__ = [
    "SEEDS_WANTED",
    "ClaimRow",
    "Figure",
    "Measurement",
    "Mode",
    "Panel",
    "Report",
    "ValueRow",
    "claim_rows",
    "data_packets",
    "find_figure",
    "find_papers",
    "jobs_of",
    "judge",
    "judge_claim",
    "list_figures",
    "load_figure",
    "make_report",
    "probes_of",
    "tolerance_text",
]

OF_PACKAGE = (
    Path(__file__).resolve().parents[1] / "_papers",
    Path(__file__).resolve().parents[3] / "papers",
)
"""Folders of the figures in an installed package, and in a source tree."""


def find_papers() -> Path:
    """Returns the folder `papers` of the working directory, of one above it, or of the package."""
    here = Path.cwd()
    for folder in (*(one / "papers" for one in (here, *here.parents)), *OF_PACKAGE):
        if list_figures(folder):
            return folder
    raise Location(key="papers").error(
        expected=f"a folder papers in {here} or above it", code=BAD_FILE
    )


def find_figure(root: Path, paper: str, number: str) -> Path:
    """Returns the folder of one figure."""
    folders = list_figures(root)
    for folder in folders:
        if folder.parent.name == paper and folder.name in (number, f"fig{number}"):
            return folder
    of_paper = [f for f in folders if f.parent.name == paper] or folders
    names = ", ".join(f"{f.parent.name} {f.name.removeprefix('fig')}" for f in of_paper)
    raise Location(key="papers").error(expected=f"one of {names}", got=f"{paper} {number}")
