"""`rampmeter compare`."""

from collections.abc import Sequence
from pathlib import Path

import click

from rampmeter import naming
from rampmeter.commands.common import (
    FILE,
    FOLDER,
    folder_name,
    jobs_option,
    leave,
    overrides_of,
    quiet_option,
    run_jobs,
    seed_option,
    set_option,
    show,
)
from rampmeter.plan import Plan
from rampmeter.runner import Job


@click.command()
@click.argument("plan", type=FILE)
@click.option(
    "--transports",
    required=True,
    metavar="NAME[:PRESET][:KEY=VALUE],...",
    help="The transports, with presets or keys of their own; `all` for every one.",
)
@set_option
@seed_option
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
    Example: the two presets of dcPIM; a transport with keys of its own
      rampmeter compare plan.toml --transports dcpim:paper,dcpim:reference
      rampmeter compare plan.toml --transports dcpim,pfabric:window=60,window-max=75
    """
    from rampmeter import plots
    from rampmeter.results import slowdown_groups
    from rampmeter.tables import compared_slowdown, fabrics, overview

    overrides = overrides_of(settings, seed)
    base = Plan.load(plan).with_(*overrides)
    folder = out or Path("results") / f"{folder_name(plan, overrides)}-compare"
    todo = [
        Job(one.label, one.of(base), folder / one.folder) for one in naming.transports(transports)
    ]
    batch = run_jobs(todo, quiet=quiet, jobs=jobs)
    runs = batch.runs()
    summaries = {name: done.summary for name, done in runs.items()}
    if summaries:
        resolved = {name: done.manifest["plan"]["fabric"] for name, done in runs.items()}
        show(*fabrics(resolved), overview(summaries), compared_slowdown(summaries))
        series = [
            plots.SizeSeries.of(name, slowdown_groups(summary))
            for name, summary in summaries.items()
        ]
        image = folder / "slowdown_by_size.png"
        plots.slowdown_by_size(series).savefig(image)
        click.echo(f"\nresults: {folder}\nplot: {image}")
    leave(batch)
