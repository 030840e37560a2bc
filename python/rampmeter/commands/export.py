"""`rampmeter export`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click

from rampmeter.commands.json_output import emit, json_option, json_text
from rampmeter.commands.options import FILE
from rampmeter.on_demand import pa, pa_csv, pq
from rampmeter.results.comparison import Comparison
from rampmeter.results.comparison_tables import comparison_tables
from rampmeter.results.missing import ANY, COMPARISON
from rampmeter.results.run import opened_run
from rampmeter.results.table import ResultTable, choose, render
from rampmeter.results.tables import run_tables
from rampmeter.sweeps.dataset import IDENTITY as SWEEP
from rampmeter.sweeps.results import SweepResults
from rampmeter.sweeps.tables import sweep_tables
from rampmeter.text.files import replacing, write_text
from rampmeter.text.locations import Location

FORMATS: Final[Mapping[str, str]] = {
    "csv": ".csv",
    "latex": ".tex",
    "markdown": ".md",
    "json": ".json",
    "parquet": ".parquet",
}
"""Formats, and the endings of their files."""
DEFAULT: Final = "slowdown_by_size"
ALL: Final = "all"
"""Value of `--table` for all tables."""
FLOWS: Final = "flows"


@click.command()
@click.argument("folder")
@click.option("--out", type=FILE, required=True, help="File to write.")
@click.option(
    "--format",
    "format_",
    type=click.Choice([*FORMATS]),
    help="Format of the file; by default by its ending.",
)
@click.option(
    "--table",
    default=DEFAULT,
    show_default=True,
    metavar="NAME",
    help="Table to write, `flows` for a row for each flow, or `all` for all tables of results.",
)
@json_option
def export(folder: str, out: Path, format_: str | None, table: str, *, as_json: bool) -> None:
    """Write a table of a run, a comparison or a sweep to a file, for a paper or a program.

    FOLDER has the results; that of a sweep may be an fsspec URL. Tables and their columns are in
    docs/reference/tables.md. LaTeX needs the package booktabs. A Parquet file has one table.

    \b
    Example: slowdown by size for a paper, all tables, and flows for pandas
      rampmeter export results/plan-compare --out slowdown.tex --table mean_by_size
      rampmeter export results/plan --out tables.md --table all
      rampmeter export results/plan-sweep --out means.csv --table means
      rampmeter export results/plan --out flows.parquet --table flows
    """
    format_ = format_ or _format_of(out)
    if table == FLOWS:
        _write_flows(_flows(folder), out, format_)
        names = [FLOWS]
    else:
        if table == ALL and format_ == "parquet":
            raise Location(key="--table").error(expected="one table for Parquet", got=ALL)
        name = None if table == ALL else table
        for_readers = format_ in ("latex", "markdown")
        chosen = choose(_tables(folder), name, for_readers=for_readers)
        _write(chosen, out, format_)
        names = [one.name for one in chosen]
    if as_json:
        emit("export", {"file": out, "format": format_, "tables": names})
        return
    click.echo(f"{out}: {', '.join(names)}")


def _format_of(out: Path) -> str:
    for format_, ending in FORMATS.items():
        if out.suffix == ending:
            return format_
    endings = ", ".join(FORMATS.values())
    raise Location(key="--out").error(expected=f"a name that ends in {endings}", got=out)


def _tables(url: str) -> list[ResultTable]:
    """Returns the tables of the results in a folder."""
    if "://" in url:
        return [*sweep_tables(SweepResults(url))]
    folder = Path(url)
    if (folder / COMPARISON).is_file():
        return [*comparison_tables(Comparison.load(folder))]
    if (folder / SWEEP).is_file():
        return [*sweep_tables(SweepResults(folder))]
    return [*run_tables(opened_run(folder, ANY))]


def _write(tables: list[ResultTable], out: Path, format_: str) -> None:
    if format_ == "parquet":
        with replacing(out) as partial, partial.open("wb") as file:
            pq.write_table(tables[0].to_arrow(), file)
    elif format_ == "json":
        of_each = {one.name: one.records() for one in tables}
        write_text(out, json_text(of_each) + "\n")
    else:
        write_text(out, render(tables, format_, has_titles=len(tables) > 1))


def _flows(url: str) -> "pa.Table":
    """Returns the flows of a run, or of all runs of a sweep or a comparison."""
    folder = Path(url)
    if "://" in url or (folder / SWEEP).is_file():
        return SweepResults(url).flows
    if not (folder / COMPARISON).is_file():
        return opened_run(folder, ANY).flows
    parts = []
    for label, runs in Comparison.load(folder).runs.items():
        for run in runs:
            flows = run.flows
            names = {"transport": label, "seed": run.manifest["seed"]}
            for idx, (name, value) in enumerate(names.items()):
                flows = flows.add_column(idx, name, pa.array([value] * flows.num_rows))
            parts.append(flows)
    return pa.concat_tables(parts)


def _write_flows(flows: "pa.Table", out: Path, format_: str) -> None:
    if format_ not in ("csv", "parquet"):
        raise Location(key="--format").error(expected="csv or parquet for flows", got=format_)
    write = pq.write_table if format_ == "parquet" else pa_csv.write_csv
    # Of a name, pyarrow would remove a device after an error.
    with replacing(out) as partial, partial.open("wb") as file:
        write(flows, file)
