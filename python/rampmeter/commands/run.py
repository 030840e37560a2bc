"""`rampmeter run`."""

from collections.abc import Sequence
from pathlib import Path

import click

from rampmeter.commands.common import exit_by_outcome, run_jobs, show
from rampmeter.commands.json_output import emit, json_option, warnings_of
from rampmeter.commands.options import (
    EXIT_CODES,
    FILE,
    folder_name,
    name_of,
    overrides_of,
    plan_options,
    result_options,
    warn,
)
from rampmeter.plan.plan import Plan
from rampmeter.results.tables import run_tables
from rampmeter.running.runner import Job


@click.command(epilog=EXIT_CODES)
@click.argument("plan", type=FILE)
@plan_options
@result_options("results/<plan> by default")
@json_option
def run(
    plan: Path,
    settings: Sequence[str],
    seed: int | None,
    out: Path | None,
    *,
    force: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run a plan; show slowdown by size, utilisation and drops.

    Ctrl-C ends the run; finished results are stored. A run that has results is not repeated, and
    results of another plan are not replaced. The plan may be the manifest.json of a result, which
    is then run again.

    \b
    Example: another load, and a separate folder
      rampmeter run plan.toml --set workload.load=0.8 --seed 2 --out results/load-0.8
    """
    overrides = overrides_of(settings, seed)
    complete = Plan.load(plan).with_(*overrides)
    folder = out or Path("results") / folder_name(plan, overrides)
    batch = run_jobs([Job(name_of(plan), complete, folder, force)], quiet=quiet)
    outcome = batch.outcomes[0]
    if outcome.run is not None and as_json:
        fields = {"folder": folder, "status": outcome.run.status, "summary": outcome.run.summary}
        emit("run", {**fields, "warnings": warnings_of(outcome.run.warnings)})
    elif outcome.run is not None:
        show(*run_tables(outcome.run))
        click.echo(f"\nresults: {folder}")
        warn(outcome.run.warnings)
    exit_by_outcome(batch, needs_all=True)
