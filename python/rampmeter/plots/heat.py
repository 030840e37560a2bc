"""Heat maps: a quantity over two keys of the plan, a map for each transport."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import numpy as np
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from rampmeter.plots.replications import is_wide
from rampmeter.plots.special_marks import TOO_SHORT
from rampmeter.plots.style import current_format, finish, house_style, new_panels
from rampmeter.text.numbers import thousands

DARK_BELOW: Final = 0.55
"""Part of the colour scale on which numbers are white."""
STAR: Final = "*"
"""Mark of runs that were too short, as in tables."""
NUMBERS_MAX: Final = 10
"""Maximum number of columns that have numbers in their cells."""


def heat_maps(
    maps: Mapping[str, Sequence[Sequence[float]]],
    x: Sequence[str],
    y: Sequence[str],
    *,
    x_label: str,
    y_label: str,
    value_label: str,
    title: str = "",
    short: Collection[tuple[str, int, int]] = (),
) -> Figure:
    """Draws a map for each name, all by one colour scale. NaN is an empty cell.

    Each map has a row for each value of `y`, the first at the bottom. Cells in `short`, by name,
    column and row, have a star: their runs were too short.
    """
    values = [value for rows in maps.values() for row in rows for value in row if value == value]
    if not values:
        raise ValueError("maps: expected at least one number, got none")
    low, high = min(values), max(values)
    norm = LogNorm(low, high) if is_wide(values) else Normalize(low, high)
    with house_style():
        figure, panels = new_panels(len(maps), height=2.4)
        size = current_format().font_size * 0.75
        for axes, (name, rows) in zip(panels, maps.items(), strict=True):
            image = axes.imshow(
                np.asarray(rows, dtype=float),
                cmap="viridis",
                norm=norm,
                aspect="auto",
                origin="lower",
            )
            axes.grid(visible=False)
            axes.set_title(name, fontsize=current_format().font_size)
            axes.set_xticks(range(len(x)), x)
            axes.set_yticks(range(len(y)), y)
            axes.tick_params(length=0)
            for at_y, row in enumerate(rows):
                for at_x, value in enumerate(row):
                    text = f"{value:.3g}" if len(x) <= NUMBERS_MAX else ""
                    text += STAR if (name, at_x, at_y) in short else ""
                    if text and value == value:
                        is_dark = norm(value) < DARK_BELOW
                        colour = "white" if is_dark else "black"
                        axes.text(
                            at_x, at_y, text, ha="center", va="center", color=colour, fontsize=size
                        )
        spec = panels[0].get_subplotspec()
        n_columns = spec.get_gridspec().ncols if spec else 1
        for number, axes in enumerate(panels):
            if number + n_columns >= len(panels):
                axes.set_xlabel(x_label)
            if number % n_columns == 0:
                axes.set_ylabel(y_label)
        bar = figure.colorbar(image, ax=panels, label=value_label, pad=0.02)
        bar.outline.set_visible(False)
        if isinstance(norm, LogNorm):
            bar.locator = LogLocator(subs=(1.0, 2.0, 5.0))
            bar.formatter = FuncFormatter(lambda value, _: thousands(value))
            bar.ax.yaxis.set_minor_formatter(NullFormatter())
            bar.update_ticks()
        if short:
            figure.legend(
                handles=[Line2D([], [], color="black", marker=f"${STAR}$", linestyle="none")],
                labels=[TOO_SHORT],
                loc="outside lower right",
                fontsize=size,
            )
        finish(figure, panels[0], title)
    return figure
