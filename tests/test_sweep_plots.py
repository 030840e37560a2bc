"""Plots of sweeps: panels, names, colours and markers, short runs, slowdown by size, heat maps."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

import rampmeter as rm
from rampmeter.analysis.confidence import Interval, interval
from rampmeter.plan import schema
from rampmeter.plots.colours import COLOURS, TRANSPORTS, looks
from rampmeter.results.names import measure_name, setting_name, transport_name
from rampmeter.sweeps.columns import MEASURES
from rampmeter.sweeps.plots import SweepPlots

from . import commands
from .commands import error_line, ok

LOAD, SIZES = "workload.load", "workload.sizes"


@dataclass(frozen=True)
class Point:
    """A point of a sweep that was never run."""

    transport: str
    values: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]] = field(default_factory=list)

    def interval(self, name: str) -> Interval:
        return interval(row[name] for row in self.rows)


def statistics(mean: float) -> dict[str, float]:
    return {"count": 9, "mean": mean, "p50": mean, "p99": 3 * mean, "p999": 9.0, "max": 9.0}


def row(mean: float, *, is_short: bool = False) -> dict[str, Any]:
    bins = [
        {"label": label, "upper_bytes": 1, "stats": statistics(mean) if label != ">2 BDP" else None}
        for label in ("<1 BDP", "1-2 BDP", ">2 BDP")
    ]
    summary = {"slowdown": {"delivered": {"overall": statistics(mean), "bdp": bins}}}
    measures = dict.fromkeys(MEASURES) | {"slowdown_mean": mean, "slowdown_p99": 3 * mean}
    return {**measures, "is_short": is_short, "summary": json.dumps(summary)}


def sweep(
    transports: Sequence[str] = ("dcpim", "homa"),
    sizes: Sequence[Any] = ("imc10", "web-search"),
    loads: Sequence[Any] = (0.3, 0.9),
    spines: Sequence[int] = (2,),
) -> SweepPlots:
    """Returns the plots of a grid with two seeds; means are 1 + load + 0.1 for the second seed."""
    points = [
        Point(
            transport,
            {LOAD: load, SIZES: of, "topology.spines": value},
            [row(1 + load, is_short=load == 0.9), row(1.1 + load)],
        )
        for load in loads
        for of in sizes
        for value in spines
        for transport in transports
    ]
    return SweepPlots("out", [LOAD, SIZES, "topology.spines"], points)


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def panels(figure: Figure) -> list[Axes]:
    return [axes for axes in figure.axes if axes.get_title()]


def marks(axes: Axes) -> list[Line2D]:
    """Returns the means of each series, without the ends of intervals."""
    lines = [line for line in axes.get_lines() if line.get_linestyle() == "None"]
    return [line for line in lines if np.size(line.get_xdata()) and line.get_marker() != "_"]


def markers(axes: Axes) -> set[tuple[str, str]]:
    """Returns colour and marker of each series."""
    return {(to_hex(line.get_color()), str(line.get_marker())) for line in marks(axes)}


def test_the_second_key_has_a_panel_for_each_value_with_a_common_axis() -> None:
    figure = sweep().metric("slowdown_p99")
    one, other = panels(figure)
    assert [one.get_title(), other.get_title()] == ["IMC10", "Web Search"]
    assert one.get_ylim() == other.get_ylim()
    assert (one.get_xlabel(), one.get_ylabel()) == ("Load", "99th-percentile slowdown")
    assert other.get_ylabel() == ""
    assert markers(one) == markers(other)


def test_axes_and_legends_have_the_names_of_papers() -> None:
    figure = sweep(["dcpim", "homa-aeolus", "pfabric:window-initial=60"]).metric()
    assert panels(figure)[0].get_ylabel() == "Mean slowdown"
    assert legend(figure)[:3] == ["dcPIM", "Homa Aeolus", "pFabric, window-initial = 60"]
    assert setting_name("topology.access-gbps", 100.0) == "Access 100 Gbit/s"
    assert transport_name("mine") == "mine"
    assert all(
        not measure_name(name)[0].islower() and "_" not in measure_name(name) for name in MEASURES
    )


def test_intervals_are_thin_in_the_colour_of_the_transport_and_in_the_legend() -> None:
    figure = sweep().metric()
    assert legend(figure)[-2:] == ["95 % over 2 seeds", "run too short"]
    bars: list[Any] = [of for of in panels(figure)[1].collections if of.get_paths()]
    assert {to_hex(of.get_color()[0]) for of in bars} == {COLOURS[0].lower(), COLOURS[1].lower()}
    assert all(of.get_linewidth()[0] < 1.0 for of in bars)


def test_points_with_runs_that_were_too_short_are_hollow() -> None:
    for axes in panels(sweep().metric()):
        faces = {
            float(x): to_hex(line.get_markerfacecolor())
            for line in marks(axes)
            for x in np.asarray(line.get_xdata())
        }
        assert faces[0.9] == "#ffffff" != faces[0.3]
    assert "run too short" not in legend(sweep(loads=(0.3, 0.5)).metric())


def test_each_of_ten_curves_in_one_panel_has_another_look() -> None:
    figure = sweep(["dcpim", "homa", "ndp", "phost", "dctcp"]).metric(panels="none")
    (axes,) = figure.axes
    assert len(markers(axes)) == 10
    assert {"IMC10", "Web Search", "NDP"} <= set(legend(figure))


def test_every_transport_has_a_colour_of_its_own_in_all_figures() -> None:
    assert set(TRANSPORTS) == set(schema.names()) | {"python"}
    assert len({look.colour for look in looks(TRANSPORTS)}) == len(TRANSPORTS)
    assert looks(["mine", "homa"])[1] == looks(["Homa"])[0] == looks(["homa:paper", "dcpim"])[0]
    assert len({look.idx for look in looks(["homa:paper", "homa:reference", "mine"])}) == 3


def test_slowdown_by_size_has_the_chosen_points() -> None:
    figure = sweep().slowdown_by_size({"load": 0.3})
    assert figure.legends[0].get_title().get_text() == "Load 0.3"
    axes = panels(figure)[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["<1", "1-2"]
    means = [line.get_ydata() for line in axes.get_lines() if line.get_label() == "dcPIM"]
    assert means[0] == pytest.approx([1.35, 1.35])


def test_slowdown_by_size_is_at_the_largest_load_by_default() -> None:
    figure = sweep(sizes=["imc10"]).slowdown_by_size()
    assert figure.legends[0].get_title().get_text() == "Load 0.9"
    assert legend(figure) == ["dcPIM", "Homa", "run too short", "95 % over 2 seeds"]


def test_heat_maps_have_one_scale_of_colours() -> None:
    figure = sweep(sizes=["imc10"], spines=[2, 4]).heat_map("slowdown_mean", "load", "spines")
    images = [axes.images[0] for axes in panels(figure)]
    assert [axes.get_title() for axes in panels(figure)] == ["dcPIM", "Homa"]
    assert images[0].norm is images[1].norm
    assert images[0].get_clim() == pytest.approx((1.35, 1.95))
    assert figure.axes[-1].get_ylabel() == "Mean slowdown"


def test_heat_maps_need_two_keys_of_numbers() -> None:
    with pytest.raises(ValueError, match="two keys with several numbers"):
        sweep().heat_map()
    assert sweep().names() == ["metric", "slowdown_by_size", "heat_map"]
    assert repr(sweep()).endswith(": metric, slowdown_by_size, heat_map>")
    assert "heat_map" not in sweep().available()
    assert "heat_map" in sweep(sizes=["imc10"], spines=[2, 4]).available()


def test_keys_of_texts_are_categories_with_marks_apart() -> None:
    figure = sweep().metric(against="sizes", where={"load": "0.3"})
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["IMC10", "Web Search"]
    xs = [tuple(np.asarray(line.get_xdata())) for line in marks(axes)]
    assert len(set(xs)) == 2


def test_a_sweep_of_transports_alone_can_be_drawn() -> None:
    (axes,) = sweep(sizes=["imc10"], loads=[0.5]).metric().figure.axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["dcPIM", "Homa"]


def test_logarithmic_axes_have_ticks_at_the_points() -> None:
    figure = sweep(sizes=["imc10"], loads=[1, 4, 16, 64]).metric()
    figure.draw_without_rendering()
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "4", "16", "64"]
    assert [text.get_text() for text in axes.get_xticklabels(minor=True)] == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda of: of.metric("status"), "name: expected one of"),
        (lambda of: of.metric(against="seed"), "against: expected one of workload.load"),
        (lambda of: of.metric(panels="seed"), "panels: expected one of workload.sizes, got seed"),
        (lambda of: of.metric(where={"load": 7}), "where.load: expected one of 0.3, 0.9, got 7"),
        (lambda of: of.metric(where={"lod": 7}), "where: expected one of workload.load"),
    ],
)
def test_wrong_names_are_errors_that_list_the_right_ones(call: Any, message: str) -> None:
    with pytest.raises(rm.PlanError, match=message.replace(".", r"\.")):
        call(sweep())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of a sweep of two loads and two workloads."""
    out = tmp_path_factory.mktemp("sweep") / "loads"
    plan = rm.Plan(
        'topology = { kind = "star", hosts = 4 }\n'
        'transport.name = "dcpim"\n'
        '[workload]\npattern = "all-to-all"\nsizes = "imc10"\nload = 0.5\nflows = 200\n'
    )
    vary = {LOAD: "0.3,0.6", SIZES: "imc10,web-search"}
    rm.sweep(plan, vary=vary, transports="dcpim,homa", seeds=2, out=out, quiet=True)
    return out


