"""`rampmeter plot`."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rampmeter.commands.json_output import emit, json_option
from rampmeter.commands.options import FOLDER, FORMATS
from rampmeter.results.comparison import COMPARISON, Comparison, Overlay
from rampmeter.results.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@click.command()
@click.argument("folders", metavar="DIR...", type=FOLDER, nargs=-1, required=True)
@click.option(
    "--out", type=FOLDER, help="Folder of the images; DIR by default, or . for several runs."
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    default="png",
    show_default=True,
    help="Format of the images.",
)
@json_option
def plot(folders: Sequence[Path], out: Path | None, format_: str, *, as_json: bool) -> None:
    """Plot results: slowdown, completion times, and of one run utilisation, queues, tenants.

    DIR is the folder of a run or of a comparison. Several runs are drawn over each other.

    \b
    Example: a run, a comparison, two runs over each other
      rampmeter plot results/plan --out images
      rampmeter plot results/plan-compare --format pdf
      rampmeter plot results/plan-load=0.3 results/plan-load=0.8 --out images
    """
    figures = _figures(folders)
    target = out or (folders[0] if len(folders) == 1 else Path())
    drawn = {name: draw() for name, draw in figures.items()}
    target.mkdir(parents=True, exist_ok=True)
    images = {name: target / f"{name}.{format_}" for name in drawn}
    for name, figure in drawn.items():
        figure.savefig(images[name])
        if not as_json:
            click.echo(str(images[name]))
    if as_json:
        emit("plot", {"images": images})


def _figures(folders: Sequence[Path]) -> dict[str, Callable[[], "Figure"]]:
    """Returns the figures that can be drawn, by name."""
    if len(folders) > 1:
        names = [folder.name for folder in folders]
        if len(set(names)) < len(names):
            names = [str(folder) for folder in folders]
        return Overlay(dict(zip(names, map(Run, folders), strict=True))).available()
    if (folders[0] / COMPARISON).is_file():
        return Comparison.load(folders[0]).plot.available()
    return Run(folders[0]).plot.available()
