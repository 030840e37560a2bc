"""Pictures of a window of a run: packets on links, a queue and a link over time."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.text import Text

import rampmeter as rm
from rampmeter.results import pictures
from rampmeter.results.pictures import parse_hosts, parse_time
from rampmeter.text.cautions import CautionWarning, explanations, values_of
from rampmeter.timeline import Timeline

from . import commands
from .commands import ok
from .conftest import ROOT

PLAN = ROOT / "examples/plans/incast8.toml"
TRANSPORTS = ("tcp", "homa", "dcpim")


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of a comparison by an incast at a star of eight hosts."""
    out = tmp_path_factory.mktemp("incast") / "compared"
    ok("compare", PLAN, "--transports", ",".join(TRANSPORTS), "--out", out, "--quiet")
    return out


@pytest.fixture(scope="module")
def run(compared: Path) -> rm.Run:
    return rm.Run(compared / "dcpim")


def test_a_timeline_is_loaded_from_a_text(run: rm.Run) -> None:
    assert Timeline.load(str(run.timeline_file)).links


def test_rows_are_sorted_by_host(run: rm.Run) -> None:
    (axes,) = run.plot.time_space().axes
    rows = [text.get_text() for text in axes.get_yticklabels()]
    assert rows == [f"h{i} → s0" for i in range(8)] + [f"s0 → h{i}" for i in range(8)]


def test_packets_have_the_colour_of_their_sender_and_control_packets_are_visible(
    run: rm.Run,
) -> None:
    figure = run.plot.time_space(0, "40us")
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend[-1] == "control"
    assert all(text.startswith("data of h") for text in legend[:-1])
    (axes,) = figure.axes
    control: Any = next(of for of in axes.collections if of.get_label() == "control")
    assert control.get_linewidth()[0] >= 0.4
    assert tuple(control.get_edgecolor()[0]) == tuple(control.get_facecolor()[0])
    hues = [tuple(patch.get_facecolor()) for patch in figure.legends[0].get_patches()]
    assert len(set(hues)) == len(hues)
    data: Any = next(of for of in axes.collections if of.get_label() != "control")
    heights = [of.get_paths()[0].get_extents().height for of in (control, data)]
    assert heights[0] < heights[1]


def test_names_are_drawn_as_they_are(tmp_path: Path) -> None:
    plan = rm.Plan(
        "topology = { kind = 'star', hosts = 3 }\nnames = { hosts = ['$\\foo$', '日', '$x_1$'] }\n"
        "transport = { name = 'dcpim' }\nrun = { timeline = 't.perfetto-trace' }\n"
        "workload = { pattern = 'all-to-all', sizes = 'imc10', load = 0.4, flows = 9 }\n"
    )
    done = rm.run(plan, out=tmp_path / "run", quiet=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = done.plot.time_space()
        figure.savefig(tmp_path / "a.pdf")
    names = [text for text in figure.axes[0].get_yticklabels() if "$" in text.get_text()]
    assert names
    assert not any(text.get_parse_math() for text in names)


def test_a_diagram_has_the_packets_of_its_window_and_hosts(run: rm.Run) -> None:
    (axes,) = run.plot.time_space("20us", 40, "1-2").axes
    assert axes.get_xlim() == (0, 20_000)
    assert axes.get_xlabel() == "Time (µs)"
    assert len(axes.get_yticklabels()) == 4
    assert run.timeline is not None
    tracks = [t for t in run.timeline.links if {"h1", "h2"} & set(t.name.split(">"))]
    shown = [one for t in tracks for one in t.slices if one.until > 20e6 and one.at < 40e6]
    assert sum(len(of.get_paths()) for of in axes.collections) == len(shown)


def test_drops_are_crosses(compared: Path) -> None:
    tcp = rm.Run(compared / "tcp")
    (axes,) = tcp.plot.time_space().axes
    n_drops = sum(
        np.size(line.get_xdata()) for line in axes.get_lines() if line.get_marker() == "x"
    )
    by_tier = [sum(tier["drops"].values()) for tier in tcp.summary["tiers"]]
    assert n_drops == sum(by_tier) > 0


def test_the_queue_is_the_longest_one_and_its_maximum_that_of_the_summary(run: rm.Run) -> None:
    figure = run.plot.queue()
    (axes,) = figure.axes
    assert axes.get_ylabel() == "Queue of s0 → h0 (kB)"
    longest = max(tier["queue_max_bytes"] for tier in run.summary["tiers"])
    assert max(np.max(line.get_ydata(), initial=0.0) for line in axes.lines) * 1e3 == longest


def test_matching_has_the_shortest_queue_of_an_incast(compared: Path) -> None:
    figure = rm.Comparison.load(compared).plot.queue()
    (axes,) = figure.axes
    tops = [np.max(line.get_ydata()) for line in axes.get_lines() if np.size(line.get_ydata()) > 8]
    assert tops[-1] < 0.1 * min(tops[:-1])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["TCP", "Homa", "dcPIM"]


def test_the_utilisation_of_a_link_is_that_of_its_packets(run: rm.Run) -> None:
    (axes,) = run.plot.link("s0-h0").axes
    assert axes.get_ylabel() == "Utilisation of s0 → h0"
    times, shares = np.asarray(axes.lines[0].get_xydata()).T
    assert run.timeline is not None
    (track,) = run.timeline.named("s0>h0")
    busy_us = sum(one.until - one.at for one in track.slices) / 1e6
    assert float(np.sum(shares[:-1] * np.diff(times))) == pytest.approx(busy_us)
    assert 0.0 <= shares.min() <= shares.max() <= 1.0


def test_a_comparison_has_a_panel_for_each_transport_over_the_same_time(compared: Path) -> None:
    panels = rm.Comparison.load(compared).plot.time_space().axes[:3]
    assert [axes.get_title() for axes in panels] == ["TCP", "Homa", "dcPIM"]
    assert len({axes.get_xlim() for axes in panels}) == 1


@pytest.mark.parametrize("kind", ["time-space", "queue", "link"])
@pytest.mark.parametrize("what", ["", "homa"])
def test_the_command_draws_each_kind(compared: Path, tmp_path: Path, kind: str, what: str) -> None:
    argv = ["plot", str(compared / what), "--kind", kind, "--to", "40us", "--out", str(tmp_path)]
    result = commands.call(*argv)
    assert result.stdout.split() == [f"{tmp_path}/{kind.replace('-', '_')}.png"], result.output


def test_samples_of_links_are_drawn_without_a_timeline(tmp_path: Path) -> None:
    plan = rm.Plan.load(PLAN).with_(("run", {"links": True, "sample-us": 1}))
    run = rm.run(plan, out=tmp_path / "out", quiet=True)
    (axes,) = run.plot.queue("s0>h0").axes
    assert run.links is not None
    rows = [row for row in run.links.to_pylist() if (row["from"], row["to"]) == ("s0", "h0")]
    values = [row["queue_bytes"] / 1e3 for row in rows]
    assert list(np.asarray(axes.lines[0].get_ydata()))[:-1] == pytest.approx(values)
    with pytest.raises(rm.ResultError, match=r"expected a timeline: set `run\.timeline`"):
        run.plot.time_space()
    assert {"queue", "link"} <= set(run.plot.available())
    assert "time_space" not in run.plot.available()


def test_runs_without_a_timeline_and_samples_have_no_pictures(small_run: rm.Run) -> None:
    assert not {"queue", "link", "time_space"} & set(small_run.plot.available())
    with pytest.raises(rm.ResultError, match=r"`run\.timeline` or `run\.links`"):
        small_run.plot.queue()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda run: run.plot.queue("s9>h0"), "port: expected one of h0>s0, .*, got s9>h0"),
        (lambda run: run.plot.link(start="x"), "start: expected a time such as 40us"),
        (lambda run: run.plot.link(start=5, end=2), "end: expected a time after 5, got 2"),
        (lambda run: run.plot.time_space(hosts="a"), "hosts: expected numbers and ranges"),
        (lambda run: run.plot.time_space(hosts=[99]), "hosts: expected hosts below [0-9]+, got 99"),
        (lambda run: run.plot.link(3), "port: expected a text such as h0>s0, got 3"),
        (lambda run: run.plot.queue([1]), "port: expected a text such as h0>s0, got .1."),
    ],
)
def test_wrong_arguments_are_errors_that_name_them(run: rm.Run, call: object, message: str) -> None:
    with pytest.raises(rm.PlanError, match=message):
        call(run)  # type: ignore[operator]


