"""`rampmeter compare`."""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import click

from rampmeter.choices import naming
from rampmeter.commands.common import exit_by_outcome, fail, run_jobs
from rampmeter.commands.json_output import warnings_of
from rampmeter.commands.options import (
    EXIT_CODES_COMPARED,
    FILE,
    NOT_ALL_DELIVERED,
    FiniteRange,
    folder_name,
    overrides_of,
    plan_options,
    result_options,
    run_length_options,
    seeds_of,
    seeds_option,
)
from rampmeter.commands.output import Output, output_options
from rampmeter.plan.plan import Plan
from rampmeter.results.comparison import Comparison
from rampmeter.results.comparison_tables import comparison_tables
from rampmeter.results.run import Run
from rampmeter.results.same_flows import FAILURES, Failures
from rampmeter.running.comparison_job import ComparisonJob
from rampmeter.running.run_length import RunLength
from rampmeter.text.cautions import Caution


@click.command(epilog=EXIT_CODES_COMPARED)
@click.argument("plan", type=FILE)
@click.option(
    "--transports",
    required=True,
    metavar="NAME[:PRESET][:KEY=VALUE],...",
    help="Transports with optional presets and keys; `all` selects every one.",
)
@click.option(
    "--failures",
    type=click.Choice(FAILURES),
    default="excluded",
    show_default=True,
    help="Flows that some transport did not deliver: `excluded` omits them for all transports, "
    "`infinite` counts them as infinitely slow for that one.",
)
@plan_options
@seeds_option
@click.option(
    "--precision",
    type=FiniteRange(0, 1, min_open=True),
    help="Add seeds until the 95 % interval of each mean slowdown is within this share of it.",
)
@run_length_options
@result_options("results/<plan>-compare", has_jobs=True)
@output_options
def compare(
    plan: Path,
    transports: str,
    failures: Failures,
    settings: Sequence[str],
    seed: int | None,
    seeds: str | None,
    precision: float | None,
    flows_max: int | None,
    out: Path | None,
    jobs: int | None,
    *,
    auto_flows: bool,
    force: bool,
    quiet: bool,
    output: Output,
) -> None:
    """Run the same flows through several transports; table and plot.

    Keys that the plan's fabric table omits have the values that each transport needs; a table lists
    the differences between fabrics. Slowdown covers the flows that every transport delivered,
    unless --failures is set.

    \b
    Example: the two presets of dcPIM; a transport with its keys; ten seeds
      rampmeter compare plan.toml --transports dcpim:paper,dcpim:reference
      rampmeter compare plan.toml --transports dcpim,pfabric:window-initial=60,window-max=75
      rampmeter compare plan.toml --transports dcpim,phost --seeds 10
    """
    overrides = overrides_of(settings, seed)
    base = Plan.load(plan).with_(*overrides)
    folder = out or Path("results") / f"{folder_name(plan, overrides)}-compare"
    choices = naming.transports(transports)
    length = RunLength.of(base, precision, flows_max, is_auto=auto_flows)
    job = ComparisonJob(base, choices, folder, seeds_of(seeds), precision, failures, force, length)
    comparison, batch = job.run(partial(run_jobs, quiet=quiet, jobs=jobs))
    if comparison is not None:
        sentences = [*comparison.warnings, *job.warnings(comparison)]
        show_comparison("compare", comparison, folder, sentences, output)
    exit_by_outcome(batch)
    if comparison is not None:
        fail([one.failure for one in comparison.undelivered() if one.n_failed])
    if any(map(is_short, batch.runs().values())):
        raise SystemExit(NOT_ALL_DELIVERED)


def is_short(run: Run) -> bool:
    """Returns true if flows of a run failed, with a fault or without, or were unfinished."""
    flows = run.summary["flows"]
    rejected = int(flows.get("rejected", 0))
    return not run.is_complete or int(flows["delivered"]) + rejected < int(flows["submitted"])


def show_comparison(
    name: str,
    comparison: Comparison,
    folder: Path,
    cautions: Sequence[Caution],
    output: Output,
) -> None:
    """Prints the tables of a comparison; stores it, and for readers its plot, in a folder."""
    comparison.save(folder)
    fields = {"folder": folder, "slowdowns": comparison.table.to_pylist()}
    fields["warnings"] = warnings_of(cautions)
    output.print(name, fields, comparison_tables(comparison))
    if output.is_text:
        image = folder / "slowdown_by_size.png"
        comparison.plot.slowdown_by_size().savefig(image)
        click.echo(f"\nresults: {folder}\nplot: {image}")
    if not output.is_json:
        output.warn(join_transports(cautions))


def join_transports(cautions: Iterable[Caution]) -> list[Caution]:
    """Returns warnings for readers: one that several transports have once, with their names."""
    alike: dict[tuple[str, str], list[Caution]] = {}
    for caution in cautions:
        alike.setdefault((caution.code, caution.sentence), []).append(caution)
    return [
        Caution(
            f"{', '.join(str(one.values['transport']) for one in of)}: {text}", code, of[0].values
        )
        if len(of) > 1 and text != of[0]
        else of[0]
        for (code, text), of in alike.items()
    ]
