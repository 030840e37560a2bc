"""The error of a folder that has no run: it names a folder that has one."""

from pathlib import Path
from typing import Final

from rampmeter._core import ResultError
from rampmeter.plan.manifest import MANIFEST
from rampmeter.text.locations import Location

SUMMARY: Final = "summary.json"
"""File name of the statistics of a run."""
COMPARISON: Final = "comparison.json"
"""File name of the record of the compared runs in a folder, by label."""
KINDS: Final = {COMPARISON: "a comparison", "sweep.json": "a sweep"}
"""Kinds of results that are no run, by the file that identifies them."""
ANY: Final = "a run, a comparison or a sweep"
"""Kinds of results of commands that read all of them."""


def missing_run(folder: Path, kinds: str = "a run") -> ResultError:
    """Returns the error of a folder without a run, or without these kinds of results."""
    runs = sorted(folder.glob(f"*/{SUMMARY}"))
    if (folder / COMPARISON).is_file():
        # Runs of several seeds are below their transport.
        runs += sorted(folder.glob(f"*/*/{SUMMARY}"))
    expected = f"the folder of {kinds}"
    if runs:
        expected += f", such as {runs[0].parent}"
    others = [kind for name, kind in KINDS.items() if (folder / name).is_file()]
    if others:
        got = others[0]
    elif runs:
        got = "a folder of several runs" if len(runs) > 1 else "a folder above a run"
    elif (folder / MANIFEST).is_file():
        got = "a run without results"
    else:
        got = "a folder without results" if folder.is_dir() else "no folder"
    return Location(folder).result_error(expected=expected, got=got)
