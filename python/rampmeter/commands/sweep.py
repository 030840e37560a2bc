"""`rampmeter sweep`."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from rampmeter.analysis.confidence import Interval
from rampmeter.choices.grammar import parse_axis, parse_point
from rampmeter.commands.common import fail
from rampmeter.commands.json_output import warnings_of
from rampmeter.commands.options import (
    overrides_of,
    run_length_options,
    seeds_of,
    seeds_option,
    warn,
)
from rampmeter.commands.output import Output, output_options
from rampmeter.plan.plan import Plan
from rampmeter.results.undelivered import Undelivered, has_faults
from rampmeter.sweeps.api import axes_of
from rampmeter.sweeps.drive import DriverOutcome
from rampmeter.sweeps.engines import FORMS, open_engine
from rampmeter.sweeps.progress import failure, watching
from rampmeter.sweeps.results import PointRows, SweepResults, cell
from rampmeter.sweeps.session import Probing, Session, Shard, run_sweep
from rampmeter.sweeps.spec import METRIC, Sweep
from rampmeter.sweeps.table import SweepOverrides, sweep_of
from rampmeter.sweeps.tables import sweep_tables
from rampmeter.text.locations import Location
from rampmeter.text.numbers import count, counted
from rampmeter.text.terminal import progress_console, table_console
from rampmeter.text.text_table import TextTable

SHORT: Final = "*"
"""Mark of points whose runs are too short."""
SHORT_NOTE: Final = "* Too short for a steady state: simulate more flows, or use --auto-flows."
STILL_SHORT_NOTE: Final = (
    "* Some run is too short for a steady state: use a smaller --precision or a larger --flows-max."
)
"""The same of chosen lengths, which depend on the first seed."""
FAILED: Final = 1
SIGNALLED: Final = 128
"""Added to the number of the signal that ended a sweep, to get the exit code."""
PLOTS: Final = ("slowdown_mean", "slowdown_p99", "completion_us", "call_p99_us")
SHOWN: Final = {
    "slowdown_mean": ("mean slowdown", 3),
    "slowdown_p99": ("p99 slowdown", 3),
    "utilisation": ("utilisation", 4),
    "completion_us": ("completion, us", 1),
    "bus_gbps": ("bus, Gbit/s", 1),
    "call_mean_us": ("mean call, us", 1),
    "call_p99_us": ("p99 call, us", 1),
}
"""Measures of the table, if some run has them, with their headings and decimal places. Other
measures, such as goodput, are in `--format csv` and `SweepResults.summary`."""


@click.command()
@click.argument("plan", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--vary",
    multiple=True,
    metavar="KEY=VALUES",
    help="Values of a key of the plan: 0.3..0.8:0.1, 1..64*2, 2,4, true,false; with --samples "
    "also uniform(0.3,0.8) and log-uniform(1,1000).",
)
@click.option("--zip", "is_zipped", is_flag=True, help="Vary all keys together, value by value.")
@click.option("--samples", metavar="N", type=click.IntRange(min=1), help="Sample N random points.")
@click.option("--sample-seed", type=int, default=1, show_default=True, help="Seed of --samples.")
@click.option(
    "--point", multiple=True, metavar="KEY=VALUE,...", help="Add a point; may be repeated."
)
@click.option(
    "--transports",
    metavar="NAME[:PRESET][:KEY=VALUE,...],...",
    help="Transports; key=value after a comma belongs to the last one. `all` selects every one.",
)
@seeds_option
@click.option(
    "--precision",
    type=float,
    help="Add seeds until half the interval is within this share of the mean.",
)
@click.option(
    "--metric", metavar="COLUMN", help=f"Metric that --precision applies to; {METRIC} by default."
)
@click.option(
    "--seeds-max",
    type=click.IntRange(min=2),
    help="Maximum number of seeds of a point; 30 by default.",
)
@run_length_options
@click.option("--on", default="local", show_default=True, metavar="ENGINE", help=f"{FORMS}.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="Maximum number of threads of all runs on this machine; its cores by default.",
)
@click.option("--out", metavar="DIR|URL", help="Folder or fsspec URL; results/<plan>-sweep.")
@click.option("--flows", is_flag=True, help="Also store a row for each flow.")
@click.option("--shard", metavar="I/N", help="Run only every N-th point, for job arrays.")
@click.option("--force", is_flag=True, help="Replace the results of another sweep.")
@click.option("--dry-run", is_flag=True, help="Estimate time and memory; run nothing.")
@click.option("--no-estimate", is_flag=True, help="Start without an estimate.")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a value of the plan."
)
@click.option("--quiet", is_flag=True, help="Show no progress.")
@output_options
@click.pass_context
def sweep(context: click.Context, /, plan: Path, **options: Any) -> None:
    """Run a plan at many points with several seeds; means with intervals, a Parquet dataset.

    Keys without an option are as in the plan's [sweep] table. After Ctrl-C and SIGTERM finished
    results are stored; the same command continues from there.

    \b
    Example: six loads, three transports, five seeds; then on a cluster
      rampmeter sweep plan.toml --vary workload.load=0.3..0.8:0.1 \\
          --transports dcpim,phost,pfabric:window-initial=60,window-max=60 --seeds 5
      rampmeter sweep plan.toml --on ray://head:10001 --out s3://bucket/loads
    """
    overrides = overrides_of(options["settings"], None)
    complete = sweep_of(Plan.load(plan).with_(*overrides), _overrides(options))
    url = options["out"] or f"results/{plan.stem}-sweep"
    console = progress_console()
    is_quiet = options["quiet"]

    def report(text: str) -> None:
        if not is_quiet or options["dry_run"]:
            click.echo(text, err=True)

    session = Session(
        lambda: open_engine(options["on"], options["jobs"]),
        report,
        lambda time: watching(console, time, is_quiet=is_quiet),
        _probing(options),
        options["dry_run"],
    )
    outcome = run_sweep(
        complete,
        url,
        session,
        wants_flows=options["flows"],
        force=options["force"],
        shard=Shard.parse(options["shard"]) if options["shard"] else None,
    )
    if options["dry_run"]:
        if options["output"].is_json:
            estimate = session.estimated
            dry: dict[str, Any] = {
                "folder": url,
                "points": [],
                "open": outcome.n_open,
                "estimate": estimate,
            }
            options["output"].print("sweep", {**dry, "warnings": []}, ())
    else:
        results = SweepResults(url)
        if options["output"].is_whole_text:
            _report(results, complete, outcome)
        else:
            _emit(results, outcome, options["output"])
        _exit(context, outcome)
        fail(failed_flows(results, complete))


def _probing(options: Mapping[str, Any]) -> Probing:
    if options["dry_run"]:
        return "always"
    if options["no_estimate"]:
        return "never"
    return "if-large" if options["quiet"] else "always"


def _overrides(options: Mapping[str, Any]) -> SweepOverrides:
    if options["is_zipped"] and options["samples"]:
        raise Location(key="--zip, --samples").error("exclude each other; use one of them")
    combine = "zip" if options["is_zipped"] else "random" if options["samples"] else "grid"
    vary: dict[str, Any] = {}
    for text in options["vary"]:
        key, values = parse_axis(text, Location(key="--vary"))
        if key in vary:
            raise (Location(key="--vary").at(key).error(expected="one option per key", got="two"))
        vary[key] = values
    points = [parse_point(text, Location(key="--point")) for text in options["point"]]
    axes = axes_of(vary, combine, points, options["samples"], options["sample_seed"])
    return SweepOverrides(
        axes,
        options["transports"],
        seeds_of(options["seeds"]),
        options["precision"],
        options["metric"],
        options["seeds_max"],
        options["auto_flows"],
        options["flows_max"],
    )


def _emit(results: SweepResults, outcome: DriverOutcome, output: Output) -> None:
    """Prints the means in a format of tables; as JSON with the warnings of each point's runs."""
    has_runs = outcome.n_ran + outcome.n_kept > 0
    points = results.summary.to_pylist() if has_runs else []
    warnings = {
        point.number: warnings_of(point.warnings) for point in (results.points if has_runs else ())
    }
    for point in points:
        point["warnings"] = warnings[point["point"]]
    fields = {"folder": results.url, "points": points, "open": outcome.n_open}
    fields["warnings"] = warnings_of(results.warnings if has_runs else ())
    output.print("sweep", fields, sweep_tables(results) if has_runs else ())
    if not output.is_json and has_runs:
        output.warn(results.warnings)


