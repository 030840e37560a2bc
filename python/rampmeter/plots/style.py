"""Style of figures: fonts, axes, and colours that colour-blind readers can distinguish."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from textwrap import wrap
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from rampmeter.text.numbers import thousands

PALETTE: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""The palette of Okabe and Ito."""
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X")
LINES: Final = ("-", "--", "-.", ":")
PUBLISHED: Final = "#4D4D4D"
"""The colour of published values, which no measured series has."""

INTERVAL: Final = "#777777"
"""The colour of confidence intervals."""
OWN: Final = "rampmeter"
"""The label of figures that this package made."""
DPI: Final = 200
SCREEN_DPI: Final = 110
"""Pixels of an inch on a screen; drawings have more, for fine screens and for papers."""
TITLE_SIZE: Final = 9.5
WIDTH: Final = 4.6
"""Inches. In a paper's column, which has 3.3 of them, texts of 8 and 9 points have 6 to 7."""
CHARACTER: Final = 0.068
"""Approximate width of a character of a legend, in inches."""
HANDLE: Final = 0.46
"""Inches of a legend's sample and the space around it."""
ROW: Final = 0.17
"""Inches of a line of a legend or a title."""
LABEL_MAX: Final = 28
"""Characters of a vertical label that fits an axis."""
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


class Drawing(Figure):
    """A figure that notebooks show, whether or not matplotlib draws inline there."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        file = BytesIO()
        self.savefig(file, format="png")
        width, height = (round(float(inches) * SCREEN_DPI) for inches in self.get_size_inches())
        return file.getvalue(), {"width": width, "height": height}


@contextmanager
def house_style() -> Iterator[None]:
    """Applies the project's style to figures made in the block."""
    with mpl.rc_context(RC):
        yield


def new_figure(
    width: float = WIDTH, height: float = 3.1, ax: Axes | None = None
) -> tuple[Figure, Axes]:
    """Draws a figure of one pair of axes, in inches, without a window and without global state.

    With `ax` it is the figure of these axes, whose size and look do not change.
    """
    if ax is not None:
        # The figure of a subfigure is the whole one.
        return ax.figure.figure, ax
    figure = Drawing(layout="constrained", dpi=DPI, label=OWN, figsize=(width, height))
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    # Ticks are made when the figure is drawn, when the look no longer applies.
    axes.tick_params(which="both", labelsize=8, width=0.7)
    axes.grid(axis="y")
    return figure, axes


def finish(figure: Figure, axes: Axes, title: str = "", columns: int = 4) -> None:
    """Adds a title, and a legend above the axes, so that it covers no data.

    In a figure of the caller both belong to the axes.
    """
    handles, labels = axes.get_legend_handles_labels()
    if figure.get_label() != OWN:
        if title:
            axes.set_title(title)
        if handles:
            axes.legend(handles, labels)
        return
    width, height = (float(inches) for inches in figure.get_size_inches())
    title = "\n".join(wrap(title, int(width / CHARACTER * 0.87)))
    n_columns = _columns(labels, width, columns)
    # Titles and legends of several lines make the figure taller; the axes do not change.
    rows = title.count("\n") + max(0, math.ceil(len(labels) / n_columns) - 1)
    figure.set_size_inches(width, height + ROW * rows)
    if not handles:
        figure.suptitle(title, x=0.01, ha="left", fontsize=TITLE_SIZE)
        return
    # The title is the legend's, since the layout would draw one over the other.
    figure.legend(
        handles,
        labels,
        loc="outside upper left",
        title=title or None,
        title_fontsize=TITLE_SIZE,
        alignment="left",
        ncols=n_columns,
        borderpad=0.2,
        columnspacing=1.3,
        handletextpad=0.5,
    )


def wrap_y_label(label: str) -> str:
    """Returns the label of a vertical axis, in two lines if it is too long for one."""
    return label.replace(" (", "\n(", 1) if len(label) > LABEL_MAX else label


def wrap_x_label(label: str) -> str:
    """Returns the label of a horizontal axis, in two lines if it is too long for one."""
    return label.replace(" (", "\n(", 1) if len(label) > 1.8 * LABEL_MAX else label


def _columns(labels: Sequence[str], width: float, columns: int) -> int:
    """Returns the maximum number of legend columns that fit the figure's width."""
    for n in range(min(columns, len(labels)), 1, -1):
        # Legends are filled by column.
        rows = math.ceil(len(labels) / n)
        of_columns = (labels[i : i + rows] for i in range(0, len(labels), rows))
        widths = (HANDLE + CHARACTER * max(map(len, some)) for some in of_columns)
        if sum(widths) <= width:
            return n
    return 1


def plain_log_ticks(axes: Axes, which: str) -> None:
    """Formats the ticks of a logarithmic axis as plain numbers (`0.5`, `20`, `1 000`)."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_formatter(FuncFormatter(lambda value, _: thousands(value)))