@pytest.mark.parametrize("kind", ["png", "pdf", "svg"])
def test_the_command_draws_a_sweep_in_every_format(folder: Path, tmp_path: Path, kind: str) -> None:
    argv = ["plot", str(folder), "--out", str(tmp_path), "--format", kind]
    result = ok(*argv)
    names = ["slowdown_mean", "slowdown_p99", "slowdown_by_size"]
    assert result.stdout.split() == [f"{tmp_path}/{name}.{kind}" for name in names]
    assert all((tmp_path / f"{name}.{kind}").stat().st_size > 1000 for name in names)


@pytest.mark.parametrize(
    ("options", "image"),
    [
        (["--kind", "slowdown-by-size", "--where", "load=0.3"], "slowdown_by_size"),
        (["--metric", "utilisation", "--against", "load", "--panels", "none"], "utilisation"),
        (["--kind", "metric", "--metric", "slowdown_p50"], "slowdown_p50"),
    ],
)
def test_options_choose_the_plot(
    folder: Path, tmp_path: Path, options: list[str], image: str
) -> None:
    result = commands.call("plot", folder, "--out", tmp_path, *options)
    assert result.stdout.split() == [f"{tmp_path}/{image}.png"], result.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--kind", "queues"], "--kind: expected one of slowdown-by-size"),
        (["--kind", "queue"], "--kind: expected one of metric, slowdown-by-size, heat-map of a"),
        (["--where", "load"], "--where: expected KEY=VALUE, got load"),
        (["--port", "s0-h0"], "--port: expected a plot with this option, got slowdown-mean"),
        (["--width", "wide"], "width: expected column, page or a number of inches, got wide"),
    ],
)
def test_wrong_options_are_errors(
    folder: Path, tmp_path: Path, options: list[str], message: str
) -> None:
    assert message in error_line("plot", folder, "--out", tmp_path, *options)
