"""The command `rampmeter`."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from rampmeter import _core, core, schema
from rampmeter._core import PlanError, ResultError
from rampmeter.plan import Override, Plan, parse_override
from rampmeter.progress import watching
from rampmeter.results import Run
from rampmeter.runner import Batch, Job, run_all
from rampmeter.testbed.command import TestbedError
from rampmeter.toml import dumps

if TYPE_CHECKING:
    from rich.table import Table

    from rampmeter.papers import Mode, Report

BAD_INPUT = 2
INTERRUPTED = 130
LOG_WIDTH = 110
"""Columns of tables that do not go to a terminal."""

FOLDER = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)


class Failure(click.ClickException):
    """Bad input: one line on standard error, exit code 2."""

    exit_code = BAD_INPUT

    def show(self, file: Any = None) -> None:
        """Print the line."""
        click.echo(f"rampmeter: {' '.join(self.message.split())}", file=file or sys.stderr)


class Commands(click.Group):
    """Commands whose errors are lines, not tracebacks."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except (PlanError, ResultError, TestbedError, OSError) as error:
            raise Failure(_message(error)) from None
        except KeyboardInterrupt:
            click.echo("rampmeter: interrupted", err=True)
            ctx.exit(INTERRUPTED)


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(_core.VERSION, message=f"rampmeter %(version)s ({_core.COMMIT})")
@click.option(
    "--core",
    "library",
    metavar="PATH",
    type=FILE,
    help=f"The shared library of a core with further transports; also {core.VARIABLE}.",
)
def main(library: Path | None) -> None:
    """Simulate proactive datacenter transports.

    \b
    Example: a run, and a figure of a paper with its published values
      rampmeter run plan.toml
      rampmeter papers dcpim 3 --quick
    """
    if library is None:
        return
    if not library.is_file():
        raise Failure(f"--core: expected a shared library, got {library}: no such file")
    path = str(library.resolve())
    if os.environ.get(core.VARIABLE) != path:
        # A core has been loaded by now: the command starts anew, with the other one.
        environment = {**os.environ, core.VARIABLE: path}
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


set_option = click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a value of the plan."
)
quiet_option = click.option("--quiet", is_flag=True, help="Show no progress.")
jobs_option = click.option(
    "--jobs", type=click.IntRange(min=1), help="Runs at a time; as many as cores by default."
)


@main.command()
@click.argument("plan", type=FILE)
@set_option
@click.option("--seed", type=click.IntRange(min=0), help="The seed, instead of the plan's.")
@click.option("--out", type=FOLDER, help="Folder of the results; results/<plan> by default.")
@quiet_option
def run(
    plan: Path, settings: Sequence[str], seed: int | None, out: Path | None, *, quiet: bool
) -> None:
    """Run a plan; show slowdown by size, utilisation and drops.

    Ctrl-C ends the run and keeps what is done. A run whose results are there is not repeated.

    \b
    Example: at another load, to a folder of its own
      rampmeter run plan.toml --set workload.load=0.8 --seed 2 --out results/load-0.8
    """
    from rampmeter.tables import run_tables

    overrides = _overrides(settings, seed)
    complete = Plan.load(plan).with_(*overrides)
    folder = out or Path("results") / _folder_name(plan, overrides)
    batch = _run_all([Job(plan.stem, complete, folder)], quiet=quiet)
    outcome = batch.outcomes[0]
    if outcome.run is not None:
        _print(*run_tables(outcome.run))
        click.echo(f"\nresults: {folder}")
    _leave(batch)


@main.command()
@click.argument("plan", type=FILE)
@click.option(
    "--transports",
    required=True,
    metavar="NAME[:PRESET],...",
    help="The transports, with presets where they have some; `all` for every one.",
)
@set_option
@click.option("--seed", type=click.IntRange(min=0), help="The seed, instead of the plan's.")
@click.option("--out", type=FOLDER, help="Folder of the results; results/<plan>-compare.")
@jobs_option
@quiet_option
def compare(
    plan: Path,
    transports: str,
    settings: Sequence[str],
    seed: int | None,
    out: Path | None,
    jobs: int | None,
    *,
    quiet: bool,
) -> None:
    """Run the same flows through several transports; table and plot.

    What the plan's fabric table leaves out is as each transport needs it; a table says where
    fabrics differ.

    \b
    Example: the two presets of dcPIM
      rampmeter compare plan.toml --transports dcpim:paper,dcpim:reference
    """
    from rampmeter import plots
    from rampmeter.results import slowdown_groups
    from rampmeter.tables import compared_slowdown, fabrics, overview

    overrides = _overrides(settings, seed)
    base = Plan.load(plan).with_(*overrides)
    folder = out or Path("results") / f"{_folder_name(plan, overrides)}-compare"
    todo = [
        Job(name, _with_transport(base, name), folder / name.replace(":", "-"))
        for name in _transport_names(transports)
    ]
    batch = _run_all(todo, quiet=quiet, jobs=jobs)
    runs = batch.runs()
    summaries = {name: done.summary for name, done in runs.items()}
    if summaries:
        resolved = {name: done.manifest["plan"]["fabric"] for name, done in runs.items()}
        _print(*fabrics(resolved), overview(summaries), compared_slowdown(summaries))
        series = [
            plots.SizeSeries.of(name, slowdown_groups(summary))
            for name, summary in summaries.items()
        ]
        image = folder / "slowdown_by_size.png"
        plots.slowdown_by_size(series).savefig(image)
        click.echo(f"\nresults: {folder}\nplot: {image}")
    _leave(batch)


