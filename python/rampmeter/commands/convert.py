"""`rampmeter convert`."""

from pathlib import Path

import click

from rampmeter import _core
from rampmeter.commands.json_output import emit, json_option, warnings_of
from rampmeter.commands.options import FILE, with_code
from rampmeter.running.conversion import check_files
from rampmeter.text.cautions import Caution
from rampmeter.text.files import replaced_by_simulator


@click.command()
@click.argument("source", type=FILE)
@click.argument("target", type=FILE)
@click.option(
    "--format",
    "format_",
    default="auto",
    metavar="FORMAT",
    help="Format of the source: htsim, hpcc, goal, simai, chakra, msccl, yaps, dcpim, csv or "
    "parquet. By default it is detected by name or contents.",
)
@click.option("--sort", is_flag=True, help="Sort flows by arrival.")
@click.option("--topology", type=FILE, help="Topology or plan that numbers or names the hosts.")
@click.option(
    "--vector-bytes", type=click.IntRange(1, 2**50), help="Vector of an MSCCL algorithm, in bytes."
)
@click.option("--groups-file", type=FILE, help="File with the groups of a Chakra trace.")
@json_option
def convert(
    source: Path,
    target: Path,
    format_: str,
    *,
    sort: bool,
    topology: Path | None,
    vector_bytes: int | None,
    groups_file: Path | None,
    as_json: bool,
) -> None:
    """Convert a trace of another tool to a .csv, .csv.gz or .parquet file.

    A target that ends in .toml is a topology, whose format is detected by its contents. Features of
    the source that the target lacks are warnings.

    \b
    Example: the flows of an htsim connection matrix
      rampmeter convert flows.cm flows.parquet
    """
    check_files(source, *(file for file in (topology, groups_file) if file is not None))
    with replaced_by_simulator(target) as partial:
        n_rows, notes = _core.convert(
            str(source), format_, str(partial), sort, topology, vector_bytes, groups_file
        )
    is_topology = target.suffix == ".toml"
    kind = "links" if is_topology else "flows"
    code = "topology-note" if is_topology else "workload-note"
    cautions = [Caution(note, code) for note in notes]
    if as_json:
        emit("convert", {"file": target, kind: n_rows, "warnings": warnings_of(cautions)})
        return
    for caution in cautions:
        click.echo(f"warning: {with_code(caution)}", err=True)
    click.echo(f"{target}: {n_rows} {kind}")
