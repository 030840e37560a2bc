"""`rampmeter transports`."""

from typing import Any

import click

from rampmeter.commands.output import Output, output_options
from rampmeter.plan import schema
from rampmeter.results.table import Cell, Column, ResultTable
from rampmeter.text.wrapping import wrapped

COLUMNS = (
    Column("name"),
    Column("title", "title"),
    Column("summary", "summary"),
    Column("presets", "presets"),
)


@click.command()
@output_options
def transports(output: Output) -> None:
    """List the transports that plans may name.

    \b
    Example: the built-in transports, and those of a custom library
      rampmeter transports
      rampmeter --extension libmine.so transports
    """
    known: list[dict[str, Any]] = [
        {
            "name": about["name"],
            "title": about["title"],
            "summary": about["summary"],
            "presets": [preset for preset, _ in about["presets"]],
        }
        for about in schema.transports()
    ]
    if output.is_whole_text:
        for one in known:
            presets = ", ".join(one["presets"])
            lines = wrapped(f"{one['name']} ({presets})", "", "    ")
            click.echo("\n".join([*lines, *wrapped(one["summary"], "    ")]))
        return
    rows: list[tuple[Cell, ...]] = [
        (one["name"], one["title"], one["summary"], " ".join(one["presets"])) for one in known
    ]
    table = ResultTable("transports", "Transports", COLUMNS, rows)
    output.print("transports", {"transports": known}, [table])
