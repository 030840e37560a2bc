"""`rampmeter testbed`."""

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from rampmeter.commands.compare import show_comparison
from rampmeter.commands.options import (
    FILE,
    FOLDER,
    folder_name,
    overrides_of,
    plan_options,
    quiet_option,
)
from rampmeter.commands.output import Output, output_options
from rampmeter.plan.plan import Plan
from rampmeter.results.comparison import Comparison
from rampmeter.running.progress import counting
from rampmeter.testbed import enter_user_namespace
from rampmeter.testbed.arms import parse, run_arms
from rampmeter.testbed.experiment import Options
from rampmeter.text.terminal import progress_console


@click.command()
@click.argument("plan", type=FILE)
@click.option(
    "--arms",
    default="rampd,sim",
    show_default=True,
    metavar="ARM[:NAME[:KEY=VALUE]],...",
    help="Systems that run the plan. rampd: hosts with the plan's transport, or with NAME. tcp: "
    "hosts with the kernel's TCP and the congestion control NAME. sim: the simulator with the "
    "delays measured by an earlier arm.",
)
@click.option(
    "--realtime",
    is_flag=True,
    help="Give hosts priority over all other processes of this machine; root only.",
)
@click.option(
    "--waits",
    is_flag=True,
    help="Write a histogram of delays at each port to waits.json; root only.",
)
@plan_options
@click.option("--out", type=FOLDER, help="Folder of the results; results/<plan>-testbed.")
@quiet_option
@output_options
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
    output: Output,
) -> None:
    """Run a plan between real hosts: network namespaces of this machine.

    The plan's leaf-spine is built of namespaces with shaped links of eight priorities. Its flows
    are sent at their times. The results have the form of a simulation's: the same tables, plots and
    commands. Needs iproute2, and root or user namespaces. The namespaces are always removed.

    \b
    Example: dcPIM compared with TCP and the simulator; with DCTCP with marks, and Cubic
      rampmeter testbed plan.toml --arms rampd,tcp,sim
      rampmeter testbed plan.toml --arms rampd,rampd:dctcp:ecn-packets=20,tcp:cubic
    """
    ways = parse(arms)
    overrides = overrides_of(settings, seed)
    complete = Plan.load(plan).with_(*overrides)
    complete.check_run()
    enter_user_namespace(sys.orig_argv)
    folder = out or Path("results") / f"{folder_name(plan, overrides)}-testbed"
    options = Options(realtime=realtime, watches=waits)
    with counting(progress_console(), is_quiet=quiet) as progress:
        runs = dict(run_arms(complete, folder, ways, progress, options))
    comparison = Comparison(runs)
    show_comparison("testbed", comparison, folder, comparison.warnings, output)
