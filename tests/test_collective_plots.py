"""The plot of completion times of collectives, and legends of intervals in all plots."""

from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

import rampmeter as rm
from rampmeter import plots

from .commands import error_line, ok
from .conftest import ROOT, SMALL
from .drawings import lines

PLAN = ROOT / "examples/plans/collective.toml"


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> rm.Comparison:
    out = tmp_path_factory.mktemp("collectives") / "compared"
    return rm.compare(PLAN, "dcpim,ndp", seeds=2, out=out, quiet=True)


def legend(figure: Figure) -> list[str]:
    boxes = [*figure.legends, *(one for axes in figure.axes if (one := axes.get_legend()))]
    return [text.get_text() for box in boxes for text in box.get_texts()]


def test_each_round_has_its_completion_time_and_its_bound(compared: rm.Comparison) -> None:
    run = compared.runs["ndp"][0]
    rows = run.summary["collectives"]
    assert len(rows) == 3
    drawn = sorted(point for line in lines(run.plot.collectives()).values() for point in line)
    for key in ("completion_ps", "lower_bound_ps"):
        for row in rows:
            at = [y for x, y in drawn if x == row["round"]]
            assert any(y == pytest.approx(row[key] / 1e6) for y in at)


def test_transports_are_compared_by_their_collectives(compared: rm.Comparison) -> None:
    figure = compared.plot.collectives()
    assert legend(figure) == ["dcPIM", "NDP", plots.BOUND, "95 % over 2 seeds"]
    assert figure.axes[0].get_ylabel() == "Completion time (µs)"
    assert "collectives" in compared.plot.available()


def test_several_collectives_have_a_panel_each(here: Path) -> None:
    text = PLAN.read_text()
    head, _, workload = text.partition("[workload]\n")
    parts = workload + "[[workload.parts]]\n" + workload.replace("all-reduce", "all-gather")
    plan = f"{head}[workload]\npattern = 'mix'\n[[workload.parts]]\n{parts}"
    (here / "mix.toml").write_text(plan)
    ok("run", "mix.toml", "--out", "mix", "--quiet")
    ok("plot", "mix", "--kind", "collectives")
    assert (here / "mix/collectives.png").stat().st_size > 10_000
    titles = [axes.get_title() for axes in rm.Run("mix").plot.collectives().axes]
    assert [title.partition(",")[0] for title in titles] == ["all-reduce", "all-gather"]


def test_runs_without_collectives_have_no_such_plot(small_run: rm.Run) -> None:
    assert "collectives" not in small_run.plot.available()
    line = error_line("plot", small_run.path, "--kind", "collectives")
    assert "expected a run with collectives, got one without" in line


def bars(figure: Figure) -> int:
    """Returns the number of intervals that are drawn."""
    return sum(
        len(one.get_segments())
        for axes in figure.axes
        for container in axes.containers
        if isinstance(container, ErrorbarContainer)
        for one in container.lines[2]
    )


def test_every_plot_with_intervals_has_a_legend_entry_for_them(here: Path) -> None:
    plan = rm.Plan(SMALL.replace("flows = 200", "flows = 3000"))
    with_causes = plan.with_(("run.blame", True))
    compared = rm.compare(with_causes, "dcpim,phost", seeds=2, quiet=True)
    swept = rm.sweep(plan, vary={"workload.load": [0.3, 0.5]}, seeds=2, quiet=True)
    runs = {label: of[0] for label, of in compared.runs.items()}
    points = [plots.Point(load, 2.0, 1.5, 2.5) for load in (0.3, 0.5)]
    series = plots.GroupSeries("a", [2.0], [None], ranges=[(1.5, 2.5)])
    figures = {
        **{name: plot() for name, plot in compared.plot.available().items()},
        **{f"overlay {name}": plot() for name, plot in rm.Overlay(runs).available().items()},
        **{f"sweep {name}": plot() for name, plot in swept.plot.available().items()},
        "by load": plots.by_load([plots.Line("a", points)], y_label="Slowdown"),
        "grouped": plots.grouped(["x"], [series]),
    }
    n_bars = {name: bars(figure) for name, figure in figures.items()}
    assert {"slowdown_by_size", "overlay slowdown_by_size", "by load"} <= {
        name for name, n in n_bars.items() if n
    }
    for name, n in n_bars.items():
        below = figures[name].get_supxlabel()
        texts = [*legend(figures[name]), below]
        entries = [text for text in texts if "95 %" in text or "range" in text]
        assert bool(entries) == bool(n), (name, n, entries)
    plt.close("all")
