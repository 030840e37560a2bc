"""A comparison of transports by the same flows."""

from pathlib import Path

from rampmeter.analysis.confidence import TWO_SEEDS
from rampmeter.report import runs
from rampmeter.report.links import link_to
from rampmeter.report.model import Link, LinkList, Section, SectionPart
from rampmeter.results.comparison import Comparison
from rampmeter.results.comparison_tables import comparison_tables
from rampmeter.results.run import FLOWS
from rampmeter.results.undelivered import NOT_DELIVERED
from rampmeter.sweeps.warnings import merge
from rampmeter.text.cautions import Caution

DIFFERENCE = "Difference of the first two transports, cause by cause"


def section(folder: Path, page_folder: Path, id_: str) -> Section:
    """Returns the section of the folder that `rampmeter compare` has made."""
    comparison = Comparison.load(folder)
    parts: list[SectionPart] = [*runs.warnings(_warnings(comparison))]
    parts += runs.drawings(comparison.plot, {**runs.CAUSES, "blame_difference": DIFFERENCE})
    for name, y_label in runs.STATISTICS.items():
        groups = {
            label: [(g.label, getattr(g, name)) for g in comparison.slowdowns(label)]
            for label in comparison.labels
        }
        parts.append(runs.by_size(groups, y_label))
    parts += runs.grids(comparison_tables(comparison))
    first = comparison.runs[comparison.labels[0]][0]
    parts.append(runs.plan_of(first))
    files = []
    for label, of_label in comparison.runs.items():
        for run in of_label:
            name = f"{label}, seed {run.manifest['seed']}"
            files.append(link_to(run.path / FLOWS, page_folder, name))
    parts.append(LinkList("Flows", [one for one in files if isinstance(one, Link)]))
    return Section(
        id_,
        folder.name,
        f"{', '.join(comparison.labels)}: {comparison.n_seeds} "
        f"{'seed' if comparison.n_seeds == 1 else 'seeds'} of each",
        parts,
        group="Comparisons",
        provenance=runs.provenance(first.manifest),
    )


def _warnings(comparison: Comparison) -> list[Caution]:
    """Returns the warnings of the comparison, those of runs once with their transports."""
    own = comparison.warnings
    of_comparison = {NOT_DELIVERED, TWO_SEEDS}
    of_runs = {one.code for one in own} - of_comparison
    merged = merge(
        (
            (number, label, [one for one in run.warnings if one.code in of_runs])
            for number, (label, of_label) in enumerate(comparison.runs.items())
            for run in of_label
        ),
        "transport",
    )
    return [*(one for one in own if one.code in of_comparison), *merged]
