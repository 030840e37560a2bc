"""`rampmeter papers`."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from rampmeter import papers as figures
from rampmeter.choices.seeds import listed
from rampmeter.commands.common import exit_by_outcome, fail, run_jobs
from rampmeter.commands.options import (
    EXIT_CODES_PAPERS,
    FOLDER,
    FiniteRange,
    SignalStop,
    force_option,
    jobs_option,
    quiet_option,
    seeds_of,
    warn,
)
from rampmeter.commands.output import Output, output_options, show
from rampmeter.papers import Figure, Mode, Report, find_figure, list_figures, load_figure
from rampmeter.papers.costs import FigureCost, duration, packet_seconds
from rampmeter.papers.costs import seeds_of as by_mode
from rampmeter.papers.data_tables import figures_table, report_tables, status_table
from rampmeter.papers.fill import fill
from rampmeter.papers.from_ledger import draw_all, report_from_ledger
from rampmeter.papers.ledger import Ledger
from rampmeter.papers.replays import ReplayLedger, status_tables
from rampmeter.papers.status import FigureStatus
from rampmeter.papers.summaries import list_table, summaries
from rampmeter.papers.table import (
    claims_table,
    misses_lines,
    panel_table,
    searches_table,
)
from rampmeter.report import find, write
from rampmeter.results.table import ResultTable
from rampmeter.running.batch_flows import count_undelivered, rejections
from rampmeter.running.progress import watching
from rampmeter.running.runner import Batch, n_cores
from rampmeter.text.json_object import read_json
from rampmeter.text.locations import Location
from rampmeter.text.numbers import counted
from rampmeter.text.terminal import progress_console

PAPERS = Path("results/papers")
"""Folder in which figures are made."""
REPORT = "report.html"
"""File name of the report of all figures, in that folder."""
LEDGER = "ledger"
"""The folder of a figure that is drawn from the ledger."""
NOT_FROM_LEDGER = "--quick, --full, --scale, --seeds or --with-ledger"
"""Options that `--from-ledger` excludes."""


@click.command(epilog=EXIT_CODES_PAPERS)
@click.argument("paper", required=False)
@click.argument("figure", required=False)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Make every figure of PAPER, or of all papers, and a report.",
)
@click.option("--quick", is_flag=True, help="Use few flows and fewer runs; takes minutes.")
@click.option("--full", is_flag=True, help="Use as many flows as published in every run.")
@click.option("--scale", type=float, help="Multiply the number of flows.")
@click.option(
    "--seeds",
    callback=lambda _context, _option, text: _seeds(text),
    metavar="N|A..B|LIST",
    help="Number of seeds of each run, or the seeds; 3 by default, 1 for reduced figures.",
)
@click.option("--out", type=FOLDER, help="Folder of the results; results/papers/... by default.")
@click.option(
    "--from-ledger",
    is_flag=True,
    help="Draw and judge the full figure from the ledger, without runs.",
)
@click.option(
    "--with-ledger", is_flag=True, help="Also show the figure of the ledger after a reduced one."
)
@click.option("--dry-run", is_flag=True, help="Estimate runs and processor time, and run nothing.")
@click.option("--status", is_flag=True, help="Show how many published values match, by figure.")
@output_options
@click.option(
    "--fill",
    type=FiniteRange(min=0, min_open=True),
    metavar="HOURS",
    help="Run missing entries of the ledger for at most this time, the cheapest first.",
)
@force_option
@jobs_option
@quiet_option
def papers(
    paper: str | None,
    figure: str | None,
    scale: float | None,
    seeds: Sequence[int] | None,
    out: Path | None,
    jobs: int | None,
    fill: float | None,
    *,
    from_ledger: bool,
    with_ledger: bool,
    status: bool,
    dry_run: bool,
    output: Output,
    everything: bool,
    quick: bool,
    full: bool,
    force: bool,
    quiet: bool,
) -> None:
    """Make a figure of a paper and judge it by the published values.

    Without a figure, list all figures with their costs. An interrupted figure continues at its
    missing runs. A reduced figure is compared with values recorded from the same number of flows.
    Without such values the verdict is "fewer flows". --all also writes results/papers/report.html.

    The ledger papers/ledger has the values of runs with as many flows as published and 3 seeds, and
    of pilot runs with at most 10 % of the flows. --status judges its entries: without a full run
    "pilot match" or "pilot miss", without a current entry "not run". --fill runs all that is
    missing. --from-ledger draws and judges a figure from its entries, and with --all every figure.

    \b
    Example: dcPIM's figure 3 in a few minutes, in full, and all figures of all papers
      rampmeter papers dcpim 3 --quick
      rampmeter papers dcpim 3
      rampmeter papers --all
    """
    root, mode = figures.find_papers(), _mode(quick=quick, full=full, scale=scale)
    has_mode = quick or full or scale is not None or seeds is not None or with_ledger
    has_scope = has_mode or from_ledger or everything or dry_run or out is not None
    if _is_of_ledger(output, fill, status=status, has_scope=has_scope):
        _open_ledger(root, paper, figure, fill, output, status=status, quiet=quiet)
        return
    _check_scope(figure, has_mode=has_mode, from_ledger=from_ledger, everything=everything)
    if dry_run:
        _show_costs(root, paper, figure, mode, seeds, output)
        return
    if everything and from_ledger:
        _draw_all(root, paper, out or PAPERS, jobs, output)
        return
    if everything:
        _make_all(root, paper, mode, seeds, out, jobs, output, force=force, quiet=quiet)
        return
    if paper is None or figure is None:
        _list_figures(root, paper, output, has_scope=has_scope)
        return
    one = figures.load_figure(figures.find_figure(root, paper, figure))
    folder = PAPERS / paper / one.folder.name
    if from_ledger:
        _show_from_ledger(one, root, out or folder / LEDGER, output)
        return
    made = out or folder / mode.label
    report, batch = _make(one, mode, seeds, made, jobs, force=force, quiet=quiet)
    _show_made(report, batch, output)
    exit_by_outcome(batch)
    if with_ledger and not output.is_json:
        _show_ledger_figure(one, root, folder / LEDGER, output)
    fail(_failures(one, batch))


def _seeds(text: str | None) -> Sequence[int] | None:
    """Returns the seeds of `--seeds`."""
    chosen = seeds_of(text)
    return None if chosen is None else listed(chosen, 1)


def _is_of_ledger(output: Output, hours: float | None, *, status: bool, has_scope: bool) -> bool:
    """Returns true if the ledger is filled or shown; JSON without options of figures shows it.

    Raises an error if there are options of the ledger and of figures.
    """
    if has_scope and (status or hours is not None):
        name = "--status" if status else "--fill"
        raise Location(key=name).error("applies to the ledger, and excludes options of figures")
    return status or hours is not None or (output.is_json and not has_scope)


def _check_scope(
    figure: str | None, *, has_mode: bool, from_ledger: bool, everything: bool
) -> None:
    """Raises an error if the options about the figures to make exclude each other."""
    if from_ledger and has_mode:
        raise Location(key="--from-ledger").error(f"cannot be combined with {NOT_FROM_LEDGER}")
    if everything and figure is not None:
        raise Location(key="--all").error(f"applies to whole papers; omit the figure {figure}")


def _open_ledger(
    root: Path,
    paper: str | None,
    figure: str | None,
    hours: float | None,
    output: Output,
    *,
    status: bool,
    quiet: bool,
) -> None:
    """Fills the ledger for some hours, or shows its status without a number of hours."""
    if hours is not None and (status or output.is_json):
        raise Location(key="--fill").error("cannot be combined with --status or --json")
    chosen = _select_figures(root, paper, figure)
    if hours is None:
        _show_status(root, chosen, output, with_replays=paper is None)
    else:
        _fill(root, chosen, hours, quiet=quiet)


def _select_figures(root: Path, paper: str | None, figure: str | None) -> list[Figure]:
    """Returns one figure, those of a paper, or all."""
    if paper is not None and figure is not None:
        return [load_figure(find_figure(root, paper, figure))]
    return [load_figure(folder) for folder in _folders_of(root, paper)]


def _show_status(root: Path, chosen: list[Figure], output: Output, *, with_replays: bool) -> None:
    """Shows the verdicts of the ledger by figure, and those of replays."""
    ledger = Ledger(root)
    statuses = [FigureStatus.of(one, ledger) for one in chosen]
    replays = ReplayLedger(root).states() if with_replays else []
    figures = [status.to_json() for status in statuses] + [one.to_json() for one in replays]
    tables = [status_table(statuses), *status_tables(replays)]
    output.print("papers", {"figures": figures}, tables)
    if not output.is_whole_text:
        return
    misses = misses_lines(statuses)
    if len(chosen) < len(_folders_of(root, None)):
        click.echo("".join(f"{line}\n" for line in misses), nl=False)
    elif misses:
        click.echo("`rampmeter papers PAPER --status` lists misses with their causes")


def _show_from_ledger(one: Figure, root: Path, folder: Path, output: Output) -> None:
    """Makes a figure from its entries, and shows it."""
    ledger = Ledger(root)
    report = report_from_ledger(one, ledger, folder)
    if report is None:
        raise Location(ledger.root).result_error(
            expected=f"entries of {one.paper} {one.number} for a plot",
            hint="`rampmeter papers --fill HOURS` makes them",
        )
    drawn = {panel.id for panel in report.panels}
    left_out = [panel.id for panel in one.sub_figures if panel.id not in drawn]
    if not output.is_whole_text:
        _emit([report], output, report_tables(report))
        return
    _show_tables(report)
    verdicts = FigureStatus.of(one, ledger).verdicts
    counts = ", ".join(f"{n} {name}" for name, n in sorted(verdicts.items()))
    click.echo(f"\nverdicts of the ledger: {counts}; {report.seeds_text()}")
    if left_out:
        click.echo(f"without entries that can be drawn: {', '.join(left_out)}")
    _show_files(report)


def _draw_all(
    root: Path, paper: str | None, folder: Path, jobs: int | None, output: Output
) -> None:
    """Draws the figures of a paper or of all from the ledger, and writes their report."""
    outs = {one: folder / one.parent.name / one.name / LEDGER for one in _folders_of(root, paper)}
    drawn = draw_all(root, outs, jobs or n_cores())
    ledger = Ledger(root)
    statuses = [FigureStatus.of(one, ledger) for one in _select_figures(root, paper, None)]
    output.print("papers", {}, [status_table(statuses)])
    made = f"{counted(len(drawn), 'figure')} drawn, {len(outs) - len(drawn)} without entries"
    click.echo(made, err=not output.is_text)
    _write_report(drawn, folder, output)


def _show_ledger_figure(one: Figure, root: Path, folder: Path, output: Output) -> None:
    """Shows the figure of the ledger after a reduced one, if there are entries."""
    name = f"{one.paper} {one.number}"
    if not any(Ledger(root).current(one).runs.values()):
        click.echo(
            f"\n{name}: the ledger has no complete run; `rampmeter papers --fill HOURS`",
            err=not output.is_text,
        )
        return
    click.echo(f"\n{name} from the ledger:\n", err=not output.is_text)
    _show_from_ledger(one, root, folder, output)


def _fill(root: Path, chosen: list[Figure], hours: float, *, quiet: bool) -> None:
    """Runs the missing entries of the ledger."""
    ledger = Ledger(root)
    console = progress_console()
    result = fill(ledger, chosen, hours, lambda jobs: watching(console, jobs, is_quiet=quiet))
    remaining = f"; {result.n_left} missing" if result.n_left else ""
    click.echo(f"{counted(result.n_made, 'run')} entered in {ledger.root}{remaining}")
    if result.stopped_by is not None:
        raise SignalStop(result.stopped_by)


def _make_all(
    root: Path,
    paper: str | None,
    mode: Mode,
    seeds: Sequence[int] | None,
    out: Path | None,
    jobs: int | None,
    output: Output,
    *,
    force: bool,
    quiet: bool,
) -> None:
    """Makes the figures of a paper, or of all papers, and their report."""
    folder = out or PAPERS
    made: list[Path] = []
    batches, reports = [], []
    failures: list[str] = []
    for found in _folders_of(root, paper):
        one = load_figure(found)
        made.append(folder / one.paper / one.folder.name / mode.label)
        report, batch = _make(one, mode, seeds, made[-1], jobs, force=force, quiet=quiet)
        if not output.is_json:
            _show_made(report, batch, output)
        if batch.stopped_by is not None:
            exit_by_outcome(batch)
        batches.append(batch)
        reports.append(report)
        failures += _failures(one, batch)
    if output.is_json:
        _emit(reports, output, ())
    _write_report(made, folder, output)
    for batch in batches:
        exit_by_outcome(batch)
    fail(failures)


def _write_report(made: list[Path], folder: Path, output: Output) -> None:
    """Writes the report of the figures in the folders `made`."""
    report = folder / REPORT
    write(find(made, folder), report, "Rampmeter: figures of papers")
    click.echo(f"\nreport of all figures: {report}", err=not output.is_text)


def _failures(one: Figure, batch: Batch) -> list[str]:
    """Returns a line for each transport with flows that failed without a fault in the plan."""
    return [
        f"{one.paper} {one.number}: {transport.failure}"
        for transport in count_undelivered(batch)
        if transport.n_failed
    ]


def _make(
    one: Figure,
    mode: Mode,
    seeds: Sequence[int] | None,
    folder: Path,
    jobs: int | None,
    *,
    force: bool,
    quiet: bool,
) -> tuple[Report, Batch]:
    """Runs the simulations of a figure."""
    numbers = seeds or listed(by_mode(mode), 1)
    todo = figures.jobs_of(one, mode, numbers, folder, force=force)
    if not quiet:
        packets = figures.data_packets(one, mode) * len(numbers) / 1e6
        found = " and the probes of searches" if any(run.search for run in one.runs) else ""
        name = f"{one.paper} {one.number}"
        runs = counted(len(todo), "run")
        click.echo(f"{name}: {runs}{found}, about {packets:.0f} M data packets", err=True)
    batch = run_jobs(todo, quiet=quiet, jobs=jobs)
    while not batch.is_interrupted:
        # The next probe of a search depends on the result of the last one.
        probes = figures.probes_of(one, mode, numbers, batch, folder, force=force)
        if not probes:
            break
        if not quiet:
            click.echo(f"{counted(len(probes), 'probe')} of searches", err=True)
        batch = batch.followed_by(run_jobs(probes, quiet=quiet, jobs=jobs))
    return figures.make_report(one, mode, numbers, batch, folder), batch


def _show_made(report: Report, batch: Batch, output: Output) -> None:
    """Shows a figure that was made, with its warnings."""
    cautions = [*report.warnings, *rejections(batch)]
    if output.is_json:
        _emit([report], output, report_tables(report))
    elif output.is_whole_text:
        _show_report(report, batch)
        warn(cautions)
    else:
        output.print("papers", {}, report_tables(report))
        output.warn(cautions)


def _emit(reports: Sequence[Report], output: Output, tables: Iterable[ResultTable]) -> None:
    """Prints figures in a format of tables; as JSON with the contents of their `report.json`."""
    output.print("papers", {"figures": [read_json(one.file) for one in reports]}, tables)


def _mode(*, quick: bool, full: bool, scale: float | None) -> Mode:
    if quick + full + (scale is not None) > 1:
        raise Location(key="--quick, --full, --scale").error("exclude each other; use one of them")
    if scale is not None:
        if not 0.0 < scale <= 1000.0:
            raise Location(key="--scale").error(
                expected="a number above 0 and up to 1000", got=f"{scale:g}"
            )
        return Mode("scale", scale)
    return Mode("quick" if quick else "full" if full else "judged")


def _folders_of(root: Path, paper: str | None) -> list[Path]:
    """Returns the folders of a paper's figures, or of all."""
    folders = [folder for folder in list_figures(root) if paper in (None, folder.parent.name)]
    if not folders:
        papers = ", ".join(sorted({folder.parent.name for folder in list_figures(root)}))
        raise Location(key="papers").error(expected=f"one of {papers}", got=paper)
    return folders


