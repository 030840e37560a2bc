"""`rampmeter bench`."""

from collections.abc import Sequence
from pathlib import Path

import click

from rampmeter.commands.common import FILE, overrides_of, set_option, show
from rampmeter.commands.json_output import emit, json_option
from rampmeter.plan.plan import Plan
from rampmeter.results.tables import speed
from rampmeter.running import benchmark


@click.command()
@click.argument("plan", type=FILE, required=False)
@set_option
@json_option
def bench(plan: Path | None, settings: Sequence[str], *, as_json: bool) -> None:
    """Measure the speed of whole runs on one core, or of hosts.

    The default plans run dcPIM with IMC10 at load 0.6, with 144 and with 1024 hosts.

    `bench hosts` measures packets and round trips through the datapaths, compared with bare loops.
    It also measures processor time per packet, compared with TCP and QUIC, and the arbiter's
    decisions. It builds the benchmarks in a checkout of the project. The datapaths need root.

    \b
    Example: a custom plan with JSON output, and hosts
      rampmeter bench plan.toml --set workload.flows=100000 --json
      rampmeter bench hosts
    """
    if plan == Path("hosts") and not plan.is_file():
        benchmark.measure_hosts()
        return

    overrides = overrides_of(settings, None)
    if plan is not None:
        plans = {plan.stem: Plan.load(plan).with_(*overrides)}
    else:
        plans = {name: one.with_(*overrides) for name, one in benchmark.PLANS.items()}
    reports = benchmark.measure(plans)
    if as_json:
        emit("bench", {"plans": reports})
        return
    show(speed(reports))
