"""How figures look: fonts, colours that colour-blind readers can tell apart, axes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from rampmeter.text import thousands

PALETTE: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""The palette of Okabe and Ito."""
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X")
LINES: Final = ("-", "--", "-.", ":")
HATCHES: Final = ("", "////", "....", "xxxx")
PUBLISHED: Final = "#4D4D4D"
"""The colour of published values, which no measured series has."""

INTERVAL: Final = "#777777"
"""The colour of confidence intervals."""
OWN: Final = "rampmeter"
"""The label of figures that this package made."""
DPI: Final = 200
TITLE_SIZE: Final = 9.5
RC: Final[dict[Any, Any]] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.labelsize": 9,
    "axes.titlesize": 9.5,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.5,
    "lines.markersize": 5,
    "hatch.linewidth": 0.6,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
}


@contextmanager
def house() -> Iterator[None]:
    """The project's look, for figures made within."""
    with mpl.rc_context(RC):
        yield


def new_figure(
    width: float = 4.6, height: float = 3.1, ax: Axes | None = None
) -> tuple[Figure, Axes]:
    """A figure of one pair of axes, in inches, that no window and no global state knows.

    With `ax` it is that one's figure, which keeps its size and its look.
    """
    if ax is not None:
        # That of a part of a figure is the whole.
        return ax.figure.figure, ax
    figure = Figure(layout="constrained", dpi=DPI, label=OWN, figsize=(width, height))
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    # Ticks are made when the figure is drawn, when the look is no longer in force.
    axes.tick_params(which="both", labelsize=8, width=0.7)
    axes.grid(axis="y")
    return figure, axes


def finish(figure: Figure, axes: Axes, title: str = "", columns: int = 4) -> None:
    """A title, and a legend above the axes where it covers no data.

    In a figure of somebody else's both belong to the axes.
    """
    handles, labels = axes.get_legend_handles_labels()
    if figure.get_label() != OWN:
        if title:
            axes.set_title(title)
        if handles:
            axes.legend(handles, labels)
        return
    if not handles:
        figure.suptitle(title, x=0.01, ha="left", fontsize=TITLE_SIZE)
        return
    # The title is the legend's, since the layout would put one on the other.
    figure.legend(
        handles,
        labels,
        loc="outside upper left",
        title=title or None,
        title_fontsize=TITLE_SIZE,
        alignment="left",
        ncols=min(columns, len(handles)),
        borderpad=0.2,
        columnspacing=1.3,
        handletextpad=0.5,
    )


def plain_log_ticks(axes: Axes, which: str) -> None:
    """Ticks of a logarithmic axis as plain numbers (`0.5`, `20`, `1 000`)."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_formatter(FuncFormatter(lambda value, _: thousands(value)))
