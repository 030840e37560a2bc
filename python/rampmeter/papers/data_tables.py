"""Expected and measured values of figures as data, for programs and documents."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rampmeter.papers.claims import limits_text
from rampmeter.papers.reproduce import Report
from rampmeter.papers.status import NAMES, FigureStatus, totals
from rampmeter.papers.summaries import FigureSummary
from rampmeter.papers.table import row_name
from rampmeter.papers.verdict import Measurement, tolerance_text
from rampmeter.results.table import Cell, Column, ResultTable

MEASURED: Final = (
    Column("measured", "measured", places=4),
    Column("measured_min", "least", places=4),
    Column("measured_max", "most", places=4),
)
VALUES: Final = (
    Column("panel"),
    Column("run", "run"),
    Column("about", "of"),
    Column("metric", "metric"),
    Column("expected", "expected", places=4),
    *MEASURED,
    Column("tolerance", "within"),
    Column("seeds", "seeds"),
    Column("verdict", "verdict"),
)
CLAIMS: Final = (
    Column("claim"),
    *MEASURED,
    Column("expected", "expected"),
    Column("seeds", "seeds"),
    Column("verdict", "verdict"),
)
FIGURES: Final = (
    Column("paper"),
    Column("figure", "figure"),
    Column("title", "title"),
    Column("claim", "claim"),
    Column("quick_cpu_s", "quick", "s", 2, form="general"),
    Column("full_cpu_s", "full", "s", 2, form="general"),
    Column("matches", "matches"),
)


def report_tables(report: Report) -> Iterator[ResultTable]:
    """Yields the values of all panels, and the claims of the paper if it makes any."""
    rows: list[tuple[Cell, ...]] = [
        (
            f"{report.figure.number}{panel.id}",
            row.cell.run,
            row_name(report, spec, row),
            row.cell.metric,
            row.fact.expected if row.fact else None,
            *_measured(row.measured),
            tolerance_text(row.fact.tolerance) if row.fact else None,
            row.n_seeds,
            row.verdict,
        )
        for panel in report.panels
        for spec in report.figure.sub_figures
        for row in panel.rows
        if spec.id == panel.id
    ]
    if rows:
        title = f"{report.figure.paper} {report.figure.number}: {report.figure.title}"
        yield ResultTable("values", title, VALUES, rows)
    claims: list[tuple[Cell, ...]] = [
        (
            row.claim.text,
            *_measured(row.measured),
            limits_text(row.claim),
            row.n_seeds,
            row.verdict,
        )
        for row in report.claims
    ]
    if claims:
        yield ResultTable("claims", "Claims of the paper", CLAIMS, claims)


def status_table(statuses: Sequence[FigureStatus]) -> ResultTable:
    """Returns the verdicts of values and claims in the ledger by figure, with their total."""
    columns = (
        Column("figure"),
        *(Column(name.replace(" ", "_"), name.replace(" ", "\n")) for name in NAMES),
        Column("all", "all"),
        Column("cpu_hours", "CPU h", places=1),
    )
    lines = [
        (f"{one.figure.paper} {one.figure.number}", one.verdicts, one.cpu_hours) for one in statuses
    ]
    rows: list[tuple[Cell, ...]] = [
        (name, *(counts[verdict] or None for verdict in NAMES), counts.total(), hours or None)
        for name, counts, hours in [*lines, *totals(statuses)[-1:]]
    ]
    note = "pilot: provisional, from runs with a tenth of the flows or fewer"
    sections = frozenset([len(lines) - 1])
    return ResultTable(
        "status", "Published values and claims", columns, rows, (note,), sections=sections
    )


def figures_table(figures: Iterable[FigureSummary]) -> ResultTable:
    """Returns the figures with their titles, claims, processor times and matches."""
    rows: list[tuple[Cell, ...]] = [
        (
            one.paper,
            one.number,
            one.title,
            one.claim,
            one.quick_seconds,
            one.full_seconds,
            one.matches,
        )
        for one in figures
    ]
    return ResultTable("figures", "Figures of papers", FIGURES, rows)


def _measured(measured: Measurement | None) -> tuple[Cell, Cell, Cell]:
    """Returns the mean, the minimum and the maximum over seeds."""
    values = measured.values if measured else ()
    mean = measured.mean if measured and values else None
    return mean, min(values, default=None), max(values, default=None)
