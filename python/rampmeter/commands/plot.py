"""`rampmeter plot`."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from rampmeter import plots
from rampmeter.commands.json_output import emit, json_option
from rampmeter.commands.options import FOLDER, FORMATS, with_code
from rampmeter.results.comparison import Comparison, ComparisonPlots
from rampmeter.results.missing import ANY, COMPARISON
from rampmeter.results.overlay import Overlay
from rampmeter.results.run import Plots, opened_run
from rampmeter.sweeps.dataset import IDENTITY
from rampmeter.sweeps.plots import SweepPlots
from rampmeter.sweeps.results import SweepResults
from rampmeter.text.cautions import collecting
from rampmeter.text.files import make_folder
from rampmeter.text.locations import Location

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ARGUMENTS: Final = {
    "metric": "name",
    "against": "against",
    "panels": "panels",
    "where": "where",
    "from": "start",
    "to": "end",
    "hosts": "hosts",
    "port": "port",
}
"""Names of arguments of plots by those of options."""
KINDS: Final = tuple(
    dict.fromkeys(
        name
        for plots_of in (Plots, ComparisonPlots, Overlay, SweepPlots)
        for name in plots_of.names()
    )
)
"""Names of the kinds of plots, with underscores."""

Draw = Callable[..., "Figure"]


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
@click.option("--width", metavar="WIDTH", help="column (3.33 in), page (7 in), or inches.")
@click.option("--font-size", type=float, metavar="POINTS", help="Font size of axis labels.")
@click.option(
    "--style", type=click.Choice(("print", "slides")), default="print", show_default=True,
    help="slides has larger fonts and thicker lines.",
)  # fmt: skip
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="KIND",
    help=f"Only this plot; repeatable: {', '.join(KINDS).replace('_', '-')}.",
)
@click.option("--metric", metavar="MEASURE", help="Sweeps: column to plot, e.g. slowdown_p99.")
@click.option("--against", metavar="KEY", help="Sweeps: varied key of the horizontal axis.")
@click.option("--panels", metavar="KEY|none", help="Sweeps: key with a panel for each value.")
@click.option(
    "--where", multiple=True, metavar="KEY=VALUE", help="Sweeps: only points with this value."
)
@click.option("--from", metavar="TIME", help="Start of time-space, queue and link, e.g. 40us.")
@click.option("--to", metavar="TIME", help="End of the same.")
@click.option("--hosts", metavar="LIST", help="Hosts of time-space, e.g. 0-7,9.")
@click.option("--port", metavar="PORT", help="Port of queue and link, e.g. 's0>h0' or s0-h0.")
@json_option
def plot(folders: Sequence[Path], **options: Any) -> None:
    """Plot results: runs, comparisons and sweeps.

    DIR is the folder of a run, a comparison or a sweep. Several runs are drawn over each other.
    Without --kind it draws every plot for which there are data.

    \b
    Example: a run, a comparison, two runs over each other; figures of a paper
      rampmeter plot results/plan --out images
      rampmeter plot results/plan-compare --format pdf --width column
      rampmeter plot results/plan-load=0.3 results/plan-load=0.8 --out images
      rampmeter plot results/plan-sweep --kind slowdown-by-size --where load=0.7
      rampmeter plot results/plan --kind time-space --from 0 --to 40us
    """
    as_json, format_ = options["as_json"], options["format_"]
    target = options["out"] or (folders[0] if len(folders) == 1 else Path())
    arguments = {ARGUMENTS[name]: options[name] for name in ARGUMENTS if options[name]}
    if "where" in arguments:
        arguments["where"] = dict(_setting(text) for text in options["where"])
    figure_format = plots.figure_format(options["width"], options["font_size"], options["style"])
    with figure_format, collecting() as cautions:
        drawn = _figures(folders, [_kind(name) for name in options["kinds"]], arguments)
    make_folder(target)
    images = {name: target / f"{name}.{format_}" for name in drawn}
    for name, figure in drawn.items():
        figure.savefig(images[name])
        if not as_json:
            click.echo(str(images[name]))
    for caution in cautions:
        click.echo(f"warning: {with_code(caution)}", err=True)
    if as_json:
        emit("plot", {"images": images})


def _kind(name: str) -> str:
    """Returns the name of a plot, which may have hyphens or underscores."""
    found = name.replace("-", "_")
    if found not in KINDS:
        allowed = ", ".join(KINDS).replace("_", "-")
        raise Location(key="--kind").error(expected=f"one of {allowed}", got=name)
    return found


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise Location(key="--where").error(expected="KEY=VALUE", got=text)
    return key.strip(), value.strip()


def _figures(
    folders: Sequence[Path], kinds: Sequence[str], arguments: Mapping[str, Any]
) -> "dict[str, Figure]":
    """Draws the figures of the kinds, or all that can be drawn; an argument must be of some use."""
    what, available, of_kind = _plots(folders, str(arguments.get("name", "slowdown_mean")))
    chosen: dict[str, Draw] = {}
    for kind in kinds:
        if kind not in of_kind:
            allowed = ", ".join(of_kind).replace("_", "-")
            name = kind.replace("_", "-")
            raise Location(key="--kind").error(expected=f"one of {allowed} of {what}", got=name)
        name, draw = of_kind[kind]
        chosen[name] = draw
    if not kinds:
        chosen = available
        if "name" in arguments and "metric" in of_kind:
            chosen = dict([of_kind["metric"]])
    used: set[str] = set()
    figures = {}
    for name, draw in chosen.items():
        own = {
            key: value
            for key, value in arguments.items()
            if key in inspect.signature(draw).parameters
        }
        used |= set(own)
        figures[name] = draw(**own)
    unused = [option for option, name in ARGUMENTS.items() if name in set(arguments) - used]
    if unused:
        drawn = ", ".join(chosen).replace("_", "-") or "none"
        raise Location(key=f"--{unused[0]}").error(
            expected="a plot with this option", got=f"{drawn} of {what}"
        )
    return figures


def _plots(
    folders: Sequence[Path], metric: str
) -> tuple[str, dict[str, Draw], dict[str, tuple[str, Draw]]]:
    """Returns a name of the results, the plots that can be drawn by the names of their images,
    and by kind the name of the image and the plot.
    """
    if len(folders) == 1 and (folders[0] / IDENTITY).is_file():
        sweep: SweepPlots = SweepResults(folders[0]).plot
        of_sweep: dict[str, tuple[str, Draw]] = {
            "metric": (metric, sweep.metric),
            "slowdown_by_size": ("slowdown_by_size", sweep.slowdown_by_size),
            "heat_map": (f"{metric}_map", sweep.heat_map),
        }
        return "a sweep", dict(sweep.available()), of_sweep
    found: Plots | ComparisonPlots | Overlay
    if len(folders) > 1:
        if len({folder.resolve() for folder in folders}) < len(folders):
            raise Location(key="DIR").error(expected="each run once", got="one of them twice")
        names = [folder.name for folder in folders]
        if len(set(names)) < len(names):
            names = [str(folder) for folder in folders]
        what, found = (
            "several runs",
            Overlay(dict(zip(names, map(opened_run, folders), strict=True))),
        )
    elif (folders[0] / COMPARISON).is_file():
        what, found = "a comparison", Comparison.load(folders[0]).plot
    else:
        what, found = "a run", opened_run(folders[0], ANY).plot
    of_kind = {name: (name, getattr(found, name)) for name in type(found).names()}
    return what, dict(found.available()), of_kind
