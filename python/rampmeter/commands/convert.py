"""`rampmeter convert`."""

from pathlib import Path

import click

from rampmeter import _core
from rampmeter.commands.common import FILE


@click.command()
@click.argument("source", type=FILE)
@click.argument("target", type=FILE)
@click.option(
    "--format",
    "format_",
    default="auto",
    metavar="FORMAT",
    help="What the source is: htsim, hpcc, goal, simai, chakra, msccl, yaps, dcpim, csv or "
    "parquet. By its name or contents if left out.",
)
@click.option("--sort", is_flag=True, help="Sort flows that are not in order of arrival.")
@click.option("--topology", type=FILE, help="The file that numbers or names the hosts.")
@click.option(
    "--vector-bytes", type=click.IntRange(1, 2**50), help="The vector of an MSCCL algorithm."
)
@click.option("--groups", type=FILE, help="The file with the groups of a Chakra trace.")
def convert(
    source: Path,
    target: Path,
    format_: str,
    *,
    sort: bool,
    topology: Path | None,
    vector_bytes: int | None,
    groups: Path | None,
) -> None:
    """Turn a trace of another tool into a .csv, .csv.gz or .parquet file.

    A target that ends in .toml is a topology, whose format is known by its contents.

    What the source has and the target has not is a warning.

    \b
    Example: the flows of an htsim connection matrix
      rampmeter convert flows.cm flows.parquet
    """
    n_rows, notes = _core.convert(
        str(source), format_, str(target), sort, topology, vector_bytes, groups
    )
    for note in notes:
        click.echo(f"warning: {note}", err=True)
    click.echo(f"{target}: {n_rows} {'links' if target.suffix == '.toml' else 'flows'}")
