"""`rampmeter transports`."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import click

from rampmeter.commands.output import Output, output_options
from rampmeter.plan import schema
from rampmeter.plan.schema import KeyInfo, KeyKind, TransportInfo
from rampmeter.results.table import Cell, Column, ResultTable
from rampmeter.text.arguments import choice_argument
from rampmeter.text.wrapping import wrapped

COLUMNS: Final = (
    Column("name"),
    Column("title", "title"),
    Column("summary", "summary", width=40),
    Column("presets", "presets", width=16),
)
OF_KEYS: Final = (
    Column("key"),
    Column("default", "default", width=16),
    Column("values", "values", width=16),
    Column("about", "about", width=36),
)
DERIVED: Final = "from the network"
"""Default of a key whose value depends on the network of a plan."""


@click.command()
@click.argument("name", required=False)
@output_options
def transports(name: str | None, output: Output) -> None:
    """List the transports that plans may name, or the keys of one.

    \b
    Example: the built-in transports, those of a custom library, and keys of dcPIM
      rampmeter transports
      rampmeter --extension libmine.so transports
      rampmeter transports dcpim
    """
    if name is not None:
        choice_argument("NAME", name, [about["name"] for about in schema.transports()])
        _print_keys(schema.transport_info(name), output)
        return
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


def _print_keys(about: TransportInfo, output: Output) -> None:
    """Prints the keys of a transport with their values in its presets."""
    presets = [preset for preset, _ in about["presets"]]
    keys: list[dict[str, str]] = [
        {
            "key": key["name"],
            "default": _default(key, about["presets"]),
            "values": _values(key["kind"]),
            "about": " ".join([key["doc"], *_choices(key["kind"])]),
        }
        for key in about["keys"]
    ]
    if output.is_whole_text:
        known = ", ".join([f"{presets[0]} (the default)", *presets[1:]]) if presets else "none"
        click.echo("\n".join(wrapped(f"{about['title']}: {about['summary']}")))
        click.echo("\n".join(wrapped(f"Presets: {known}.", "", "    ")))
        for one in keys:
            click.echo(f"\n{one['key']} = {one['default']}")
            click.echo("\n".join(wrapped(f"{one['values']}. {one['about']}", "    ")))
        return
    rows: list[tuple[Cell, ...]] = [tuple(one.values()) for one in keys]
    fields = {"transport": about["name"], "presets": presets, "keys": keys}
    output.print("transports", fields, [ResultTable("keys", about["title"], OF_KEYS, rows)])


def _default(key: KeyInfo, presets: Sequence[tuple[str, dict[str, Any]]]) -> str:
    """Returns the value of a key if it is left out; if presets differ, that of each."""
    absent = DERIVED if key["derived"] else "none"
    values = {preset: _text(of.get(key["name"], absent)) for preset, of in presets}
    if len(set(values.values())) <= 1:
        return next(iter(values.values()), absent)
    return ", ".join(f"{value} ({preset})" for preset, value in values.items())


def _text(value: object) -> str:
    """Returns a value as plans have it, without quotes."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _values(kind: KeyKind) -> str:
    """Returns the values of a key in words."""
    match kind["type"]:
        case "integer":
            return f"from {kind['min']} to {kind['max']}"
        case "number":
            return f"from {kind['min']:g} to {kind['max']:g}"
        case "bool":
            return "true or false"
        case "choice":
            return " or ".join(name for name, _ in kind["names"])
        case "list":
            return f"a list of {kind['length']} numbers"
        case "text":
            return "a text"
        case _:
            return "a table"


def _choices(kind: KeyKind) -> Iterator[str]:
    """Yields sentences on the values of a key that is one of a list."""
    for name, about in kind.get("names", ()):
        yield f"{name}: {about.rstrip('.')}."
