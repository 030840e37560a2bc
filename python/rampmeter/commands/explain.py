"""`rampmeter explain`."""

from difflib import get_close_matches
from typing import Final

import click

from rampmeter.commands.json_output import emit, json_option
from rampmeter.text.cautions import explanations, values_of
from rampmeter.text.locations import Location

FORMER_CODES: Final = {
    "alike-batches": "correlated-batches",
    "far-hosts": "unequal-round-trips",
    "risen-rates": "increased-rates",
    "slow-returns": "slow-reverse-links",
}
"""Present codes of warnings in results of earlier versions."""


@click.command()
@click.argument("code", required=False)
@json_option
def explain(code: str | None, *, as_json: bool) -> None:
    """Explain the CODE of a warning or error, or list all codes.

    \b
    Example: a warning ends with its code
      rampmeter check plan.toml
      rampmeter explain overload
    """
    known = explanations()
    if code is not None:
        code = FORMER_CODES.get(code, code)
    if code is not None and code not in known:
        near = get_close_matches(code.lower(), known, n=1)
        hint = f"did you mean {near[0]}?" if near else "`rampmeter explain` lists all"
        raise Location(key="CODE").error(expected="a code", got=code, hint=hint)
    if as_json:
        codes = known if code is None else {code: known[code]}
        values = {one: names for one in codes if (names := values_of(one))}
        emit("explain", {"codes": codes, "values": values})
    elif code is None:
        click.echo("\n".join(sorted(known)))
    else:
        click.echo(known[code])
        if names := values_of(code):
            click.echo(f"\nValues in JSON and Python, some or all: {', '.join(names)}.")
