"""`rampmeter testbed`."""

import sys
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console

from rampmeter.commands.common import (
    FILE,
    FOLDER,
    folder_name,
    overrides_of,
    plan_options,
    quiet_option,
    warn,
)
from rampmeter.commands.compare import show_comparison
from rampmeter.plan import Plan


@click.command()
@click.argument("plan", type=FILE)
@click.option(
    "--arms",
    default="rampd,sim",
    show_default=True,
    metavar="ARM[:NAME[:KEY=VALUE]],...",
    help="What to run it on: rampd (hosts, the plan's transport or the one named), tcp (hosts, the "
    "kernel's TCP, with the congestion control named), sim (the simulator, with the delays "
    "measured before).",
)
@click.option(
    "--realtime",
    is_flag=True,
    help="Put hosts before all other work of this machine, as if each had a processor; root only.",
)
@click.option(
    "--waits", is_flag=True, help="Count times at ports in waits.json, marks or not; root only."
)
@plan_options
@click.option("--out", type=FOLDER, help="Folder of the results; results/<plan>-testbed.")
@quiet_option
def testbed(
    plan: Path,
    arms: str,
    settings: Sequence[str],
    seed: int | None,
    out: Path | None,
    *,
    realtime: bool,
    waits: bool,
    quiet: bool,
) -> None:
    """Run a plan between real hosts: network namespaces of this machine.

    The plan's leaf-spine is built of namespaces with shaped links of eight priorities, its flows
    are sent at their times, and the results are those of a simulation: the same tables, plots and
    commands. Needs iproute2, and root or user namespaces. Whatever happens, it is taken down.

    \b
    Example: dcPIM against TCP, and what the simulator says; against DCTCP with marks, and Cubic
      rampmeter testbed plan.toml --arms rampd,tcp,sim
      rampmeter testbed plan.toml --arms rampd,rampd:dctcp:mark-above=20,tcp:cubic
    """
    from rampmeter.comparison import Comparison
    from rampmeter.progress import counting
    from rampmeter.testbed import enter_user_namespace
    from rampmeter.testbed.arms import parse, run_arms
    from rampmeter.testbed.experiment import Options

    ways = parse(arms)
    overrides = overrides_of(settings, seed)
    complete = Plan.load(plan).with_(*overrides)
    complete.check()
    enter_user_namespace(sys.orig_argv)
    folder = out or Path("results") / f"{folder_name(plan, overrides)}-testbed"
    options = Options(realtime=realtime, watches=waits)
    with counting(Console(stderr=True), is_quiet=quiet) as progress:
        runs = dict(run_arms(complete, folder, ways, progress, options))
    comparison = Comparison(runs)
    show_comparison(comparison, folder)
    warn(comparison.warnings())
