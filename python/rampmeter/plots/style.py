"""Style of figures: widths, fonts, axes, and legends that cover no data."""

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from io import BytesIO
from os import PathLike
from pathlib import Path
from textwrap import wrap
from typing import Any, Final, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from rampmeter.plots.colours import LINES, MARKERS, PALETTE
from rampmeter.text.arguments import argument_error
from rampmeter.text.files import named_errors, replacing
from rampmeter.text.locations import Location
from rampmeter.text.numbers import thousands

__all__ = ["LINES", "MARKERS", "PALETTE"]

PUBLISHED: Final = "#4D4D4D"
"""The colour of published values, which no measured series has."""
NEUTRAL: Final = "#777777"
"""The colour of legend entries that apply to all series."""
OWN: Final = "rampmeter"
"""The label of figures that this package made."""
DPI: Final = 200
SCREEN_DPI: Final = 110
"""Pixels of an inch on a screen; drawings have more, for fine screens and for papers."""
WIDTH: Final = 4.6
"""Inches, of figures without another width."""
WIDTHS: Final = {"column": 3.33, "page": 7.0}
"""Inches of a column and of both columns of a paper in ACM's and IEEE's formats."""
WIDTH_MIN, WIDTH_MAX = 1.5, 30.0
FONT_MIN, FONT_MAX = 4.0, 60.0
"""Limits of widths in inches, and of font sizes in points."""
SLIDE: Final = 9.0
"""Inches, of slides without another width."""
FONT: Final = 9.0
"""Points of the font of axes in figures without another width."""
TITLE: Final = 1.06
"""Size of titles, relative to that of axes."""
SMALL: Final = 8 / 9
"""Size of ticks and legends, relative to that of axes."""
CHARACTER: Final = 0.0085
"""Approximate width of a character, in inches a point."""
HANDLE: Final = 0.46
"""Inches of a legend's sample and the space around it."""
ROW: Final = 0.17
"""Inches of a line of a legend or a title."""
LABEL_MAX: Final = 28
"""Characters of a vertical label that fits an axis."""
DECADES_MAX: Final = 2.2
"""Decades of a logarithmic axis that also has ticks at 2 and 5."""

Style = Literal["print", "slides"]
STYLES: Final = ("print", "slides")


@dataclass(frozen=True)
class Format:
    """Size and weight of figures."""

    width: float | None = None
    """Inches; `None` for the width of each kind of figure."""
    font_size: float = FONT
    """Points, of the labels of axes."""
    weight: float = 1.0
    """Widths of lines and sizes of markers, relative to those of the screen."""

    @property
    def scale(self) -> float:
        """Size of fonts, relative to those of the screen."""
        return self.font_size / FONT

    @property
    def rc(self) -> dict[Any, Any]:
        """Settings of matplotlib."""
        small, weight = self.font_size * SMALL, self.weight
        return {
            "font.family": "DejaVu Sans",
            "font.size": self.font_size,
            "axes.labelsize": self.font_size,
            "axes.titlesize": self.font_size * TITLE,
            "axes.linewidth": 0.7 * weight,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.axisbelow": True,
            "xtick.labelsize": small,
            "ytick.labelsize": small,
            "xtick.major.width": 0.7 * weight,
            "ytick.major.width": 0.7 * weight,
            "legend.fontsize": small,
            "legend.frameon": False,
            "lines.linewidth": 1.4 * weight,
            "lines.markersize": 5 * weight,
            "hatch.linewidth": 0.6,
            "grid.color": "#DDDDDD",
            "grid.linewidth": 0.6 * weight,
            # TrueType fonts: publishers refuse Type 3.
            "pdf.fonttype": 42,
            "ps.fonttype": 42,
        }


_SCREEN: Final = Format()
_FORMAT: ContextVar[Format] = ContextVar("format", default=_SCREEN)


def current_format() -> Format:
    """Returns the format of figures that are drawn now."""
    return _FORMAT.get()


@contextmanager
def figure_format(
    width: float | str | None = None, font_size: float | None = None, style: Style = "print"
) -> Iterator[None]:
    """Sets width in inches, font size in points, and style of the figures drawn in the block.

    `width` may also be `column` (3.33 inches) or `page` (7 inches). `slides` has larger fonts and
    thicker lines than `print`, in proportion to the width: 18 points at 9 inches. A column is too
    narrow for them. Raises `PlanError` for any other value.
    """
    if style not in STYLES:
        raise Location(key="style").error(expected=f"one of {', '.join(STYLES)}", got=style)
    inches = parse_width(width) if isinstance(width, str) else width
    if inches is not None and not WIDTH_MIN <= inches <= WIDTH_MAX:
        limits = f"{WIDTH_MIN:g} to {WIDTH_MAX:g} inches"
        raise Location(key="width").error(expected=limits, got=f"{inches:g}")
    if font_size is not None and not FONT_MIN <= font_size <= FONT_MAX:
        limits = f"{FONT_MIN:g} to {FONT_MAX:g} points"
        raise Location(key="font_size").error(expected=limits, got=f"{font_size:g}")
    is_narrow = inches is not None and inches < WIDTH
    size, weight = (8.0, 0.8) if is_narrow else (FONT, 1.0)
    if style == "slides":
        inches = inches or SLIDE
        size, weight = max(size, 2 * FONT * inches / SLIDE), max(weight, 2.0 * inches / SLIDE)
    made = Format(inches, font_size or size, weight)
    token = _FORMAT.set(made)
    try:
        yield
    finally:
        _FORMAT.reset(token)


