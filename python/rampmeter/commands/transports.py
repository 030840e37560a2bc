"""`rampmeter transports`."""

import click

from rampmeter.commands.json_output import emit, json_option
from rampmeter.plan import schema


@click.command()
@json_option
def transports(*, as_json: bool) -> None:
    """List the transports that plans may name.

    \b
    Example: the built-in transports, and those of a custom library
      rampmeter transports
      rampmeter --extension libmine.so transports
    """
    if as_json:
        rows = [
            {
                "name": about["name"],
                "title": about["title"],
                "summary": about["summary"],
                "presets": [preset for preset, _ in about["presets"]],
            }
            for about in schema.transports()
        ]
        emit("transports", {"transports": rows})
        return
    for about in schema.transports():
        presets = ", ".join(preset for preset, _ in about["presets"])
        click.echo(f"{about['name']} ({presets})\n    {about['summary']}")
