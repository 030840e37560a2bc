"""`rampmeter transports`."""

import click

from rampmeter.plan import schema


@click.command()
def transports() -> None:
    """List the transports that plans may name.

    \b
    Example: the built-in transports, and those of a custom library
      rampmeter transports
      rampmeter --extension libmine.so transports
    """
    for about in schema.transports():
        presets = ", ".join(preset for preset, _ in about["presets"])
        click.echo(f"{about['name']} ({presets})\n    {about['summary']}")
