"""`rampmeter plot`."""

from pathlib import Path

import click

from rampmeter.commands.common import FOLDER
from rampmeter.results import Run


@click.command()
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("--out", type=FOLDER, help="Folder of the images; DIR by default.")
def plot(folder: Path, out: Path | None) -> None:
    """Plot the results of a run: slowdown, completion times, utilisation, queues, tenants.

    \b
    Example:
      rampmeter plot results/plan --out images
    """
    done = Run(folder)
    figures = {
        "slowdown_by_size": done.plot.slowdown_by_size,
        "fct_cdf": done.plot.fct_cdf,
        "utilisation": done.plot.utilisation,
        "queue_cdf": done.plot.queue_cdf,
    }
    if done.tenants is not None:
        figures["tenants"] = done.plot.tenants
    target = out or folder
    drawn = {name: draw() for name, draw in figures.items()}
    target.mkdir(parents=True, exist_ok=True)
    for name, figure in drawn.items():
        image = target / f"{name}.png"
        figure.savefig(image)
        click.echo(str(image))
