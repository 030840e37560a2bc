"""Finds results in folders."""

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from rampmeter.papers.reproduce import REPORT
from rampmeter.plan.manifest import MANIFEST
from rampmeter.report import comparisons, figures, runs, sweeps
from rampmeter.report.model import Section
from rampmeter.results.missing import COMPARISON
from rampmeter.sweeps.dataset import IDENTITY
from rampmeter.text.locations import Location

READERS = {
    REPORT: figures.section,
    IDENTITY: sweeps.section,
    COMPARISON: comparisons.section,
    MANIFEST: runs.section,
}
"""The reader of a folder, by the file that identifies its contents. The runs of a figure, a
comparison or a sweep are part of it."""


def find(folders: Iterable[Path], page_folder: Path) -> list[Section]:
    """Returns the sections of all results in folders and below, in the order of their paths.

    Links are relative to the folder `page_folder` of the report. Raises `ResultError` for a
    folder without results.
    """
    results: list[tuple[Path, str]] = []
    for folder in folders:
        if not folder.is_dir():
            raise Location(folder).result_error(expected="a folder of results")
        found = list(_results(folder))
        if not found:
            expected = "a figure, comparison, sweep or run"
            raise Location(folder).result_error(expected=f"results of {expected} in it or below")
        results += found
    of_runs = [folder for folder, name in results if name == MANIFEST]
    sections: list[Section] = []
    for result, name in results:
        read = READERS[name]
        if name == MANIFEST and len(of_runs) > 1:
            # Several runs have the same warnings, which are listed once.
            read = partial(runs.section, has_warnings=False)
        sections.append(read(result, page_folder, f"s{len(sections)}"))
    if len(of_runs) > 1:
        sections += runs.common_warnings(of_runs, f"s{len(sections)}")
    return sections


def _results(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yields folders of results at or below one, each with the file that identifies it."""
    for name in READERS:
        if (folder / name).is_file():
            yield folder, name
            return
    for below in sorted(folder.iterdir()):
        if below.is_dir():
            yield from _results(below)
