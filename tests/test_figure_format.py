"""Formats of figures: widths, fonts in PDF, styles, legends, and grey values."""

import re
import zlib
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from rampmeter import plots
from rampmeter.analysis.confidence import Interval
from rampmeter.plots.colours import TRANSPORTS, looks

from .conftest import ROOT
from .documents import blocks_of, run_command


def panels(n: int = 2) -> dict[str, list[plots.Series]]:
    names = ("dcPIM", "Homa", "NDP", "pHost", "DCTCP")
    series = [
        plots.Series(name, [(x, Interval(1.0 + i * x, 0.1, 3)) for x in (0.3, 0.6, 0.9)])
        for i, name in enumerate(names)
    ]
    return {f"Workload {i}": series for i in range(n)}


def drawn(n: int = 2) -> Figure:
    note = "95 % over 3 seeds"
    return plots.replicated(panels(n), x_label="Load", y_label="Mean slowdown", interval=note)


def test_pdf_files_have_embedded_truetype_fonts(tmp_path: Path) -> None:
    drawn().savefig(tmp_path / "a.pdf")
    data = (tmp_path / "a.pdf").read_bytes()
    for stream in re.findall(rb"stream\r?\n(.*?)endstream", data, re.DOTALL):
        try:
            data += zlib.decompress(stream)
        except zlib.error:
            continue
    assert b"/Type3" not in data
    assert b"/FontFile2" in data
    assert b"/CIDFontType2" in data or b"/TrueType" in data
    assert b"/Subtype /Image" not in data


@pytest.mark.parametrize(("width", "inches"), [("column", 3.33), ("page", 7.0), ("5.5", 5.5)])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_figures_have_the_width_of_the_format(width: str, inches: float, n: int) -> None:
    with plots.figure_format(width):
        figure = drawn(n)
    figure.draw_without_rendering()
    assert figure.get_figwidth() == pytest.approx(inches)
    box = figure.get_tightbbox()
    assert 0 <= box.x0 < box.x1 <= inches + 0.01
    assert 0 <= box.y0 < box.y1 <= figure.get_figheight() + 0.01


@pytest.mark.usefixtures("here")
def test_the_commands_of_the_page_make_the_figures_of_a_study() -> None:
    """The study has few flows and two loads here."""
    plan, commands, *_ = blocks_of(ROOT / "docs/howto/paper-figures.md")
    text = plan.text.replace("flows = 8000", "flows = 60").replace("seeds = 3", "seeds = 2")
    Path(plan.file).write_text(text.replace("0.3..0.9:0.2", "0.5,0.7"))
    lines = commands.text.splitlines()
    assert len(lines) == 6
    for line in lines:
        run_command(line, "paper-figures.md")
    made = sorted(file.name for file in Path("results/study-sweep").glob("*.pdf"))
    assert made == ["slowdown_by_size.pdf", "slowdown_mean.pdf", "slowdown_p99.pdf"]
    assert "\\begin{tabular}" in Path("means.tex").read_text()
    assert len(Path("means.csv").read_text().splitlines()) == 1 + 5 * 2 * 2


def test_fonts_and_lines_follow_the_format() -> None:
    with plots.figure_format("column", font_size=7):
        small = drawn(1)
    with plots.figure_format(style="slides"):
        large = drawn(1)
    sizes = [figure.axes[0].xaxis.label.get_fontsize() for figure in (small, large)]
    assert sizes == [7, 18]
    widths = [
        max(line.get_linewidth() for line in figure.axes[0].get_lines())
        for figure in (small, large)
    ]
    assert widths[1] > 2 * widths[0]
    assert drawn(1).axes[0].xaxis.label.get_fontsize() == 9


@pytest.mark.parametrize("format_", [{}, {"width": "column"}, {"style": "slides"}])
def test_legends_cover_no_data(format_: dict[str, str]) -> None:
    with plots.figure_format(**format_):  # type: ignore[arg-type]
        figure = drawn()
    figure.draw_without_rendering()
    legend = figure.legends[0].get_window_extent()
    assert all(not legend.overlaps(axes.get_window_extent()) for axes in figure.axes)


def test_transports_are_distinguishable_in_grey() -> None:
    found = looks(TRANSPORTS)
    assert len({(look.marker, str(look.line)) for look in found}) == len(found)
    grey = [float(np.dot(to_rgb(look.colour), (0.3, 0.59, 0.11))) for look in found]
    assert max(grey) < 0.75, "a colour that is too light for paper"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"width": "wide"}, "width: expected column, page or a number of inches, got wide"),
        ({"width": 0.1}, "width: expected 1.5 to 30 inches, got 0.1"),
        ({"font_size": 100}, "font_size: expected 4 to 60 points, got 100"),
        ({"style": "poster"}, "style: expected one of print, slides, got poster"),
    ],
)
def test_impossible_formats_are_errors(arguments: dict[str, object], message: str) -> None:
    with (
        pytest.raises(ValueError, match=message),
        plots.figure_format(**arguments),  # type: ignore[arg-type]
    ):
        pass
