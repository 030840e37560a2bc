"""Plots show the numbers of their arguments."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from IPython.core.formatters import DisplayFormatter
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

import rampmeter as rm
from rampmeter import plots
from rampmeter.analysis.confidence import Interval
from rampmeter.papers import Mode, load_figure
from rampmeter.papers.draw import draw
from rampmeter.papers.verdict import Basis, rows_of
from rampmeter.plots.colours import UNDECIDED
from rampmeter.plots.time import average_neighbours
from rampmeter.results.slowdown import Group, series_of_groups, slowdown_groups

from .conftest import FIG3, write_results
from .drawings import lines


@pytest.fixture(autouse=True)
def settings_stay_as_they_were() -> Iterator[None]:
    before = dict(mpl.rcParams)
    yield
    assert dict(mpl.rcParams) == before


def marks(figure: Figure) -> list[Line2D]:
    """Returns the means of each series."""
    found = figure.axes[0].get_lines()
    return [line for line in found if not str(line.get_label()).startswith("_")]


def heights(figure: Figure) -> dict[str, list[float]]:
    return {
        str(m.get_label()): [float(y) for y in np.asarray(m.get_ydata())] for m in marks(figure)
    }


def tick_labels(figure: Figure) -> list[str]:
    return [label.get_text() for label in figure.axes[0].get_xticklabels()]


class TestGroups:
    def test_each_series_has_a_mark_for_each_value(self) -> None:
        series = [
            plots.GroupSeries("ours", [1.0, None, 3.0], [2.0, None, None]),
            plots.GroupSeries("published", [1.5, 2.5, 3.5], [None] * 3, is_published=True),
        ]
        figure = plots.grouped(["a", "b", "c"], series, x_label="Workload")
        assert heights(figure) == {"ours": [1.0, 3.0], "published": [1.5, 2.5, 3.5]}
        assert tick_labels(figure) == ["a", "b", "c"]
        assert figure.axes[0].get_xlabel() == "Workload"

    def test_whiskers_end_at_the_99th_percentile(self) -> None:
        figure = plots.grouped(["a"], [plots.GroupSeries("ours", [1.5], [4.0])])
        assert [4.0] in [[y for _, y in points] for points in lines(figure).values()]

    def test_groups_without_flows_have_no_mark_and_none_at_the_ends(self) -> None:
        statistics = {"count": 2, "mean": 1.5, "p50": 1, "p99": 2, "p999": 2, "max": 2}
        labels = ["<1 BDP", "1-2 BDP", "2-4 BDP", "4-8 BDP", ">8 BDP"]
        found = [None, statistics, None, statistics, None]
        groups = [Group.of(one, label) for one, label in zip(found, labels, strict=True)]
        figure = plots.slowdown_by_size([series_of_groups("ours", groups)])
        assert heights(figure) == {"ours": [1.5, 1.5]}
        assert tick_labels(figure) == ["1-2", "2-4", "4-8"]
        assert figure.axes[0].get_xlabel() == "Flow size (BDP)"

    @pytest.mark.parametrize(("top", "scale"), [(12.0, "linear"), (120.0, "log")])
    def test_wide_ranges_are_logarithmic(self, top: float, scale: str) -> None:
        figure = plots.grouped(["a"], [plots.GroupSeries("ours", [2.0], [top])])
        assert figure.axes[0].get_yscale() == scale

    @pytest.mark.parametrize(("n", "is_horizontal"), [(3, False), (9, True)])
    def test_groups_are_horizontal_if_labels_do_not_fit(
        self, *, n: int, is_horizontal: bool
    ) -> None:
        labels = [f"Web Search, {i}" for i in range(n)]
        series = [plots.GroupSeries("ours", [2.0] * n, [3.0] * n)]
        figure = plots.grouped(labels, series, y_label="Slowdown")
        axes = figure.axes[0]
        ticks = axes.get_yticklabels() if is_horizontal else axes.get_xticklabels()
        assert [tick.get_text() for tick in ticks] == labels
        assert (axes.get_xlabel() if is_horizontal else axes.get_ylabel()) == "Slowdown"
        (means,) = marks(figure)
        assert (
            list(np.asarray(means.get_xdata() if is_horizontal else means.get_ydata())) == [2.0] * n
        )
        tops = lines(figure)
        assert [(3.0, i) if is_horizontal else (i, 3.0) for i in range(n)] in tops.values()

    @pytest.mark.parametrize("is_horizontal", [False, True])
    def test_ranges_are_from_the_least_to_the_largest_value(self, *, is_horizontal: bool) -> None:
        label = "a" * (80 if is_horizontal else 3)
        series = plots.GroupSeries(
            "ours", [0.8, None], [None] * 2, ranges=[(0.7, 0.82), (0.1, 0.2)]
        )
        figure = plots.grouped([label, "b"], [series], y_label="Load", is_slowdown=False)
        (segments,) = [
            one.get_segments()
            for one in figure.axes[0].collections
            if isinstance(one, LineCollection) and len(one.get_segments())
        ]
        ends = [point[0 if is_horizontal else 1] for segment in segments for point in segment]
        assert ends == pytest.approx([0.7, 0.82])

    def test_several_published_series_have_the_colours_of_the_measured_ones(self) -> None:
        series = [
            plots.GroupSeries(f"{name}, {what}", [1.0], [None], is_published=what == "expected")
            for name in ("a", "b")
            for what in ("expected", "measured")
        ]
        figure = plots.grouped(["x"], series)
        edges = [mark.get_markeredgecolor() for mark in marks(figure)]
        assert edges[0] == edges[1] != edges[2] == edges[3]
        faces = [mark.get_markerfacecolor() for mark in marks(figure)]
        assert faces == ["white", edges[1], "white", edges[3]]
        one, other = marks(plots.grouped(["x"], series[:2]))
        assert one.get_markeredgecolor() != other.get_markeredgecolor()

    @pytest.mark.parametrize("n_series", [1, 6])
    @pytest.mark.parametrize("n_groups", [2, 6, 24])
    def test_nothing_is_cut_or_wider_than_a_column(self, n_groups: int, n_series: int) -> None:
        series = [
            plots.SizeSeries(
                f"Homa Aeolus, 500 KB a port, {i}",
                [1.5] * n_groups,
                [40.0] * n_groups,
                labels=[f"{n}-{2 * n} BDP" for n in range(n_groups)],
            )
            for i in range(n_series)
        ]
        title = "3c  A title that takes more than a single line of a figure as wide as a column"
        figure = plots.slowdown_by_size(series, title=title)
        figure.draw_without_rendering()
        width, height = figure.get_size_inches()
        assert width == 4.6
        assert height <= 24
        box = figure.get_tightbbox()
        assert 0 <= box.x0 < box.x1 <= width
        assert 0 <= box.y0 < box.y1 <= height

    def test_more_series_than_colours_are_distinguishable(self) -> None:
        series = [plots.GroupSeries(str(n), [1.0 + n], [None]) for n in range(12)]
        figure = plots.grouped(["a"], series)
        looks = {(mark.get_markerfacecolor(), mark.get_marker()) for mark in marks(figure)}
        assert len(looks) == 12

    def test_nothing_to_show_is_an_error(self) -> None:
        with pytest.raises(ValueError, match="at least one series"):
            plots.slowdown_by_size([])


def test_lines_by_load_are_in_order_of_load() -> None:
    line = plots.Line("IMC10", [plots.Point(0.8, 0.9), plots.Point(0.5, 1.0)])
    figure = plots.by_load([line], y_label="Utilisation")
    assert lines(figure)["IMC10"] == [(0.5, 1.0), (0.8, 0.9)]


def test_points_without_a_verdict_are_grey_and_in_the_legend() -> None:
    points = [plots.Point(1, 0.8), plots.Point(2, 0.84, is_undecided=True)]
    series = plots.GroupSeries("measured", [1.5, 2.0], [None, None], undecided=frozenset([1]))
    pair = plots.OperatingPoint("2 us", 0.5, 20.0, is_undecided=True, series="one")
    trade = plots.Tradeoff("one", 0.5, 20.0, is_undecided=True, series="two")
    for figure in (
        plots.by_load([plots.Line("r = 4", points)], y_label="Load"),
        plots.curves([plots.Line("r = 4", points)], x_label="r", y_label="Load"),
        plots.grouped(["a", "b"], [series]),
        plots.operating_points([pair]),
        plots.tradeoff([trade]),
    ):
        (axes,) = figure.axes
        grey = [line for line in axes.get_lines() if line.get_color() == UNDECIDED]
        drawn, entry = grey
        assert np.size(drawn.get_xdata()) == 1
        assert entry.get_label() == "no verdict yet"
        assert drawn.get_label() != entry.get_label()
    assert "no verdict yet" not in lines(plots.by_load([plots.Line("r", points[:1])], y_label="y"))


def test_hollow_marks_of_short_runs_are_in_the_legend() -> None:
    series = plots.SizeSeries("Homa", [1.5], [2.0], hollow=frozenset([0]), labels=["<1 BDP"])
    for figure in (plots.slowdown_by_size([series]), plots.sizes_by_panel({"IMC10": [series]})):
        labels = [line.get_label() for line in figure.axes[0].get_lines()]
        assert "run too short" in labels


def test_lines_show_the_range_of_several_seeds() -> None:
    points = [plots.Point(1, 0.82, 0.8, 0.84), plots.Point(2, 0.84, 0.84, 0.84)]
    figure = plots.by_load([plots.Line("r = 4", points)], y_label="Maximum load")
    (segments,) = [
        one.get_segments()
        for one in figure.axes[0].collections
        if isinstance(one, LineCollection) and len(one.get_segments())
    ]
    assert [segment.tolist() for segment in segments] == [[[1.0, 0.8], [1.0, 0.84]]]


def test_few_points_of_a_logarithmic_axis_have_their_ticks() -> None:
    points = [plots.Point(channels, 0.5) for channels in (1, 2, 4, 8)]
    figure = plots.by_load([plots.Line("r = 1", points)], y_label="Maximum load", log="x")
    figure.draw_without_rendering()
    assert tick_labels(figure) == ["1", "2", "4", "8"]


class TestDistributions:
    def test_completion_times_are_in_microseconds_and_finished(self) -> None:
        figure = plots.fct_cdf(np.array([4e6, np.nan, 2e6]), np.array([1e6, 9e6, 1e6]))
        assert lines(figure) == {
            "measured": [(2.0, 0.5), (4.0, 1.0)],
            "idle network": [(1.0, 0.5), (1.0, 1.0)],
        }

    def test_long_curves_are_thinned_and_keep_their_ends(self) -> None:
        values = np.arange(1, 100_001) * 1e6
        points = lines(plots.fct_cdf(values, values))["measured"]
        assert len(points) <= 2000
        assert points[0] == (1.0, 1e-5)
        assert points[-1] == (100_000.0, 1.0)

    def test_queues_show_the_fraction_above_each_length(self) -> None:
        tiers = {"tor-down": (np.array([0, 1500, 3000]), np.array([90, 9, 1]))}
        points = lines(plots.queue_cdf(tiers))["tor-down"]
        assert [x for x, _ in points] == [0.0, 1.5, 3.0]
        assert points[0][1] == pytest.approx(0.1)
        assert points[1][1] == pytest.approx(0.01)
        assert np.isnan(points[2][1])

    def test_empty_tables_make_empty_plots(self) -> None:
        curves = lines(plots.fct_cdf(np.zeros(0), np.zeros(0)))
        assert curves == {"measured": [], "idle network": []}
        assert lines(plots.queue_cdf({"tor-up": (np.zeros(1), np.zeros(1))})) == {}


class TestTime:
    def test_few_intervals_are_shown_as_they_are(self) -> None:
        tiers = {"host-up": (np.array([1e9, 2e9]), np.array([0.25, 0.5]))}
        assert lines(plots.utilisation(tiers))["host-up"] == [(1.0, 0.25), (2.0, 0.5)]

    @pytest.mark.parametrize("n", [400, 401, 1000, 12_345])
    def test_averaged_points_include_every_sample(self, n: int) -> None:
        times, values = average_neighbours(np.arange(n, dtype=float), np.arange(n, dtype=float))
        assert times.size <= 400
        assert times[-1] == n - 1
        assert values[0] == pytest.approx((np.ceil(n / 400) - 1) / 2)


class TestRuns:
    def test_every_plot_of_a_run_can_be_saved(self, small_run: rm.Run, tmp_path: Path) -> None:
        for plot in (
            small_run.plot.slowdown_by_size,
            small_run.plot.fct_cdf,
            small_run.plot.utilisation,
            small_run.plot.queue_cdf,
        ):
            file = tmp_path / f"{plot.__name__}.png"
            plot().savefig(file)
            assert file.read_bytes().startswith(b"\x89PNG")

    def test_marks_are_the_means_of_the_summary(self, small_run: rm.Run) -> None:
        groups = slowdown_groups(small_run.summary)
        means = [group.mean for group in groups if group.count]
        assert heights(small_run.plot.slowdown_by_size())["measured"] == pytest.approx(means)


class TestPanels:
    FIGURE = load_figure(FIG3)

    def test_published_values_are_next_to_measured_ones(self, tmp_path: Path) -> None:
        panel = self.FIGURE.sub_figures[1]
        run = write_results(tmp_path, rows=[(0, 1, 6, 5), (50, 1, 5, 5)] * 5)
        rows = rows_of(self.FIGURE, panel, {"imc10-0.60": {1: run}}, Basis(Mode(), [1]))
        figure = draw(self.FIGURE, panel, rows)
        assert heights(figure)["expected"] == [1.518, 1.972, 1.284]
        assert tick_labels(figure) == ["IMC10", "Web Search", "Data Mining"]

    def test_utilisation_has_a_line_for_each_workload(self, tmp_path: Path) -> None:
        panel = self.FIGURE.sub_figures[0]
        runs = {"web-search-0.70": {1: write_results(tmp_path, utilisation=0.9)}}
        figure = draw(self.FIGURE, panel, rows_of(self.FIGURE, panel, runs, Basis(Mode(), [1])))
        shown = lines(figure)
        assert shown["Web Search"] == [(0.7, 0.9)]
        assert shown["IMC10"] == []
        published = [points for points in shown.values() if len(points) == 8]
        assert (0.84, 0.9793) in published[0]

    def test_a_panel_without_values_is_drawn_empty(self) -> None:
        panel = self.FIGURE.sub_figures[4]
        without = replace(self.FIGURE, expected=replace(self.FIGURE.expected, facts={}))
        figure = draw(without, panel, rows_of(without, panel, {}, Basis(Mode(), [1])))
        assert heights(figure) == {"measured": []}


def test_packets_on_links_are_bars_from_their_first_bit_to_their_last() -> None:
    links = {
        "h0 → s0": [
            plots.PacketTransit("cell", 110, 230, "h5"),
            plots.PacketTransit("rts", 230, 235),
        ],
        "s0 → a0": [plots.PacketTransit("rts", 235, 240)],
    }
    kinds = ("cell", "rts", "schd")
    figure = plots.time_space(links, (100, 300), kinds=kinds, every_ns=100, title="a slot")
    axes = figure.axes[0]
    boxes = {
        str(of.get_label()): [path.get_extents() for path in of.get_paths()]
        for of in axes.collections
    }
    spans = {kind: [(box.x0, box.x1) for box in of] for kind, of in boxes.items()}
    assert spans == {"cell": [(10, 130)], "rts": [(130, 135), (135, 140)]}
    assert [text.get_text() for text in axes.texts] == ["h5"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["cell", "rts"]
    lines = [np.asarray(line.get_xdata()).tolist() for line in axes.lines]
    assert lines == [[100, 100], [200, 200]]


def shown(value: object) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the data and the metadata with which a notebook displays a value."""
    data, how = DisplayFormatter().format(value)  # type: ignore[no-untyped-call]
    return data, how


def test_notebooks_show_figures() -> None:
    data, how = shown(plots.grouped(["a"], [plots.GroupSeries("ours", [1.5], [4.0])]))
    assert data["image/png"].startswith(b"\x89PNG")
    assert how["image/png"]["width"] < 600


def test_notebooks_show_runs_and_comparisons_as_tables(plan_file: Path, tmp_path: Path) -> None:
    run = rm.run(plan_file, out=tmp_path / "a&b", quiet=True)
    table = shown(run)[0]["text/html"]
    assert "<td>mean slowdown</td>" in table
    assert "a&amp;b" in table
    comparison = rm.Comparison({"x": run})
    assert "<table>" in shown(comparison)[0]["text/html"]
    assert repr(comparison) == "Comparison of x, one seed"


def test_lines_of_a_sweep_are_drawn_into_axes_of_a_user() -> None:
    figure = Figure()
    axes = figure.subplots()
    line = plots.Series("dcpim", [(0.5, Interval(1.2, 0.1, 3)), (0.6, Interval(1.4, None, 1))])
    assert plots.replicated([line], x_label="load", y_label="slowdown", ax=axes) is figure
    assert axes.get_xlabel() == "load"
    assert len(axes.containers) == 1
