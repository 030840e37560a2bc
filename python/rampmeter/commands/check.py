"""`rampmeter check` and `rampmeter transports`: what is there, before anything runs."""

from collections.abc import Sequence
from pathlib import Path

import click

from rampmeter import schema
from rampmeter.commands.common import FILE, overrides_of, set_option
from rampmeter.manifest import without_nulls
from rampmeter.plan import Plan
from rampmeter.sweeps.table import sweep_of
from rampmeter.toml import dumps


@click.command()
@click.argument("plan", type=FILE)
@set_option
def check(plan: Path, settings: Sequence[str]) -> None:
    """Check a plan; print all of it, with its defaults and what follows from it.

    What is printed is a plan. Warnings, and what follows from plan and network (round trips,
    bandwidth-delay product, buffers, windows, timeouts), are comments in it.

    \b
    Example:
      rampmeter check plan.toml --set workload.load=0.9
      rampmeter check results/plan/manifest.json
    """
    whole = Plan.load(plan).with_(*overrides_of(settings, None))
    complete = whole.check()
    if whole.sweep is not None:
        sweep_of(whole)
    click.echo("".join(f"# warning: {line}\n" for line in whole.warnings()), nl=False)
    click.echo(dumps(without_nulls(complete)), nl=False)
    click.echo("\n# What follows from the plan and its network:")
    for name, value in whole.derived().items():
        click.echo(f"# {name} = {int(value) if value.is_integer() else value}")


@click.command()
def transports() -> None:
    """List the transports that plans may name.

    \b
    Example: ours, and with one of one's own
      rampmeter transports
      rampmeter --core libmine.so transports
    """
    for about in schema.transports():
        presets = ", ".join(preset for preset, _ in about["presets"])
        click.echo(f"{about['name']} ({presets})\n    {about['summary']}")
