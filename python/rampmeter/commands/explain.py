"""`rampmeter explain`."""

from difflib import get_close_matches
from typing import Final

import click

from rampmeter.commands.output import Output, output_options
from rampmeter.results.table import Cell, Column, ResultTable
from rampmeter.text.cautions import explanations, values_of
from rampmeter.text.locations import Location

TEXT_WIDTH, VALUES_WIDTH = 40, 16
"""Maximum widths of columns in a terminal."""
FORMER_CODES: Final = {
    "alike-batches": "correlated-batches",
    "far-hosts": "unequal-round-trips",
    "risen-rates": "increased-rates",
    "slow-returns": "slow-reverse-links",
}
"""Present codes of warnings in results of earlier versions."""

COLUMNS: Final = (
    Column("code", "code"),
    Column("text", "text", width=TEXT_WIDTH),
    Column("values", "values", width=VALUES_WIDTH),
)


@click.command()
@click.argument("code", required=False)
@output_options
def explain(code: str | None, output: Output) -> None:
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
    codes = dict(sorted(known.items())) if code is None else {code: known[code]}
    values = {one: names for one in codes if (names := values_of(one))}
    if output.is_whole_text:
        click.echo("\n".join(codes) if code is None else codes[code])
        if code in values:
            click.echo(f"\nValues in JSON and Python, some or all: {', '.join(values[code])}.")
        return
    rows: list[tuple[Cell, ...]] = [
        (one, text, " ".join(values.get(one, ()))) for one, text in codes.items()
    ]
    table = ResultTable("codes", "Codes", COLUMNS, rows)
    output.print("explain", {"codes": codes, "values": values}, [table])
