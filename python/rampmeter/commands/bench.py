"""`rampmeter bench`."""

from collections.abc import Sequence
from pathlib import Path

import click

from rampmeter.commands.options import FILE, SignalStop, overrides_of, quiet_option, set_option
from rampmeter.commands.output import Output, output_options
from rampmeter.plan.plan import Plan
from rampmeter.results.tables import speed
from rampmeter.running import benchmark
from rampmeter.text.locations import Location


@click.command()
@click.argument("plan", type=FILE, required=False)
@set_option
@click.option("--quick", is_flag=True, help="Run two plans with few flows; takes a minute.")
@quiet_option
@output_options
def bench(
    plan: Path | None, settings: Sequence[str], *, quick: bool, quiet: bool, output: Output
) -> None:
    """Measure the speed of whole runs on one core, or of hosts.

    The default plans run dcPIM with IMC10 at load 0.6, with 144 and with 1024 hosts, and every
    transport with 144 hosts at 10 Gbit/s. That takes several minutes.

    `bench hosts` measures packets and round trips through the datapaths, compared with bare loops.
    It also measures processor time per packet, compared with TCP and QUIC, and the arbiter's
    decisions. It builds the benchmarks in a checkout of the project. The datapaths need root.

    \b
    Example: two plans in a minute, a custom plan with JSON output, and hosts
      rampmeter bench --quick
      rampmeter bench plan.toml --set workload.flows=100000 --json
      rampmeter bench hosts
    """
    if plan == Path("hosts") and not plan.is_file():
        benchmark.measure_hosts()
        return

    if quick and plan is not None:
        raise Location(key="--quick").error("cannot be combined with a plan")
    overrides = overrides_of(settings, None)
    if plan is not None:
        plans = {plan.stem: Plan.load(plan)}
    else:
        plans = benchmark.QUICK if quick else benchmark.PLANS
    plans = {name: one.with_(*overrides) for name, one in plans.items()}
    numbers = {name: number for number, name in enumerate(plans, start=1)}

    def on_start(name: str) -> None:
        if not quiet:
            click.echo(f"[{numbers[name]}/{len(plans)}] {name}", err=True)

    done = benchmark.measure(plans, on_start)
    if output.is_json or done.reports:
        output.print("bench", {"plans": done.reports}, [speed(done.reports)])
    if done.stopped_by is not None:
        raise SignalStop(done.stopped_by)
