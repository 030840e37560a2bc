"""`rampmeter compare`."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from rampmeter import naming
from rampmeter.commands.common import (
    EXIT_CODES_COMPARED,
    FILE,
    NOT_ALL_DELIVERED,
    fail,
    folder_name,
    leave,
    overrides_of,
    plan_options,
    result_options,
    run_jobs,
    show,
    warn,
)
from rampmeter.comparison import FAILURES, Comparison, Failures
from rampmeter.plan import Plan
from rampmeter.results import Run


@click.command(epilog=EXIT_CODES_COMPARED)
@click.argument("plan", type=FILE)
@click.option(
    "--transports",
    required=True,
    metavar="NAME[:PRESET][:KEY=VALUE],...",
    help="The transports, with presets or keys of their own; `all` for every one.",
)
@click.option(
    "--failures",
    type=click.Choice(FAILURES),
    default="excluded",
    show_default=True,
    help="Flows that some transport did not deliver: left out of the statistics of all, or "
    "infinitely slow there.",
)
@plan_options
@click.option(
    "--seeds", type=click.IntRange(1, 1000), help="Seeds of each transport, with intervals."
)
@click.option(
    "--precision",
    type=click.FloatRange(0, 1, min_open=True),
    help="Add seeds until each mean slowdown's 95 % interval is within this share of it.",
)
@result_options("results/<plan>-compare", has_jobs=True)
def compare(
    plan: Path,
    transports: str,
    failures: Failures,
    settings: Sequence[str],
    seed: int | None,
    seeds: int | None,
    precision: float | None,
    out: Path | None,
    jobs: int | None,
    *,
    force: bool,
    quiet: bool,
) -> None:
    """Run the same flows through several transports; table and plot.

    What the plan's fabric table leaves out is as each transport needs it; a table says where
    fabrics differ. Slowdown is over the flows that every transport delivered, unless --failures
    says otherwise.

    \b
    Example: the two presets of dcPIM; a transport with keys of its own; ten seeds
      rampmeter compare plan.toml --transports dcpim:paper,dcpim:reference
      rampmeter compare plan.toml --transports dcpim,pfabric:window=60,window-max=75
      rampmeter compare plan.toml --transports dcpim,phost --seeds 10
    """
    from rampmeter.contest import Contest

    overrides = overrides_of(settings, seed)
    base = Plan.load(plan).with_(*overrides)
    folder = out or Path("results") / f"{folder_name(plan, overrides)}-compare"
    choices = naming.transports(transports)
    contest = Contest(base, choices, folder, seeds, precision, failures, force)
    comparison, batch = contest.run(partial(run_jobs, quiet=quiet, jobs=jobs))
    if comparison is not None:
        show_comparison(comparison, folder)
        warn([*comparison.warnings(), *contest.warnings(comparison)])
    leave(batch)
    if comparison is not None:
        fail([one.failure for one in comparison.undelivered() if one.n_failed])
    if any(map(is_short, batch.runs().values())):
        raise SystemExit(NOT_ALL_DELIVERED)


def is_short(run: Run) -> bool:
    """Returns true if flows of a run failed, with a fault or without, or were unfinished."""
    flows = run.summary["flows"]
    rejected = int(flows.get("rejected", 0))
    return not run.is_complete or int(flows["delivered"]) + rejected < int(flows["submitted"])


def show_comparison(comparison: Comparison, folder: Path) -> None:
    """Print the tables of a comparison; keep it and its plot in a folder."""
    from rampmeter.tables import comparison_sheets, fabrics

    plans = {label: runs[0].manifest["plan"] for label, runs in comparison.runs.items()}
    resolved = {label: plan["fabric"] for label, plan in plans.items()}
    show(*fabrics(resolved), *comparison_sheets(comparison))
    comparison.save(folder)
    image = folder / "slowdown_by_size.png"
    comparison.plot.slowdown_by_size().savefig(image)
    click.echo(f"\nresults: {folder}\nplot: {image}")
