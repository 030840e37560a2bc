"""`rampmeter animate`."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from rampmeter.animation import EVENTS_MAX, Animation
from rampmeter.animation.network import network_of
from rampmeter.choices import naming
from rampmeter.commands.common import exit_by_outcome, run_jobs, warn_of_interruptions
from rampmeter.commands.json_output import emit, json_option
from rampmeter.commands.options import (
    FILE,
    FOLDER,
    name_of,
    overrides_of,
    plan_options,
    quiet_option,
)
from rampmeter.plan.plan import Override, Plan
from rampmeter.results.comparison import Comparison
from rampmeter.results.missing import COMPARISON
from rampmeter.results.pictures import Window, parse_hosts
from rampmeter.results.run import Run, opened_run
from rampmeter.running.comparison_job import ComparisonJob
from rampmeter.running.runner import Job
from rampmeter.text.locations import Location
from rampmeter.text.numbers import counted

TIMELINE = "run.perfetto-trace"


@click.command()
@click.argument("source", metavar="PLAN|DIR", type=click.Path(path_type=Path))
@click.option(
    "--out", type=FILE, default=Path("animation.html"), show_default=True, help="Page to write."
)
@click.option(
    "--transports",
    metavar="NAME[:PRESET][:KEY=VALUE],...",
    help="Transports to show side by side, as in `compare`; that of the plan by default.",
)
@click.option("--from", "start", metavar="TIME", default="0", help="Start, e.g. 40us.")
@click.option("--to", "end", metavar="TIME", help="End; that of the run by default.")
@click.option("--hosts", metavar="LIST", help="Hosts to show, e.g. 0-7,9; at most 64.")
@click.option("--title", metavar="TEXT", help="Heading of the page.")
@click.option(
    "--results", type=FOLDER, help="Folder of the runs of a plan; they are not kept by default."
)
@plan_options
@quiet_option
@json_option
def animate(
    source: Path,
    out: Path,
    transports: str | None,
    start: str,
    end: str | None,
    hosts: str | None,
    title: str | None,
    results: Path | None,
    settings: Sequence[str],
    seed: int | None,
    *,
    quiet: bool,
    as_json: bool,
) -> None:
    """Write a page that plays the packets of a run.

    The source is a plan, which is run, or the folder of a run or comparison with `run.timeline`.
    The page is one file that needs no network. It shows hosts, switches and links; packets, queues,
    drops and marks; phases and flows over time. With --transports, the same flows run through
    several transports side by side.

    \b
    Example: an incast under two transports; the first 50 us of a finished run
      rampmeter animate plan.toml --transports tcp,dcpim --out page.html
      rampmeter animate results/plan --to 50us --hosts 0-15
    """
    window = Window.parse(start, end)
    if source.is_dir():
        if transports or settings or seed is not None:
            raise Location(key="--transports, --set, --seed").error(
                expected="a plan with these options", got=f"the folder {source}"
            )
        done = _of_folder(source)
        found = done.animate(None, start, end, hosts, title or source.name)
        if not as_json:
            warn_of_interruptions(_runs(done))
    else:
        overrides = overrides_of(settings, seed)
        plan = Plan.load(source).with_(*overrides)
        _check_shown(plan, transports, hosts)
        plan = plan.with_(*_tracing(plan, window))
        with TemporaryDirectory(prefix="rampmeter-") as folder:
            done = _run(plan, name_of(source), transports, results or Path(folder), quiet=quiet)
            found = done.animate(None, start, end, hosts, title or name_of(source))
    found.save(out)
    _show(found, out, as_json=as_json)


def _check_shown(plan: Plan, transports: str | None, hosts: str | None) -> None:
    """Raises `PlanError` before the run if no animation could be made of it."""
    choices = [] if transports is None else naming.transports(transports)
    if any(choice.name == naming.IDEAL for choice in choices):
        raise Location(key="--transports").error(
            expected="transports with packets", got=naming.IDEAL
        )
    first = choices[0].of(plan) if choices else plan
    network_of(first.drawing(), (), None if hosts is None else parse_hosts(hosts))


def _of_folder(folder: Path) -> Comparison | Run:
    return (
        Comparison.load(folder)
        if (folder / COMPARISON).is_file()
        else opened_run(folder, "a run or a comparison")
    )


def _runs(done: Comparison | Run) -> list[Run]:
    """Returns the runs that are shown."""
    return [done] if isinstance(done, Run) else [first for first, *_ in done.runs.values()]


def _tracing(plan: Plan, window: Window) -> list[Override]:
    """Returns the keys by which a run records the timeline of a window, and causes."""
    keys: list[Override] = [] if plan.get("run.blame") is not None else [("run.blame", True)]
    if window.start_ps:
        keys.append(("run.timeline-from-us", window.start_ps / 1e6))
    if window.end_ps is not None:
        keys.append(("run.timeline-until-us", window.end_ps / 1e6))
    if plan.get("run.timeline") is None:
        keys += [("run.timeline", TIMELINE), ("run.timeline-events", 4 * EVENTS_MAX)]
    return keys


def _run(
    plan: Plan, name: str, transports: str | None, folder: Path, *, quiet: bool
) -> Comparison | Run:
    """Runs a plan, or its flows through several transports."""
    if transports is None:
        batch = run_jobs([Job(name, plan, folder)], quiet=quiet)
        exit_by_outcome(batch)
        return next(iter(batch.runs().values()))
    job = ComparisonJob(plan, naming.transports(transports), folder)
    comparison, batch = job.run(partial(run_jobs, quiet=quiet))
    exit_by_outcome(batch)
    assert comparison is not None
    comparison.save(folder)
    return comparison


def _show(found: Animation, out: Path, *, as_json: bool) -> None:
    size = out.stat().st_size
    if as_json:
        emit("animate", {"file": out, "events": found.n_events, "bytes": size})
        return
    click.echo(f"{out}: {counted(found.n_events, 'event')}, {size / 1e6:.1f} MB")