def _report(results: SweepResults, sweep: Sweep, outcome: DriverOutcome) -> None:
    """Prints the table of means; draws the plots if the results are in a local folder."""
    if outcome.n_ran + outcome.n_kept == 0:
        return
    means_table(results).print(table_console())
    for point in outcome.imprecise:
        metric, precision = sweep.replication.metric, sweep.replication.precision
        click.echo(
            f"{point.name}: the interval of {metric} is wider than {precision:g} after the last "
            "seed, or some seeds have no value"
        )
    warn(results.warnings)
    click.echo(f"\nresults: {results.url}")
    if not results.dataset.is_local:
        return
    for name in PLOTS:
        if not any(point.interval(name).n for point in results.points):
            continue
        try:
            figure = results.plot.metric(name)
        except ValueError:
            # No key has numbers for an x axis.
            return
        figure.savefig(results.dataset.path(f"{name}.png"))
        image = results.url.rstrip("/") + f"/{name}.png"
        click.echo(f"plot: {image}")


def means_table(results: SweepResults) -> TextTable:
    """Returns a table with a row for each point: means over seeds, with their intervals.

    Warnings are printed below it with their points.
    """
    points = results.points
    counts = sorted({len(point.rows) for point in points})
    span = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else f"{counts[0]}"
    is_single = counts == [1]
    title = f"Means over {span} seeds, with 95 % intervals"
    if is_single:
        title = "One seed, with 95 % intervals by batch means"
    names = [name for name in SHOWN if any(point.interval(name).n for point in points)]
    has_flows = results.has_auto_flows
    has_lost = any(point.n_not_finished for point in points)
    has_short = any(point.is_short for point in points)
    keys = (key.rpartition(".")[2] for key in results.keys)
    headings = [", ".join(["transport", *keys]), "seeds", *["flows"] * has_flows]
    headings += [SHOWN[name][0] for name in names]
    headings += ["not delivered"] * has_lost
    rows = []
    for point in points:
        name = ", ".join([point.transport, *map(cell, point.values.values())])
        # Of cells that are aligned on the right, the terminal omits spaces at the end.
        cells = [name, f"{SHORT} {len(point.rows)}" if point.is_short else f"{len(point.rows)}"]
        cells += [count(point.rows[0]["flows_submitted"])] * has_flows
        cells += [_interval(point, name).text(SHOWN[name][1]) for name in names]
        if has_lost:
            cells.append(_not_delivered(point))
        rows.append(tuple(cells))
    notes = ["Slowdowns cover delivered flows only."] * has_lost
    notes += [STILL_SHORT_NOTE if has_flows else SHORT_NOTE] * has_short
    return TextTable(title, tuple(headings), rows, tuple(notes))


