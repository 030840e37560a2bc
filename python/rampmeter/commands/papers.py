"""`rampmeter papers`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rampmeter._core import PlanError
from rampmeter.commands.common import (
    FOLDER,
    force_option,
    jobs_option,
    leave,
    quiet_option,
    run_jobs,
    show,
)
from rampmeter.runner import Batch

if TYPE_CHECKING:
    from rampmeter.papers import Mode, Report


@click.command()
@click.argument("paper", required=False)
@click.argument("figure", required=False)
@click.option("--quick", is_flag=True, help="Few flows and fewer runs, in minutes.")
@click.option("--full", is_flag=True, help="As many flows as published, in every run.")
@click.option("--scale", type=float, help="Multiply the number of flows.")
@click.option(
    "--seeds",
    type=click.IntRange(1, 100),
    help="Seeds of each run; 3 by default, 1 of reduced figures.",
)
@click.option("--out", type=FOLDER, help="Folder of the results; results/papers/... by default.")
@force_option
@jobs_option
@quiet_option
def papers(
    paper: str | None,
    figure: str | None,
    scale: float | None,
    seeds: int | None,
    out: Path | None,
    jobs: int | None,
    *,
    quick: bool,
    full: bool,
    force: bool,
    quiet: bool,
) -> None:
    """Make a figure of a paper and say what matches the published values.

    Without a figure, list those there are. An interrupted figure goes on where it stopped. A
    reduced figure is judged by values of as many flows, where there are some.

    \b
    Example: dcPIM's figure 3 in a few minutes, and in full
      rampmeter papers dcpim 3 --quick
      rampmeter papers dcpim 3
    """
    from rampmeter import papers as figures

    mode = _mode(quick=quick, full=full, scale=scale)
    root = figures.find_papers()
    if paper is None or figure is None:
        _list_figures(root, paper)
        return
    one = figures.load_figure(figures.find_figure(root, paper, figure))
    folder = out or Path("results/papers") / paper / one.folder.name / mode.label
    n_seeds = seeds or (1 if mode.is_reduced else figures.SEEDS_WANTED)
    numbers = range(1, n_seeds + 1)
    todo = figures.jobs_of(one, mode, numbers, folder, force=force)
    if not quiet:
        packets = figures.data_packets(one, mode) * n_seeds / 1e6
        found = " and the probes of searches" if any(run.search for run in one.runs) else ""
        click.echo(f"{len(todo)} runs{found}, about {packets:.0f} M data packets", err=True)
    batch = run_jobs(todo, quiet=quiet, jobs=jobs)
    while not batch.is_interrupted:
        # A search knows its next probe when it has the last one.
        probes = figures.probes_of(one, mode, numbers, batch, folder, force=force)
        if not probes:
            break
        if not quiet:
            click.echo(f"{len(probes)} probes of searches", err=True)
        batch = batch.then(run_jobs(probes, quiet=quiet, jobs=jobs))
    _show_report(figures.make_report(one, mode, numbers, batch, folder), batch)
    leave(batch)


def _mode(*, quick: bool, full: bool, scale: float | None) -> "Mode":
    from rampmeter.papers import Mode

    if quick + full + (scale is not None) > 1:
        raise PlanError("--quick, --full, --scale: expected at most one of them")
    if scale is not None:
        if not 0.0 < scale <= 1000.0:
            raise PlanError(f"--scale: expected above 0 and at most 1000, got {scale:g}")
        return Mode("scale", scale)
    return Mode("quick" if quick else "full" if full else "judged")


def _list_figures(root: Path, paper: str | None) -> None:
    from rampmeter import papers as figures

    folders = [f for f in figures.list_figures(root) if paper in (None, f.parent.name)]
    if not folders:
        known = ", ".join(sorted({f.parent.name for f in figures.list_figures(root)}))
        raise PlanError(f"papers: expected one of {known}, got {paper}")
    for folder in folders:
        one = figures.load_figure(folder)
        click.echo(f"rampmeter papers {one.paper} {one.number}\n    {one.title}\n    {one.claim}")


def _show_report(report: "Report", batch: Batch) -> None:
    from rampmeter.papers.table import claims_table, panel_table, searches_table

    show(*(panel_table(report, panel) for panel in report.panels if panel.has_table))
    if report.searches:
        show(searches_table(report))
    if report.claims:
        show(claims_table(report))
    counts = ", ".join(f"{n} {name}" for name, n in report.counts().items())
    click.echo(f"\nverdicts: {counts}; {report.seeds_text()}; {batch.wall_seconds:.0f} s")
    click.echo(f"report: {report.file}")
    for panel in report.panels:
        click.echo(f"plot: {panel.image}")
