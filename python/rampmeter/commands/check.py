"""`rampmeter check`."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from rampmeter import plots
from rampmeter.commands.json_output import warnings_of
from rampmeter.commands.options import FILE, FORMATS, overrides_of, set_option, with_code
from rampmeter.commands.output import Output, output_options
from rampmeter.plan.manifest import without_nulls
from rampmeter.plan.plan import Plan
from rampmeter.results.table import Cell, Column, ResultTable
from rampmeter.text.files import replacing
from rampmeter.text.locations import Location
from rampmeter.text.toml import dumps

OFFERED: Final = (
    Column("name"),
    Column("links", "links"),
    Column("load", "mean load"),
    Column("load_max", "max load"),
    Column("busiest_seconds", "least time", "s", 6),
    Column("busiest", "busiest link"),
)


@click.command()
@click.argument("plan", type=FILE)
@set_option
@click.option(
    "--svg",
    "picture",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw the topology into this file (.svg, .pdf or .png).",
)
@output_options
def check(plan: Path, settings: Sequence[str], picture: Path | None, *, output: Output) -> None:
    """Check a plan; print it with all defaults and derived values.

    The output is a plan. Warnings, and the values derived from plan and network (round trips,
    bandwidth-delay product, buffers, windows, timeouts), are comments in it. So is the traffic that
    the workload offers: the mean message size, and the load of each tier's links as a share of
    their rates, from the first 50 000 flows over all shortest paths. Each value and transport of a
    sweep is checked once.

    \b
    Example:
      rampmeter check plan.toml --set workload.load=0.9
      rampmeter check plan.toml --svg topology.svg
      rampmeter check results/plan/manifest.json
    """
    whole = Plan.load(plan).with_(*overrides_of(settings, None))
    complete = whole.check()
    if picture is not None:
        _draw(whole, picture)
    if not output.is_whole_text:
        fields = {"plan": without_nulls(complete), "derived": whole.derived()}
        fields |= {"offered": whole.offered(), "warnings": warnings_of(whole.warnings)}
        output.print("check", fields, _tables(whole))
        if not output.is_json:
            output.warn(whole.warnings)
        return
    click.echo("".join(f"# warning: {with_code(line)}\n" for line in whole.warnings), nl=False)
    click.echo(dumps(without_nulls(complete)), nl=False)
    click.echo("\n# Values derived from the plan and its network:")
    for name, value in whole.derived().items():
        click.echo(f"# {name} = {int(value) if value.is_integer() else value}")
    for line in _offered(whole.offered()):
        click.echo(f"# {line}".rstrip())


def _tables(plan: Plan) -> list[ResultTable]:
    """Returns the derived values, and the offered traffic by tier."""
    derived: list[tuple[Cell, ...]] = [
        (name, int(value) if value.is_integer() else value)
        for name, value in plan.derived().items()
    ]
    offered: list[tuple[Cell, ...]] = [
        tuple(tier.get(column.key) for column in OFFERED) for tier in plan.offered()["tiers"]
    ]
    return [
        ResultTable(
            "derived",
            "Derived values",
            (Column("name"), Column("value", "value", form="general")),
            derived,
        ),
        ResultTable("offered", "Offered traffic by tier", OFFERED, offered),
    ]


def _offered(offered: Mapping[str, Any]) -> Iterator[str]:
    """Yields lines about the traffic that a workload offers."""
    seconds = offered["seconds"]
    of = f"the first {offered['flows']} flows"
    yield ""
    yield f"Offered traffic of {of}" + (f", in {seconds:.6g} s:" if seconds else ":")
    yield f"mean-size-bytes = {offered['mean_bytes']:.6g}"
    unit = "least time, s" if seconds is None else "mean load  max load"
    yield f"{'tier':<14} {'links':>6}  {unit}  busiest link"
    for tier in offered["tiers"]:
        if seconds is None:
            load = f"{tier['busiest_seconds']:>13.6g}"
        else:
            load = f"{tier['load']:>9.3f}  {tier['load_max']:>8.3f}"
        yield f"{tier['name']:<14} {tier['links']:>6}  {load}  {tier['busiest']}"


def _draw(plan: Plan, picture: Path) -> None:
    if picture.suffix.removeprefix(".") not in FORMATS:
        raise Location(key="--svg").error(
            expected="a name that ends in .svg, .pdf or .png", got=picture
        )
    with replacing(picture) as partial:
        plots.topology(plan.drawing()).savefig(partial)