@main.command()
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
    folder = out or Path("results/papers") / paper / f"fig{figure}" / mode.label
    n_seeds = seeds or (1 if mode.is_reduced else figures.SEEDS_WANTED)
    numbers = range(1, n_seeds + 1)
    todo = figures.jobs_of(one, mode, numbers, folder)
    if not quiet:
        packets = figures.data_packets(one, mode) * n_seeds / 1e6
        click.echo(f"{len(todo)} runs, about {packets:.0f} M data packets", err=True)
    batch = _run_all(todo, quiet=quiet, jobs=jobs)
    _show_report(figures.make_report(one, mode, numbers, batch, folder), batch)
    _leave(batch)


@main.command()
@click.argument("plan", type=FILE)
@click.option(
    "--arms",
    default="rampd,sim",
    show_default=True,
    metavar="ARM,...",
    help="What to run it on: rampd (hosts, the plan's transport), tcp (hosts, the kernel's TCP), "
    "sim (the simulator, with the delays measured before).",
)
@set_option
@click.option("--seed", type=click.IntRange(min=0), help="The seed, instead of the plan's.")
@click.option("--out", type=FOLDER, help="Folder of the results; results/<plan>-testbed.")
@quiet_option
def testbed(
    plan: Path,
    arms: str,
    settings: Sequence[str],
    seed: int | None,
    out: Path | None,
    *,
    quiet: bool,
) -> None:
    """Run a plan between real hosts: network namespaces of this machine.

    The plan's leaf-spine is built of namespaces with shaped links of eight priorities, its flows
    are sent at their times, and the results are those of a simulation: the same tables, plots and
    commands. Needs iproute2, and root or user namespaces. Whatever happens, it is taken down.

    \b
    Example: dcPIM against TCP, and what the simulator says
      rampmeter testbed plan.toml --arms rampd,tcp,sim
    """
    from rampmeter import plots
    from rampmeter.progress import counting
    from rampmeter.results import slowdown_groups
    from rampmeter.tables import compared_slowdown, overview
    from rampmeter.testbed import enter_user_namespace
    from rampmeter.testbed.experiment import run_arms

    overrides = _overrides(settings, seed)
    complete = Plan.load(plan).with_(*overrides)
    complete.check()
    enter_user_namespace(sys.orig_argv)
    folder = out or Path("results") / f"{_folder_name(plan, overrides)}-testbed"
    with counting(Console(stderr=True), is_quiet=quiet) as progress:
        runs = dict(run_arms(complete, folder, arms.split(","), progress))
    summaries = {arm: run.summary for arm, run in runs.items()}
    _print(overview(summaries), compared_slowdown(summaries))
    series = [plots.SizeSeries.of(arm, slowdown_groups(of)) for arm, of in summaries.items()]
    image = folder / "slowdown_by_size.png"
    plots.slowdown_by_size(series).savefig(image)
    click.echo(f"\nresults: {folder}\nplot: {image}")


@main.command()
@click.argument("plan", type=FILE, required=False)
@set_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def bench(plan: Path | None, settings: Sequence[str], *, as_json: bool) -> None:
    """Measure the speed of one core on whole runs, or that of hosts.

    Without a plan: dcPIM on IMC10 at load 0.6, on 144 and on 1024 hosts. With the word hosts:
    packets and round trips through the datapaths beside bare loops, processor time per packet
    beside TCP and QUIC, and the arbiter's decisions; this builds them first, in a checkout of the
    project, and the first parts need root.

    \b
    Example: a plan of one's own, in JSON; hosts
      rampmeter bench plan.toml --set workload.flows=100000 --json
      rampmeter bench hosts
    """
    from rampmeter import benchmark

    if plan == Path("hosts") and not plan.is_file():
        benchmark.measure_hosts()
        return

    overrides = _overrides(settings, None)
    if plan is not None:
        plans = {plan.stem: Plan.load(plan).with_(*overrides)}
    else:
        plans = {name: one.with_(*overrides) for name, one in benchmark.PLANS.items()}
    reports = benchmark.measure(plans)
    if as_json:
        click.echo(json.dumps(reports, indent=2))
        return
    from rampmeter.tables import speed

    _print(speed(reports))


