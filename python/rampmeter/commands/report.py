"""`rampmeter report`."""

from pathlib import Path

import click

from rampmeter.commands.json_output import emit, json_option
from rampmeter.commands.options import FILE
from rampmeter.report import find, write


@click.command()
@click.argument(
    "folders", nargs=-1, required=True, type=click.Path(file_okay=False, path_type=Path)
)
@click.option(
    "--out", type=FILE, default=Path("report.html"), show_default=True, help="File to write."
)
@click.option(
    "--title", default="Rampmeter report", show_default=True, help="Heading of the report."
)
@json_option
def report(folders: tuple[Path, ...], out: Path, title: str, *, as_json: bool) -> None:
    """Write one HTML file of all results in FOLDERS and below.

    Figures of papers, comparisons, sweeps and runs are detected by the contents of their folders.
    The file can be read without a network; it links to the results by their paths relative to its
    folder.

    \b
    Example: all figures of papers, and a comparison
      rampmeter report results/papers results/plan-compare --out report.html
    """
    sections = find(folders, out.parent)
    write(sections, out, title)
    if as_json:
        emit("report", {"file": out, "sections": [one.title for one in sections]})
        return
    n = len(sections)
    size = out.stat().st_size / 1e6
    click.echo(f"{out}: {n} {'section' if n == 1 else 'sections'}, {size:.1f} MB")