def parse_width(text: str) -> float:
    """Returns inches; raises `PlanError`.

    >>> parse_width("column"), parse_width("5.5")
    (3.33, 5.5)
    """
    try:
        return WIDTHS[text] if text in WIDTHS else float(text)
    except ValueError:
        expected = f"{', '.join(WIDTHS)} or a number of inches"
        raise Location(key="width").error(expected=expected, got=text) from None


class Drawing(Figure):
    """A figure that keeps its settings until it is saved, and that notebooks show."""

    settings: dict[Any, Any] | None = None

    def draw(self, renderer: Any) -> None:
        """Draws the figure by its settings: ticks and fonts are made as late as this.

        Names with `$` are no formulas. Letters that the font lacks are boxes, without a warning.
        """
        for text in self.findobj(Text):
            # Ticks of logarithmic axes are formulas.
            if "$" in text.get_text() and r"\math" not in text.get_text():
                text.set_parse_math(False)
        with mpl.rc_context(self.settings), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing from")
            super().draw(renderer)

    def savefig(self, *args: Any, **options: Any) -> None:
        """Saves the figure, with TrueType fonts in PDF. Arguments are those of matplotlib.

        A file is written whole or not at all.
        """
        target = args[0] if args else options.pop("fname")
        with mpl.rc_context(self.settings):
            if not isinstance(target, str | PathLike):
                super().savefig(target, *args[1:], **options)
                return
            path, form = Path(target), options.pop("format", None)
            if form is None:
                form = path.suffix.removeprefix(".") or mpl.rcParams["savefig.format"]
                path = path if path.suffix else path.with_name(f"{path.name.rstrip('.')}.{form}")
            with named_errors(path):
                # As of matplotlib, a missing folder is an error.
                path.parent.stat()
            # The writer of PDF raises an error of its own if the disk is full.
            image = BytesIO()
            super().savefig(image, *args[1:], format=form, **options)
            with replacing(path) as partial:
                partial.write_bytes(image.getbuffer())

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        file = BytesIO()
        self.savefig(file, format="png")
        width, height = (round(float(inches) * SCREEN_DPI) for inches in self.get_size_inches())
        return file.getvalue(), {"width": width, "height": height}


@contextmanager
def house_style() -> Iterator[None]:
    """Applies the project's style to figures made in the block."""
    with mpl.rc_context(current_format().rc):
        yield


def new_figure(
    width: float = WIDTH,
    height: float = 3.1,
    ax: Axes | None = None,
    *,
    has_rows: bool = False,
    is_exact: bool = False,
) -> tuple[Figure, Axes]:
    """Draws a figure of one pair of axes, in inches, without a window and without global state.

    With `ax` it is the figure of these axes, whose size and look do not change. The height follows
    the width of the format, or with `has_rows` the size of its font. With `is_exact` both are kept.
    """
    if ax is not None:
        if not isinstance(ax, Axes):
            raise argument_error("ax", "axes of Matplotlib", ax)
        # The figure of a subfigure is the whole one.
        return ax.figure.figure, ax
    figure = _empty(width, height, has_rows=has_rows, is_exact=is_exact)
    axes = figure.add_subplot()
    axes.grid(axis="y")
    return figure, axes


def new_panels(
    n: int, height: float = 2.6, *, column_min: float = 1.5, is_exact: bool = False
) -> tuple[Figure, list[Axes]]:
    """Draws a figure of N pairs of axes next to each other, with a common vertical axis.

    Panels are in rows if they would be narrower than `column_min` inches at a font of 9 points.
    With `is_exact` the height does not follow the width.
    """
    form = current_format()
    width = form.width or (WIDTH if n == 1 else min(10.0, 1.1 + 2.7 * n))
    n_columns = max(1, min(n, int(width / (column_min * form.scale))))
    n_rows = math.ceil(n / n_columns)
    n_columns = math.ceil(n / n_rows)
    panel = height * form.scale
    if not is_exact:
        panel = min(panel, max(0.72 * width / n_columns, 1.9 * form.scale))
    figure = _empty(width, n_rows * panel + 0.3 * form.scale, has_rows=True, is_exact=True)
    grid = figure.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False)
    panels = list(grid.flat)
    for unused in panels[n:]:
        unused.set_visible(False)
    for axes in panels[:n]:
        axes.grid(axis="y")
    n_empty, end = n_rows * n_columns - n, (n_rows - 1) * n_columns
    for axes in panels[end - n_empty : end]:
        # Nothing is below it that has the labels of the ticks.
        axes.tick_params(labelbottom=True)
    return figure, panels[:n]