@main.command()
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("--out", type=FOLDER, help="Folder of the images; DIR by default.")
def plot(folder: Path, out: Path | None) -> None:
    """Plot the results of a run: slowdown, completion times, utilisation, queues, tenants.

    \b
    Example:
      rampmeter plot results/plan --out images
    """
    done = Run(folder)
    figures = {
        "slowdown_by_size": done.plot.slowdown_by_size,
        "fct_cdf": done.plot.fct_cdf,
        "utilisation": done.plot.utilisation,
        "queue_cdf": done.plot.queue_cdf,
    }
    if done.tenants is not None:
        figures["tenants"] = done.plot.tenants
    target = out or folder
    drawn = {name: draw() for name, draw in figures.items()}
    target.mkdir(parents=True, exist_ok=True)
    for name, figure in drawn.items():
        image = target / f"{name}.png"
        figure.savefig(image)
        click.echo(str(image))


@main.command()
@click.argument("source", type=FILE)
@click.argument("target", type=FILE)
@click.option(
    "--format",
    "format_",
    required=True,
    metavar="FORMAT",
    help="What the source is: yaps, dcpim, htsim, hpcc, csv or parquet.",
)
@click.option("--sort", is_flag=True, help="Sort flows that are not in order of arrival.")
def convert(source: Path, target: Path, format_: str, *, sort: bool) -> None:
    """Turn a trace of another tool into a .csv, .csv.gz or .parquet file.

    \b
    Example: the flows of an htsim connection matrix
      rampmeter convert flows.cm flows.parquet --format htsim
    """
    n_flows = _core.convert(str(source), format_, str(target), sort)
    click.echo(f"{target}: {n_flows} flows")


@main.command()
def transports() -> None:
    """List the transports that plans may name.

    \b
    Example: ours, and with one of one's own
      rampmeter transports
      rampmeter --core libmine.so transports
    """
    for about in schema.transports():
        presets = ", ".join(preset for preset, _ in about["presets"])
        click.echo(f"{about['name']} ({presets})\n    {about['summary']}")


@main.command()
@click.argument("plan", type=FILE)
@set_option
def check(plan: Path, settings: Sequence[str]) -> None:
    """Check a plan; print all of it, with its defaults.

    \b
    Example:
      rampmeter check plan.toml --set workload.load=0.9
    """
    complete = Plan.load(plan).with_(*_overrides(settings, None)).check()
    click.echo(dumps(_without_nulls(complete)), nl=False)


def _overrides(settings: Sequence[str], seed: int | None) -> list[Override]:
    overrides = [parse_override(text) for text in settings]
    if seed is not None:
        overrides.append(("seed", seed))
    return overrides


def _folder_name(plan: Path, overrides: Sequence[Override]) -> str:
    """The plan's name and what was changed, as a folder's name."""
    changes = [f"{key.rpartition('.')[2]}={value}" for key, value in overrides]
    name = "-".join([plan.stem, *changes])
    return "".join(c if c.isalnum() or c in "-_=." else "_" for c in name)[:120]


def _transport_names(text: str) -> list[str]:
    names = schema.names() if text == "all" else [name.strip() for name in text.split(",")]
    if not all(names) or len(set(names)) < len(names):
        raise PlanError(f"--transports: expected names that differ, got {text}")
    return names


def _with_transport(plan: Plan, name: str) -> Plan:
    """The plan with another transport; keys of its own transport stay where that is the same."""
    protocol, _, preset = name.partition(":")
    table = dict(plan.get("transport", {}))
    if table.get("name") != protocol:
        table = {"name": protocol}
    if preset:
        table["preset"] = preset
    return plan.with_(("transport", table))


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
    from rampmeter.papers.table import claims_table, panel_table

    _print(*(panel_table(report, panel) for panel in report.panels if panel.has_table))
    if report.claims:
        _print(claims_table(report))
    counts = ", ".join(f"{n} {name}" for name, n in report.counts().items())
    click.echo(f"\nverdicts: {counts}; {report.seeds_text()}; {batch.wall_seconds:.0f} s")
    click.echo(f"report: {report.file}")
    for panel in report.panels:
        click.echo(f"plot: {panel.image}")


def _run_all(todo: list[Job], *, quiet: bool, jobs: int | None = None) -> Batch:
    with watching(Console(stderr=True), todo, is_quiet=quiet) as watcher:
        return run_all(todo, watcher, n_threads=jobs)


def _leave(batch: Batch) -> None:
    """Exit as the batch ended."""
    batch.raise_failures()
    if batch.is_interrupted:
        raise KeyboardInterrupt


def _print(*tables: "Table") -> None:
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=LOG_WIDTH)
    for table in tables:
        console.print()
        console.print(table)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value if inner is not None]
    return value


if __name__ == "__main__":
    main()
