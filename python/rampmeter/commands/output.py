"""Output of commands that print tables: text, JSON, CSV, LaTeX or Markdown.

`docs/reference/tables.md` describes the formats, and has the names of tables and their columns.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import click

from rampmeter.commands.json_output import FLAG, emit
from rampmeter.commands.options import with_code
from rampmeter.results.table import ResultTable, choose, render
from rampmeter.text.cautions import Caution
from rampmeter.text.locations import Location
from rampmeter.text.terminal import table_console
from rampmeter.text.text_table import TextTable

if TYPE_CHECKING:
    from rich.table import Table

Command: TypeAlias = Callable[..., Any]

FORMATS: Final = ("text", "json", "csv", "latex", "markdown")
"""Values of `--format`."""
READERS: Final = ("text", "latex", "markdown")
"""Formats for readers; the others are for programs."""


@dataclass(frozen=True)
class Output:
    """The chosen format of a command's tables, and the only table to print, if any."""

    format: str = "text"
    table: str | None = None

    @property
    def is_json(self) -> bool:
        """True if one JSON object is printed."""
        return self.format == "json"

    @property
    def is_text(self) -> bool:
        """True if tables are printed as they fit the terminal, with what belongs to them."""
        return self.format == "text"

    @property
    def is_whole_text(self) -> bool:
        """True if all tables are printed as text, with the sentences that belong to them."""
        return self.is_text and self.table is None

    def print(self, name: str, fields: Mapping[str, Any], tables: Iterable[ResultTable]) -> None:
        """Prints tables, or as JSON the fields of the command's object with the tables."""
        chosen = choose(tables, self.table, for_readers=self.format in READERS)
        if self.is_json:
            by_name = {table.name: table.records() for table in chosen}
            emit(name, {**fields, "tables": by_name})
        elif self.is_text:
            show(*chosen)
        else:
            click.echo(render(chosen, self.format, has_titles=self.table is None), nl=False)

    def warn(self, cautions: Iterable[Caution | str]) -> None:
        """Prints warnings below the tables; those of data on standard error."""
        for idx, caution in enumerate(cautions):
            is_first = self.is_text and idx == 0
            text = f"{chr(10) * is_first}warning: {with_code(caution)}"
            click.echo(text, err=not self.is_text)


def output_options(command: Command) -> Command:
    """Adds `--format`, `--json` and `--table`, which are the argument `output`."""

    @wraps(command)
    def call(*args: Any, format_: str, as_json: bool, table: str | None, **options: Any) -> Any:
        if as_json and format_ not in ("text", "json"):
            raise Location(key=f"{FLAG}, --format").error("exclude each other; use one of them")
        output = Output("json" if as_json else format_, table)
        return command(*args, output=output, **options)

    json_help = "Short for --format json; errors are JSON, too."
    table_help = "Print one table; docs/reference/tables.md has their names."
    call = click.option("--table", metavar="NAME", help=table_help)(call)
    call = click.option(FLAG, "as_json", is_flag=True, help=json_help)(call)
    return click.option(
        "--format",
        "format_",
        type=click.Choice(FORMATS),
        default="text",
        show_default=True,
        help="Format of tables.",
    )(call)


def show(*tables: "ResultTable | TextTable | Table") -> None:
    """Prints tables on standard output, as wide as the terminal, or 80 columns without one."""
    console = table_console()
    for table in tables:
        if isinstance(table, ResultTable | TextTable):
            table.print(console)
        else:
            console.print()
            console.print(table)
