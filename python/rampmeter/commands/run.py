"""`rampmeter run`."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from rampmeter.commands.common import exit_by_outcome, run_jobs
from rampmeter.commands.json_output import warnings_of
from rampmeter.commands.options import (
    EXIT_CODES,
    FILE,
    FiniteRange,
    folder_name,
    name_of,
    overrides_of,
    plan_options,
    result_options,
    run_length_options,
)
from rampmeter.commands.output import Output, output_options
from rampmeter.plan.plan import Plan
from rampmeter.results.tables import run_tables
from rampmeter.running.growing_run import grow
from rampmeter.running.run_length import length_of_run
from rampmeter.running.runner import Job


@click.command(epilog=EXIT_CODES)
@click.argument("plan", type=FILE)
@plan_options
@run_length_options
@click.option(
    "--precision",
    type=FiniteRange(0, 1, min_open=True),
    help="With --auto-flows: the maximum half width of the mean slowdown's 95 % interval, as a "
    "share of the mean; 0.05 by default.",
)
@result_options("results/<plan> by default")
@output_options
def run(
    plan: Path,
    settings: Sequence[str],
    seed: int | None,
    precision: float | None,
    flows_max: int | None,
    out: Path | None,
    *,
    auto_flows: bool,
    force: bool,
    quiet: bool,
    output: Output,
) -> None:
    """Run a plan; show slowdown by size, utilisation and drops.

    Ctrl-C ends the run; finished results are stored. A run that has results is not repeated, and
    results of another plan are not replaced. The plan may be the manifest.json of a result, which
    is then run again.

    \b
    Example: another load, and a separate folder
      rampmeter run plan.toml --set workload.load=0.8 --seed 2 --out results/load-0.8
    \b
    Example: as many flows as a steady state and a precise mean need
      rampmeter run plan.toml --auto-flows --precision 0.02
    """
    overrides = overrides_of(settings, seed)
    complete = Plan.load(plan).with_(*overrides)
    folder = out or Path("results") / folder_name(plan, overrides)
    job, run_all_of = Job(name_of(plan), complete, folder, force), partial(run_jobs, quiet=quiet)
    length = length_of_run(complete, precision, flows_max, is_auto=auto_flows)
    if length is None:
        batch = run_all_of([job])
    else:
        grown = grow(job, length, run_all_of)
        batch = grown.batch
        if batch.runs() and not (quiet and grown.is_enough):
            click.echo(grown.text(), err=True)
    outcome = batch.outcomes[0]
    if outcome.run is not None:
        fields = {"folder": folder, "status": outcome.run.status, "summary": outcome.run.summary}
        fields["warnings"] = warnings_of(outcome.run.warnings)
        first, *others = run_tables(outcome.run)
        # In a terminal the last lines remain visible.
        output.print("run", fields, [*others, first] if output.is_text else [first, *others])
        if output.is_text:
            click.echo(f"\nresults: {folder}")
        if not output.is_json:
            output.warn(outcome.run.warnings)
    exit_by_outcome(batch, needs_all=True)
