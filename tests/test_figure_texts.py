"""Texts of all plots in all widths and styles: they are whole, and do not overlap."""

from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

import rampmeter as rm
from rampmeter import plots
from rampmeter.plots.style import Drawing

pytestmark = [pytest.mark.long, pytest.mark.timeout(400)]

PLAN: Final = """\
[topology]
kind = "leaf-spine"
racks = 2
hosts-per-rack = 4
spines = 2
[transport]
name = "dcpim"
[workload]
pattern = "all-to-all"
sizes = "imc10"
load = 0.6
flows = 300
[run]
blame = true
links = true
timeline = "run.pftrace"
[[faults.outages]]
link = "s0-s2"
from-us = 20
until-us = 60
"""
SWEPT: Final[Mapping[str, Any]] = {
    "workload.load": [0.3, 0.5],
    "workload.sizes": ["imc10", "web-search"],
}
COMPARED: Final = "dcpim,pfabric:window-max=75"
ARGUMENTS: Final = {
    "time_space": {"end": "40us"},
    "queue": {"end": "40us", "port": "s0>h0"},
    "link": {"end": "40us", "port": "s0>h0"},
}
FORMATS: Final = [
    (None, "print"),
    (None, "slides"),
    ("column", "print"),
    ("column", "slides"),
    ("page", "slides"),
]
CORNER: Final = 10.0
"""Pixels, of 200 in an inch, by which labels of ticks may overlap in the corner of two axes."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Returns a run, a comparison and a sweep."""
    folder: Path = tmp_path_factory.mktemp("figures")
    plan = rm.Plan(PLAN)
    fast = rm.Plan(PLAN.split("[run]", maxsplit=1)[0])
    return {
        "run": rm.run(plan, out=folder / "run", quiet=True),
        "comparison": rm.compare(plan, COMPARED, seeds=2, out=folder / "compared", quiet=True),
        "sweep": rm.sweep(
            fast, vary=SWEPT, transports="dcpim,homa", seeds=2, out=folder / "swept", quiet=True
        ),
    }


@pytest.mark.parametrize(("width", "style"), FORMATS)
@pytest.mark.parametrize("name", ["run", "comparison", "sweep"])
def test_texts_are_whole_and_do_not_overlap(
    name: str, width: str | None, style: Any, results: dict[str, Any]
) -> None:
    drawn = 0
    for kind in results[name].plot.names():
        with plots.figure_format(width, None, style):
            try:
                figure = getattr(results[name].plot, kind)(**ARGUMENTS.get(kind, {}))
            except (rm.PlanError, rm.ResultError):
                # The results have no data for it.
                continue
        assert [*faults(figure)] == [], kind
        drawn += 1
    assert drawn >= 2


def faults(figure: Figure) -> Iterator[str]:
    """Yields texts that are cut, and pairs that overlap."""
    assert isinstance(figure.canvas, FigureCanvasAgg)
    assert isinstance(figure, Drawing)
    figure.canvas.draw()  # type: ignore[no-untyped-call]
    renderer = figure.canvas.get_renderer()  # type: ignore[no-untyped-call]
    # Fonts decide how many ticks fit.
    with mpl.rc_context(figure.settings):
        hidden = hidden_ticks(figure)
    texts = [
        text
        for text in figure.findobj(Text)
        if id(text) not in hidden
        if text.get_visible() and text.get_text().strip()
    ]
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in texts]
    width, height = figure.bbox.width, figure.bbox.height
    for text, box in boxes:
        if box.x0 < -1 or box.y0 < -1 or box.x1 > width + 1 or box.y1 > height + 1:
            yield f"{text!r} is cut"
    for (text, box), (other, next_box) in combinations(boxes, 2):
        across = min(box.x1, next_box.x1) - max(box.x0, next_box.x0)
        up = min(box.y1, next_box.y1) - max(box.y0, next_box.y0)
        if min(across, up) > 2 and max(across, up) > 4 and not (up < CORNER and is_zero(text)):
            yield f"{text!r} overlaps {other!r}"


def is_zero(text: str) -> bool:
    """Returns true for the label of a tick at the origin."""
    return text.strip("0.") == ""


def hidden_ticks(figure: Figure) -> set[int]:
    """Returns the identities of labels of ticks that are not drawn."""
    hidden = set()
    for axes in figure.axes:
        for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            low, high = sorted(limits)
            current = {*axis.get_major_ticks(), *axis.get_minor_ticks()}
            # Of earlier drawings more ticks may be left.
            for tick in (*axis.majorTicks, *axis.minorTicks):
                is_shown = tick in current and low <= tick.get_loc() <= high
                is_shown = is_shown and axis.get_visible() and axes.axison
                labels = (tick.label1, tick.label2)
                hidden |= {id(one) for one in labels if not (is_shown and one.get_visible())}
    return hidden