def _list_figures(root: Path, paper: str | None, output: Output, *, has_scope: bool) -> None:
    """Lists figures with their costs and verdicts; those of one paper with their claims.

    Raises an error if options of figures lack one.
    """
    if has_scope:
        raise Location(key="FIGURE").error(expected="a figure, or --all")
    folders = {folder.parent.name for folder in _folders_of(root, paper)}
    chosen = [one for one in summaries(root) if one.folder in folders]
    if not output.is_whole_text:
        output.print("papers", {}, [figures_table(chosen)])
        return
    show(list_table(chosen, n_cores()))
    if paper is None:
        click.echo("\n`rampmeter papers PAPER` has the claims, `--status` all verdicts.")
        return
    for one in chosen:
        click.echo(f"\nrampmeter papers {one.paper} {one.number}\n    {one.claim}")


def _show_costs(
    root: Path,
    paper: str | None,
    figure: str | None,
    mode: Mode,
    seeds: Sequence[int] | None,
    output: Output,
) -> None:
    """Shows the runs and the processor time of figures that would be made."""
    ledger, n_seeds = Ledger(root), len(seeds) if seeds else by_mode(mode)
    total = 0.0
    estimates: list[dict[str, Any]] = []
    for one in _select_figures(root, paper, figure):
        runs = [run for run in one.runs if run.is_in(mode)]
        n_searches = sum(run.search is not None for run in runs)
        found = f" and searches of {counted(n_searches, 'value')}" if n_searches else ""
        n_runs = (len(runs) - n_searches) * n_seeds
        cost = FigureCost.of(one, mode, n_seeds, packet_seconds(one, ledger))
        total += cost.seconds
        estimate = {"runs": n_runs, "searches": n_searches, "data_packets": cost.packets}
        estimate["processor_seconds"] = cost.seconds
        estimates.append({"paper": one.paper, "figure": one.number, "estimate": estimate})
        if output.is_json:
            continue
        packets = f"{cost.packets / 1e6:.0f} M data packets"
        click.echo(
            f"{one.paper} {one.number}: {counted(n_runs, 'run')}{found}, {packets}, "
            f"about {duration(cost.seconds)} of processor time"
        )
    if output.is_json:
        output.print("papers", {"figures": estimates}, ())
        return
    wall = duration(total / n_cores())
    click.echo(f"all: about {duration(total)} of processor time, {wall} on {n_cores()} cores")


def _show_report(report: Report, batch: Batch) -> None:
    _show_tables(report)
    counts = ", ".join(f"{n} {name}" for name, n in report.counts().items())
    click.echo(f"\nverdicts: {counts}; {report.seeds_text()}; {batch.wall_seconds:.0f} s")
    _show_files(report)


def _show_tables(report: Report) -> None:
    show(*(panel_table(report, panel) for panel in report.panels if panel.has_table))
    if report.searches:
        show(searches_table(report))
    if report.claims:
        show(claims_table(report))


def _show_files(report: Report) -> None:
    click.echo(f"report: {report.file}")
    for panel in report.panels:
        click.echo(f"plot: {panel.image}")