def test_times_and_hosts_are_read_in_all_forms() -> None:
    assert [parse_time(at, "from") for at in (40, "40", "40us", "0.04ms", "40000ns")] == [40e6] * 5
    assert parse_hosts("0-2,7") == parse_hosts([0, 1, 2, 7]) == [0, 1, 2, 7]


def test_pictures_of_networks_with_custom_names_have_their_hosts(tmp_path: Path) -> None:
    hosts = ["right", "a>b", "left-1", "x y", "h1", "s0", "z.2", "last"]
    names = {"hosts": hosts, "switches": ["leaf"]}
    file = ROOT / "examples/plans/incast8.toml"
    run = rm.run(rm.Plan.load(file).with_(("names", names)), out=tmp_path / "run", quiet=True)
    (axes,) = run.plot.time_space(hosts="1-2").axes
    rows = [label.get_text() for label in axes.get_yticklabels()]
    assert rows == ["a → b → leaf", "left-1 → leaf", "leaf → a → b", "leaf → left-1"]
    assert "Utilisation of left-1 → leaf" in run.plot.link("left-1-leaf").axes[0].get_ylabel()


def test_a_diagram_of_the_first_packets_has_a_note_and_a_warning(
    run: rm.Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(pictures, "PACKETS_MAX", 50)
    with pytest.warns(CautionWarning, match="shows a part, first 50 packets, until") as caught:
        figure = run.plot.time_space()
    texts = [text.get_text() for text in figure.findobj(Text)]
    assert any(text.startswith("first 50 packets, until ") for text in texts)
    caution = caught[0].message.caution  # type: ignore[union-attr]
    assert (caution.code, [*caution.values]) == ("part-shown", values_of("part-shown"))
    assert caution.values["end_us"] < caution.values["run_end_us"]
    assert "part-shown" in explanations()
    result = ok("plot", run.path, "--kind", "time-space", "--out", tmp_path)
    assert result.stderr.startswith("warning: time-space: shows a part, first 50 packets")
    assert result.stderr.endswith("[part-shown]\n")


def test_a_diagram_of_the_first_hosts_has_a_note(
    run: rm.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures, "ROWS_MAX", 4)
    monkeypatch.setattr(pictures, "HOSTS_SHOWN", 2)
    with pytest.warns(CautionWarning, match="hosts 0 to 1 of a network of 16 links"):
        run.plot.time_space()


def test_a_diagram_with_a_given_end_is_whole(
    run: rm.Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(pictures, "PACKETS_MAX", 50)
    result = ok("plot", run.path, "--kind", "time-space", "--to", "1ms", "--out", tmp_path)
    assert result.stderr == ""