def _interval(point: PointRows, name: str) -> Interval:
    """Returns the mean of a column over seeds with its interval, which is the run's of one seed."""
    found = point.interval(name)
    if len(point.rows) > 1:
        return found
    return found._replace(ci=point.rows[0].get(f"{name}_ci"))


def _not_delivered(point: PointRows) -> str:
    row = point.summary()
    all_flows = row["flows_submitted"] + row["flows_not_started"]
    return f"{count(all_flows - row['flows_delivered'])} of {count(all_flows)}"


def failed_flows(results: SweepResults, sweep: Sweep) -> list[str]:
    """Returns a line for each transport with flows that failed in points without a fault."""
    submitted: Counter[str] = Counter()
    failed: dict[str, dict[str, int]] = {}
    for point in results.points:
        submitted[point.transport] += sum(row["flows_submitted"] for row in point.rows)
        n_failed = sum(row["flows_failed"] for row in point.rows)
        # Only points with failures are resolved, which takes time.
        if n_failed and not has_faults(sweep.points[point.number].plan.resolved("faults")):
            failed.setdefault(point.transport, {})[point.name] = n_failed
    return [
        Undelivered(label, submitted[label], 0, of_points).failure
        for label, of_points in failed.items()
    ]


def _exit(context: click.Context, outcome: DriverOutcome) -> None:
    """Exits with the status of an interrupted or failed sweep."""
    if outcome.failures:
        first = failure(*outcome.failures[0])
        click.echo(f"rampmeter: {counted(len(outcome.failures), 'run')} failed: {first}", err=True)
    if outcome.stop.signal is not None:
        n_done = outcome.n_ran + outcome.n_kept
        click.echo(
            f"rampmeter: interrupted: {counted(n_done, 'run')} stored, {outcome.n_open} open; "
            "the same command continues with them",
            err=True,
        )
        context.exit(SIGNALLED + outcome.stop.signal)
    if outcome.failures:
        context.exit(FAILED)
