"""`rampmeter check` and `rampmeter transports`: what is there, before anything runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from rampmeter import schema
from rampmeter.commands.common import FILE, overrides_of, set_option
from rampmeter.plan import Plan
from rampmeter.toml import dumps


@click.command()
@click.argument("plan", type=FILE)
@set_option
def check(plan: Path, settings: Sequence[str]) -> None:
    """Check a plan; print all of it, with its defaults.

    \b
    Example:
      rampmeter check plan.toml --set workload.load=0.9
    """
    complete = Plan.load(plan).with_(*overrides_of(settings, None)).check()
    click.echo(dumps(_without_nulls(complete)), nl=False)


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


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value if inner is not None]
    return value
