"""`rampmeter explain`."""

import json

import click

from rampmeter.commands.common import InputError
from rampmeter.text.cautions import explanations


@click.command()
@click.argument("code", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print all codes and paragraphs as JSON.")
def explain(code: str | None, *, as_json: bool) -> None:
    """Explain the CODE of a warning or error, or list all codes.

    \b
    Example: a warning ends with its code
      rampmeter check plan.toml
      rampmeter explain overload
    """
    known = explanations()
    if as_json:
        click.echo(json.dumps(known, indent=2))
    elif code is None:
        click.echo("\n".join(sorted(known)))
    elif code in known:
        click.echo(known[code])
    else:
        raise InputError(f"CODE: expected one of {', '.join(sorted(known))}, got {code}")