def _empty(width: float, height: float, *, has_rows: bool, is_exact: bool) -> Drawing:
    form = current_format()
    if not is_exact:
        wanted = form.width or width
        height *= form.scale if has_rows else max(wanted / width, 0.6 * form.scale)
        width = wanted
    figure = Drawing(layout="constrained", dpi=DPI, label=OWN, figsize=(width, height))
    figure.settings = form.rc
    FigureCanvasAgg(figure)
    return figure


def finish(
    figure: Figure,
    axes: Axes,
    title: str = "",
    columns: int = 6,
    handles: Sequence[Any] | None = None,
) -> None:
    """Adds a title, and a legend above the axes, so that it covers no data.

    In a figure of the caller both belong to the axes. `handles` are those of the axes by default.
    """
    if handles is None:
        handles, labels = axes.get_legend_handles_labels()
    else:
        labels = [str(handle.get_label()) for handle in handles]
    if figure.get_label() != OWN:
        if title:
            axes.set_title(title)
        if handles:
            axes.legend(handles, labels)
        return
    form = current_format()
    width, height = (float(inches) for inches in figure.get_size_inches())
    character = CHARACTER * form.font_size * SMALL
    title = "\n".join(wrap(title, int(width / character * 0.87)))
    n_columns = _columns(labels, width, columns, character)
    # Titles and legends of several lines make the figure taller; the axes do not change.
    rows = title.count("\n") + max(0, math.ceil(len(labels) / n_columns) - 1)
    figure.set_size_inches(width, height + ROW * form.scale * rows)
    if not handles:
        figure.suptitle(title, x=0.01, ha="left", fontsize=form.font_size * TITLE)
        return
    # The title is the legend's, since the layout would draw one over the other.
    figure.legend(
        handles,
        labels,
        loc="outside upper left",
        title=title or None,
        title_fontsize=form.font_size * TITLE,
        alignment="left",
        ncols=n_columns,
        borderpad=0.2,
        columnspacing=1.3,
        handletextpad=0.5,
    )


def wrap_to_width(figure: Figure, label: str) -> str:
    """Returns a label whose lines fit the width of a figure."""
    character = CHARACTER * current_format().font_size
    width = int(float(figure.get_size_inches()[0]) / character * 0.87)
    return "\n".join(line for text in label.split("\n") for line in wrap(text, width))


def wrap_y_label(label: str) -> str:
    """Returns the label of a vertical axis, in two lines if it is too long for one."""
    return label.replace(" (", "\n(", 1) if len(label) > LABEL_MAX else label


def split_unit(labels: Sequence[str], x_label: str) -> tuple[Sequence[str], str]:
    """Returns labels without the unit that all have, and the label of their axis with it.

    A label of one word, such as `all`, has no unit.

    >>> split_unit(["<1 BDP", "1-2 BDP", "all"], "Flow size")
    (['<1', '1-2', 'all'], 'Flow size (BDP)')
    >>> split_unit(["IMC10", "Web Search", "Data Mining"], "Workload")
    (['IMC10', 'Web Search', 'Data Mining'], 'Workload')
    """
    units = [label.rpartition(" ")[2] for label in labels if " " in label]
    if len(units) < 2 or len(set(units)) > 1:
        return labels, x_label
    return [label.removesuffix(f" {units[0]}") for label in labels], f"{x_label} ({units[0]})"


def wrap_x_label(label: str) -> str:
    """Returns the label of a horizontal axis, in two lines if it is too long for one."""
    return label.replace(" (", "\n(", 1) if len(label) > 1.8 * LABEL_MAX else label


def _columns(labels: Sequence[str], width: float, columns: int, character: float) -> int:
    """Returns the maximum number of legend columns that fit the figure's width."""
    handle = HANDLE * current_format().scale
    for n in range(min(columns, len(labels)), 1, -1):
        # Legends are filled by column, and the first columns have the entries that remain.
        of_columns = np.array_split(np.asarray(labels, dtype=object), n)
        widths = (handle + character * max(map(len, some)) for some in of_columns)
        if sum(widths) <= width:
            # As few columns as these rows need.
            return math.ceil(len(labels) / math.ceil(len(labels) / n))
    return 1


def plain_log_ticks(axes: Axes, which: str) -> None:
    """Formats the ticks of a logarithmic axis as plain numbers (`0.5`, `20`, `1 000`).

    Axes of few decades have ticks at 1, 2 and 5 of each, others at each power of ten.
    """
    axis: Axis = axes.xaxis if which == "x" else axes.yaxis
    if getattr(axis.get_transform(), "base", 10) == 10:
        axis.set_major_locator(_DecadeTicks())
        axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(lambda value, _: thousands(value)))


class _DecadeTicks(LogLocator):
    """Ticks at 1, 2 and 5 of each decade, or at each power of ten of a wide axis."""

    def tick_values(self, vmin: float, vmax: float) -> Any:
        low, high = sorted((vmin, vmax))
        is_wide = low > 0.0 and math.log10(high / low) > DECADES_MAX
        self.set_params(subs=(1.0,) if is_wide else (1.0, 2.0, 5.0))
        return super().tick_values(vmin, vmax)
