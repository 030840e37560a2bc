"""A run: its numbers, slowdown by size, and its settings."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from rampmeter.analysis.confidence import Interval
from rampmeter.plan.manifest import without_nulls
from rampmeter.plots.colours import looks
from rampmeter.report.links import link_to
from rampmeter.report.model import (
    Chart,
    Column,
    DataTable,
    Link,
    LinkList,
    MarkdownText,
    Section,
    SectionPart,
    Series,
    SvgImage,
)
from rampmeter.results import tables
from rampmeter.results.names import transport_name
from rampmeter.results.plot_list import PlotList
from rampmeter.results.run import FLOWS, LINKS, QUEUES, SERIES, Run
from rampmeter.results.slowdown import Group, slowdown_groups
from rampmeter.results.table import ResultTable
from rampmeter.sweeps.warnings import merge
from rampmeter.text import toml
from rampmeter.text.numbers import counted

FILES = (FLOWS, SERIES, QUEUES, LINKS)
CAUSES = {
    "blame": "Mean slowdown by flow size, stacked by cause",
    "blame_matrix": "Waits by flow size and blocker size",
}
"""Titles of the drawings of runs with `run.blame`."""
STATISTICS = {"mean": "Mean slowdown", "p99": "Slowdown, 99th percentile"}


def section(folder: Path, page_folder: Path, id_: str, *, has_warnings: bool = True) -> Section:
    """Returns the section of a run's folder."""
    run = Run(folder)
    sizes = {
        name: by_size(
            {"": [(g.label, _interval(g, name)) for g in slowdown_groups(run.summary)]}, y
        )
        for name, y in STATISTICS.items()
    }
    parts: list[SectionPart] = [*warnings(run.warnings if has_warnings else ())]
    parts += drawings(run.plot, CAUSES)
    parts += [chart for chart in sizes.values() if chart.series]
    parts += grids(tables.run_tables(run))
    parts += [plan_of(run), files_of(run, page_folder)]
    return Section(
        id_,
        run.name,
        f"a run, {run.status}",
        parts,
        group="Runs",
        provenance=provenance(run.manifest),
    )


def common_warnings(folders: Iterable[Path], id_: str) -> Iterator[Section]:
    """Yields the section of the distinct warnings of runs with the runs concerned, if any."""
    runs = [Run(folder) for folder in folders]
    merged = merge(((idx, run.name, run.warnings) for idx, run in enumerate(runs)), "run")
    if merged:
        subtitle = f"of {counted(len(runs), 'run')}"
        yield Section(id_, "Warnings", subtitle, [*warnings(merged)], group="Runs")


def by_size(groups: Mapping[str, Sequence[tuple[str, Interval]]], y_label: str) -> Chart:
    """Returns a quantity by size, of each name: points with intervals, by labels of sizes."""
    labels = list(dict.fromkeys(label for of_name in groups.values() for label, _ in of_name))
    series = []
    for look, (name, of_name) in zip(looks(list(groups)), groups.items(), strict=True):
        shown = [(label, at) for label, at in of_name if math.isfinite(at.mean)]
        ends = [_ends(at) for _, at in shown]
        series.append(
            Series(
                transport_name(name) or "measured",
                [label for label, _ in shown],
                [at.mean for _, at in shown],
                [low for low, _ in ends],
                [high for _, high in ends],
                colour=look.idx,
            )
        )
    return Chart(y_label, "Flow size", y_label, series, "y", False, labels)


def drawings(plots: PlotList, titles: Mapping[str, str]) -> Iterator[SvgImage]:
    """Yields the drawings of some plots, those for which there is data."""
    available = plots.available()
    for name, title in titles.items():
        if name in available:
            file = BytesIO()
            available[name]().savefig(file, format="svg")
            yield SvgImage(title, file.getvalue().decode())


def grids(result_tables: Iterable[ResultTable]) -> Iterator[DataTable]:
    """Yields the tables that a terminal shows, as tables of the page."""
    for text_table in (table.text() for table in result_tables if table.is_for_readers):
        columns = [Column(name, is_number=idx > 0) for idx, name in enumerate(text_table.headings)]
        yield DataTable(text_table.title, columns, text_table.rows, " ".join(text_table.notes))


def warnings(sentences: Sequence[str]) -> Iterator[MarkdownText]:
    """Yields reasons not to trust the numbers."""
    if sentences:
        yield MarkdownText("\n".join(f"- **Warning:** {sentence}" for sentence in sentences))


def plan_of(run: Run) -> MarkdownText:
    """Returns the plan with its defaults, as TOML."""
    plan = toml.dumps(without_nulls(run.manifest["plan"]))
    return MarkdownText(f"```toml\n{plan}```", "The plan, with its defaults")


def files_of(run: Run, page_folder: Path) -> LinkList:
    """Returns links to the tables of a run."""
    found = [link_to(run.path / name, page_folder) for name in FILES]
    return LinkList("Files", [one for one in found if isinstance(one, Link)])


def provenance(manifest: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Returns names and values that identify the run."""
    return (
        ("seed", str(manifest["seed"])),
        ("version", f"{manifest['version']} ({manifest['commit']})"),
        ("time", f"{manifest['wall_seconds']:.1f} s"),
    )


def _interval(group: Group, name: str) -> Interval:
    return Interval(getattr(group, name), group.ci.get(name), 1)


def _ends(at: Interval) -> tuple[float, float]:
    if at.ci is None:
        return math.nan, math.nan
    return at.mean - at.ci, at.mean + at.ci
