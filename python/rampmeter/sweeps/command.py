"""The command `rampmeter sweep`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console

from rampmeter._core import PlanError
from rampmeter.plan import Plan, parse_override
from rampmeter.sheet import Sheet
from rampmeter.sweeps.api import Shard, axes_of, run_sweep
from rampmeter.sweeps.axes import Uniform
from rampmeter.sweeps.drive import Outcome
from rampmeter.sweeps.engines import FORMS, open_engine
from rampmeter.sweeps.grammar import parse_axis, parse_point
from rampmeter.sweeps.progress import failure, watching
from rampmeter.sweeps.results import PointRows, SweepResults
from rampmeter.sweeps.spec import METRIC, Sweep
from rampmeter.sweeps.table import Wishes, sweep_of
from rampmeter.text import count

FAILED: Final = 1
SIGNALLED: Final = 128
"""Added to the number of the signal that ended a sweep, to get the exit code."""
PLOTS: Final = ("slowdown_mean", "slowdown_p99", "completion_us", "call_p99_us")
SHOWN: Final = {
    "slowdown_mean": ("mean slowdown", 3),
    "slowdown_p99": ("p99 slowdown", 3),
    "utilisation": ("utilisation", 4),
    "goodput_gbps": ("goodput, Gbit/s", 1),
    "completion_us": ("completion, us", 1),
    "bus_gbps": ("bus, Gbit/s", 1),
    "call_mean_us": ("mean call, us", 1),
    "call_p99_us": ("p99 call, us", 1),
}
"""The measures of the table that some run has, with their headings and decimal places."""


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
@click.option("--samples", type=click.IntRange(min=1), help="Draw so many points instead.")
@click.option("--sample-seed", type=int, default=1, show_default=True, help="What they depend on.")
@click.option("--point", multiple=True, metavar="KEY=VALUE,...", help="A point; may be repeated.")
@click.option(
    "--transports",
    metavar="NAME[:PRESET][:KEY=VALUE,...],...",
    help="Transports; key=value after a comma is the last one's. `all` for every one.",
)
@click.option("--seeds", metavar="N|A..B|LIST", help="How many seeds, or which.")
@click.option("--precision", type=float, help="Add seeds until half the interval is this share.")
@click.option("--metric", metavar="COLUMN", help=f"What --precision is about; {METRIC}.")
@click.option("--seeds-max", type=click.IntRange(min=2), help="Seeds of a point at most; 30.")
@click.option("--on", default="local", show_default=True, metavar="ENGINE", help=f"{FORMS}.")
@click.option("--jobs", type=click.IntRange(min=1), help="Runs at a time on this machine.")
@click.option("--out", metavar="DIR|URL", help="Folder or fsspec URL; results/<plan>-sweep.")
@click.option("--flows", is_flag=True, help="Keep a row for each flow too.")
@click.option("--shard", metavar="I/N", help="Run only every N-th point, for job arrays.")
@click.option("--force", is_flag=True, help="Replace the results of another sweep.")
@click.option("--dry-run", is_flag=True, help="Estimate time and memory; run nothing.")
@click.option("--no-estimate", is_flag=True, help="Begin without probes for an estimate.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change the plan.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
@click.pass_context
def sweep(context: click.Context, /, plan: Path, **options: Any) -> None:
    """Run a plan at many points with several seeds; means with intervals, a Parquet dataset.

    What options leave out is as in the plan's [sweep] table. Ctrl-C and SIGTERM keep what is
    finished; the same command goes on from there.

    \b
    Example: six loads, three transports, five seeds; then on a cluster
      rampmeter sweep plan.toml --vary workload.load=0.3..0.8:0.1 \\
          --transports dcpim,phost,pfabric:window=60,window-max=60 --seeds 5
      rampmeter sweep plan.toml --on ray://head:10001 --out s3://bucket/loads
    """
    overrides = [parse_override(text) for text in options["settings"]]
    complete = sweep_of(Plan.load(plan).with_(*overrides), _wishes(options))
    url = options["out"] or f"results/{plan.stem}-sweep"
    console = Console(stderr=True)
    is_quiet = options["quiet"]

    def say(text: str) -> None:
        if not is_quiet or options["dry_run"]:
            click.echo(text, err=True)

    outcome = run_sweep(
        complete,
        url,
        lambda: open_engine(options["on"], options["jobs"]),
        say,
        lambda: watching(console, is_quiet=is_quiet),
        wants_flows=options["flows"],
        force=options["force"],
        shard=Shard.parse(options["shard"]) if options["shard"] else None,
        wants_estimate=options["dry_run"] or not (options["no_estimate"] or is_quiet),
        is_dry=options["dry_run"],
    )
    if not options["dry_run"]:
        _report(SweepResults(url), complete, outcome)
        _leave(context, complete, outcome)


def _wishes(options: Mapping[str, Any]) -> Wishes:
    if options["is_zipped"] and options["samples"]:
        raise PlanError("--zip, --samples: expected at most one of them")
    combine = "zip" if options["is_zipped"] else "random" if options["samples"] else "grid"
    vary: dict[str, Any] = {}
    for text in options["vary"]:
        key, values = parse_axis(text, "--vary")
        if key in vary:
            raise PlanError(f"--vary: expected {key} once, got it twice")
        vary[key] = values
    points = [parse_point(text, "--point") for text in options["point"]]
    axes = axes_of(vary, combine, points, options["samples"], options["sample_seed"])
    return Wishes(
        axes,
        options["transports"],
        _seeds(options["seeds"]),
        options["precision"],
        options["metric"],
        options["seeds_max"],
    )


def _seeds(text: str | None) -> int | Sequence[int] | None:
    """Returns the number of seeds, or the seeds of a range or a list."""
    if text is None:
        return None
    _, values = parse_axis(f"seeds={text}", "--seeds")
    if isinstance(values, Uniform) or not all(type(value) is int for value in values):
        raise PlanError(f"--seeds: expected a number, a range or a list of seeds, got {text}")
    seeds = [value for value in values if isinstance(value, int)]
    return seeds[0] if text.strip().isdecimal() else seeds


def _report(results: SweepResults, sweep: Sweep, outcome: Outcome) -> None:
    """Print the table of means; draw the plots if the results are in a local folder."""
    if outcome.n_ran + outcome.n_kept == 0:
        return
    means_table(results).print(Console(highlight=False))
    for point in outcome.imprecise:
        metric, precision = sweep.replication.metric, sweep.replication.precision
        click.echo(
            f"{point.name}: the interval of {metric} is wider than {precision:g} after the last "
            "seed, or some seeds have no value"
        )
    click.echo(f"\nresults: {results.url}")
    if not results.dataset.is_local:
        return
    for name in PLOTS:
        if not any(point.interval(name).n for point in results.points):
            continue
        try:
            figure = results.plot.metric(name)
        except ValueError:
            # No key has numbers to draw against.
            return
        image = Path(results.dataset.path(f"{name}.png"))
        figure.savefig(image)
        click.echo(f"plot: {image}")


def means_table(results: SweepResults) -> Sheet:
    """A row a point: means with their intervals over seeds."""
    points = results.points
    counts = sorted({len(point.rows) for point in points})
    span = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else f"{counts[0]}"
    is_single = counts == [1]
    title = "One seed" if is_single else f"Means over {span} seeds, with 95 % intervals"
    names = [name for name in SHOWN if any(point.interval(name).n for point in points)]
    has_lost = any(point.n_not_finished for point in points)
    has_warnings = any(row["warnings"] for point in points for row in point.rows)
    headings = ["", "seeds", *(SHOWN[name][0] for name in names)]
    headings += ["not delivered"] * has_lost + ["warnings"] * has_warnings
    rows = []
    for point in points:
        cells = [_point(point), str(len(point.rows))]
        cells += [point.interval(name).text(SHOWN[name][1]) for name in names]
        if has_lost:
            cells.append(_not_delivered(point))
        if has_warnings:
            cells.append(str(sum(bool(row["warnings"]) for row in point.rows)))
        rows.append(tuple(cells))
    lost = "Slowdowns are of the flows that were delivered; the others are not in them."
    return Sheet(title, tuple(headings), rows, (lost,) if has_lost else ())


def _point(point: PointRows) -> str:
    """The transport and the values of the varied keys, by the last words of the keys."""
    values = (f"{key.rpartition('.')[2]} {_cell(value)}" for key, value in point.values.items())
    return ", ".join([point.transport, *values])


def _cell(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _not_delivered(point: PointRows) -> str:
    row = point.summary()
    all_flows = row["flows_submitted"] + row["flows_not_started"]
    return f"{count(all_flows - row['flows_delivered'])} of {count(all_flows)}"


def _leave(context: click.Context, sweep: Sweep, outcome: Outcome) -> None:
    """Exit as the sweep ended."""
    if outcome.failures:
        first = failure(*outcome.failures[0])
        click.echo(f"rampmeter: {len(outcome.failures)} runs failed: {first}", err=True)
    if outcome.stop.signal is not None:
        n_done = outcome.n_ran + outcome.n_kept
        click.echo(
            f"rampmeter: interrupted: {n_done} runs are kept, {outcome.n_open} are open; "
            "the same command goes on with them",
            err=True,
        )
        context.exit(SIGNALLED + outcome.stop.signal)
    if outcome.failures:
        context.exit(FAILED)
