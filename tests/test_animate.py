"""Animations: their data, the command, and the page in a browser."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

import rampmeter as rm
from rampmeter import PlanError, ResultError
from rampmeter.animation import Network, events, network_of
from rampmeter.results import animations
from rampmeter.results.pictures import timeline_of
from rampmeter.timeline import QUEUE

from .commands import call, error_line, ok
from .conftest import ROOT, SMALL, interrupted
from .drawings import unpack

PLAN = ROOT / "examples/plans/incast8.toml"
TRANSPORTS = ("tcp", "dctcp", "ndp", "dcpim", "fastpass", "fastpod")
FLOW = 3
"""A flow that the tests choose."""


def command(*arguments: str | Path) -> str:
    """Returns the output of a command, which has to succeed."""
    return ok(*arguments).output


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of a comparison by an incast at a star of eight hosts."""
    out = tmp_path_factory.mktemp("incast") / "compared"
    arguments = ("--transports", ",".join(TRANSPORTS), "--out", out, "--quiet")
    command("compare", PLAN, *arguments)
    return out


@pytest.fixture(scope="module")
def data(compared: Path) -> dict[str, Any]:
    return unpack(rm.Comparison.load(compared).animate().html)


def run_of(data: dict[str, Any], compared: Path, name: str) -> tuple[dict[str, Any], rm.Run]:
    """Returns the data of a transport, and its run."""
    return data["runs"][TRANSPORTS.index(name)], rm.Run(compared / name)


@pytest.mark.parametrize("name", TRANSPORTS)
def test_every_packet_of_the_timeline_is_in_the_page(
    data: dict[str, Any], compared: Path, name: str
) -> None:
    shown, run = run_of(data, compared, name)
    packets = shown["packets"]
    assert packets["start"] == sorted(packets["start"])
    rows = zip(*(packets[c] for c in ("link", "start", "length", "kind", "bytes")), strict=True)
    found = Counter(
        (data["links"][link]["name"], at, at + length, shown["kinds"][kind][0], n_bytes)
        for link, at, length, kind, n_bytes in rows
    )
    assert found == Counter(
        (track.name, one.at, one.until, one.name, one.args["bytes"])
        for track in timeline_of(run).links
        for one in track.slices
    )


@pytest.mark.parametrize("name", TRANSPORTS)
def test_data_belong_to_their_flow_also_without_payload(
    data: dict[str, Any], compared: Path, name: str
) -> None:
    shown, run = run_of(data, compared, name)
    packets, kinds = shown["packets"], shown["kinds"]
    ends = {row["flow"]: (row["src"], row["dst"]) for row in run.flows.to_pylist()}
    is_data = [kinds[kind][1] == "data" for kind in packets["kind"]]
    first: dict[int, int] = {}
    for packet, flow, link, of_data in zip(
        packets["packet"], packets["flow"], packets["link"], is_data, strict=True
    ):
        if of_data:
            source = data["nodes"][data["links"][link]["from"]]["name"]
            first.setdefault(packet, flow)
            assert flow == first[packet] >= 0
            assert not source.startswith("h") or source == f"h{ends[flow][0]}"
    assert set(first.values()) == set(ends)


@pytest.mark.parametrize("name", TRANSPORTS)
def test_every_change_of_a_queue_is_in_the_page(
    data: dict[str, Any], compared: Path, name: str
) -> None:
    shown, run = run_of(data, compared, name)
    queues = shown["queues"]
    found = Counter(
        (data["links"][link]["name"], at, n_bytes)
        for link, at, n_bytes in zip(queues["link"], queues["at"], queues["bytes"], strict=True)
    )
    assert found == Counter(
        (track.name.removesuffix(" queue"), one.at, one.value)
        for track in timeline_of(run).of_role(QUEUE)
        for one in track.values
    )


def test_drops_are_those_of_the_results(data: dict[str, Any], compared: Path) -> None:
    for name in ("tcp", "fastpod"):
        shown, run = run_of(data, compared, name)
        assert run.drops is not None
        counted = pc.sum(run.drops["packets"]).as_py()
        assert len(shown["drops"]["at"]) == counted > 100
        assert shown["drops"]["at"] == sorted(shown["drops"]["at"])
        assert {data["links"][link]["name"] for link in shown["drops"]["link"]} == {"s0>h0"}
    assert run_of(data, compared, "dcpim")[0]["drops"]["at"] == []


def test_each_mark_marks_one_packet(data: dict[str, Any], compared: Path) -> None:
    shown, run = run_of(data, compared, "dctcp")
    packets = shown["packets"]
    rows = zip(packets["packet"], packets["link"], packets["flags"], strict=True)
    marked = [(packet, link) for packet, link, flags in rows if flags & events.MARKED]
    assert len(marked) == len(set(marked)) == len(shown["marks"]["at"]) > 100
    marks = run.summary["counters"].get("marks", len(marked))
    assert len(marked) == marks


def test_trimmed_packets_are_those_that_receivers_refuse(
    data: dict[str, Any], compared: Path
) -> None:
    shown, _ = run_of(data, compared, "ndp")
    packets = shown["packets"]
    rows = zip(packets["packet"], packets["flags"], packets["bytes"], strict=True)
    trimmed = {packet: n_bytes for packet, flags, n_bytes in rows if flags & events.TRIMMED}
    nacks = [name for name, _ in shown["kinds"]].index("nack")
    kinds = zip(packets["packet"], packets["kind"], strict=True)
    assert len(trimmed) == len({packet for packet, kind in kinds if kind == nacks}) > 100
    assert set(trimmed.values()) == {64}


@pytest.mark.parametrize("name", TRANSPORTS)
def test_flows_are_those_of_the_results(data: dict[str, Any], compared: Path, name: str) -> None:
    shown, run = run_of(data, compared, name)
    columns = {
        **{"flow": "flow", "src": "src", "dst": "dst", "size": "size_bytes", "status": "status"},
        **{"arrival": "arrival_ps", "fct": "fct_ps", "ideal": "ideal_ps"},
    }
    for short, column in columns.items():
        assert sorted(map(str, shown["flows"][short])) == sorted(
            map(str, run.flows[column].to_pylist())
        )
    by_flow = dict(zip(run.flows["flow"].to_pylist(), run.flows["fct_ps"].to_pylist(), strict=True))
    assert dict(zip(shown["flows"]["flow"], shown["flows"]["fct"], strict=True)) == by_flow


def test_hosts_with_equal_phases_share_them(data: dict[str, Any], compared: Path) -> None:
    shown, run = run_of(data, compared, "dcpim")
    assert [one["track"] for one in shown["phases"]] == ["matching", "data phase"]
    for phases in shown["phases"]:
        assert phases["nodes"] == [f"h{idx}" for idx in range(8)]
        for track in timeline_of(run).named(phases["track"]):
            found = [(one.name, one.at, one.until) for one in track.slices]
            rows = zip(phases["names"], phases["start"], phases["until"], strict=True)
            end = data["window"][1]
            assert [*rows] == [one for one in found if one[1] < end]
    (batches,) = run_of(data, compared, "fastpass")[0]["phases"]
    assert batches["nodes"] == ["a0"]


def test_a_window_has_the_packets_that_are_on_a_link_in_it(compared: Path) -> None:
    run = rm.Run(compared / "tcp")
    shown = unpack(run.animate(start=20, end="30us").html)
    assert shown["window"] == [20_000_000, 30_000_000]
    (of,) = shown["runs"]
    begins = of["packets"]["start"]
    ends = [at + length for at, length in zip(begins, of["packets"]["length"], strict=True)]
    assert max(begins) < 30_000_000
    assert all(end + 200_000 > 20_000_000 for end in ends)
    assert all(20_000_000 <= at <= 30_000_000 for at in (*of["drops"]["at"], *of["queues"]["at"]))
    port = [link["name"] for link in shown["links"]].index("s0>h0")
    first = of["queues"]["link"].index(port)
    (track,) = timeline_of(run).named("s0>h0 queue")
    before = [one.value for one in track.values if one.at <= 20_000_000][-1]
    assert (of["queues"]["at"][first], of["queues"]["bytes"][first]) == (20_000_000, before)


def places(network: Network, tier: int) -> list[tuple[float, float]]:
    return [(node["x"], node["y"]) for node in network.nodes if node["tier"] == tier]


TOPOLOGIES = {
    "star": 'kind = "star"\nhosts = 64',
    "dumbbell": 'kind = "dumbbell"\nhosts-per-side = 4',
    "leaf-spine": 'kind = "leaf-spine"\nracks = 4\nhosts-per-rack = 16\nspines = 2',
    "fat-tree": 'kind = "fat-tree"\nk = 4',
}


def drawing_of(topology: str, folder: Path) -> dict[str, Any]:
    """Returns the network of a topology."""
    file = folder / "plan.toml"
    file.write_text(
        re.sub(r"\[topology\]\n.*?\n\[", f"[topology]\n{topology}\n[", SMALL, flags=re.S)
    )
    return rm.Plan.load(file).drawing()


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_nodes_of_every_network_have_different_places(name: str, tmp_path: Path) -> None:
    drawing = drawing_of(TOPOLOGIES[name], tmp_path)
    network = network_of(drawing, [], None)
    tiers = sorted({node["tier"] for node in network.nodes})
    everywhere = [place for tier in tiers for place in places(network, tier)]
    assert len(set(everywhere)) == len(everywhere) == len(drawing["hosts"] + drawing["switches"])
    assert all(0 <= x <= 1 and 0 <= y <= 1 for x, y in everywhere)
    assert len(network.links) == 2 * len(drawing["links"])
    if name == "star":
        assert (network.shape, places(network, 1)) == ("circle", [(0.5, 0.5)])
        return
    heights = [{y for _, y in places(network, tier)} for tier in tiers]
    assert all(len(of) == 1 for of in heights)
    down = [of.pop() for of in heights]
    assert down == sorted(set(down), reverse=True)
    assert (down[0], down[-1]) == (1, 0)


LINKS = """kind = "links"
hosts = 3
switches = 2
links = [
    { between = ["h0", "s0"], gbps = 100, propagation-ns = 100 },
    { between = ["h1", "s1"], gbps = 25, propagation-ns = 100 },
    { between = ["h2", "s1"], gbps = 25, propagation-ns = 100 },
    { between = ["s0", "s1"], gbps = 100, propagation-ns = 500 },
    { between = ["s0", "s1"], gbps = 40, propagation-ns = 500 },
]"""
DRAGONFLY = 'kind = "dragonfly"\nswitches-per-group = 2\nhosts-per-switch = 1\nglobal-links = 1'


@pytest.mark.parametrize("topology", [LINKS, DRAGONFLY])
def test_links_have_the_rates_of_the_timeline(topology: str, tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    drawing_of(topology, tmp_path)
    options = rm.RunOptions(timeline="a.perfetto-trace", timeline_until_us=60)
    run = rm.run(file, transport="ndp", run=options, quiet=True)
    shown = unpack(run.animate().html)
    assert shown["window"][1] <= 60_000_000
    (of,) = shown["runs"]
    assert of["label"] == "NDP"
    assert len(of["packets"]["link"]) == sum(len(one.slices) for one in timeline_of(run).links)
    columns = (of["packets"][name] for name in ("link", "length", "bytes"))
    for link, length, n_bytes in zip(*columns, strict=True):
        assert length == pytest.approx(n_bytes * 8000 / shown["links"][link]["gbps"], abs=1)


def test_chosen_hosts_have_the_switches_above_them(tmp_path: Path) -> None:
    drawing = drawing_of(TOPOLOGIES["leaf-spine"], tmp_path)
    network = network_of(drawing, [], range(16, 20))
    names = [node["name"] for node in network.nodes]
    assert names == ["h16", "h17", "h18", "h19", "s1", "s4", "s5"]
    assert set(network.links) >= {"h16>s1", "s1>h16", "s1>s4", "s5>s1"}
    with pytest.raises(PlanError, match="hosts: expected hosts from 0 to 63, got 64"):
        network_of(drawing, [], [0, 64])


def test_parallel_links_and_arbiters_have_the_names_of_timelines() -> None:
    cable = {"gbps": 100.0, "propagation_ns": 200.5}
    drawing = {
        "hosts": ["left", "right"],
        "switches": [{"name": "one", "tier": 1}, {"name": "two", "tier": 1}],
        "links": [{"ends": ends, **cable} for ends in ([0, 2], [2, 3], [3, 2], [3, 1])],
    }
    network = network_of(drawing, [("left", "left>one"), ("two", "two>a0")], None)
    expected = {"one>two", "two>one", "one>two.2", "two>one.2", "a0>two", "two>a0", "two>right"}
    assert expected <= set(network.links)
    assert network.links["one>two"]["lane"] != network.links["one>two.2"]["lane"]
    assert {link["ps"] for link in network.links.values()} == {200_500}
    assert [node["name"] for node in network.nodes] == ["left", "right", "a0", "one", "two"]


NAMES = {"hosts": ["a9", "a>b", "alpha", "gpu0", "h1", "s0", "x y", "z.2"], "switches": ["leaf"]}
"""Custom names that look like others."""


@pytest.mark.parametrize("name", ["dcpim", "fastpass", "ndp"])
def test_networks_with_custom_names_show_all_packets(name: str, tmp_path: Path) -> None:
    plan = rm.Plan.load(PLAN).with_(("names", NAMES), ("transport", {"name": name}))
    run = rm.run(plan, out=tmp_path / "run", quiet=True)
    shown = unpack(run.animate().html)
    (of,) = shown["runs"]
    links = timeline_of(run).links
    assert len(of["packets"]["link"]) == sum(len(one.slices) for one in links) > 1000
    values = [len(one.values) for one in timeline_of(run).of_role(QUEUE)]
    assert len(of["queues"]["link"]) == sum(values) > 0
    kinds = [(node["name"], node["kind"]) for node in shown["nodes"]]
    arbiters = [("a0", "arbiter"), ("a1", "arbiter")] if name == "fastpass" else []
    hosts = [(host, "host") for host in NAMES["hosts"]]
    assert kinds == [*hosts, *arbiters, ("leaf", "switch")]
    assert shown["hosts"] == NAMES["hosts"]
    assert len(of["flows"]["flow"]) == run.flows.num_rows
    chosen = unpack(run.animate(hosts="0-1").html)
    assert [node["name"] for node in chosen["nodes"]] == ["a9", "a>b", "leaf"]


def test_a_host_with_the_name_of_an_arbiter_is_an_error(tmp_path: Path) -> None:
    names = {**NAMES, "hosts": ["a0", *NAMES["hosts"][1:]]}
    plan = rm.Plan.load(PLAN).with_(("names", names), ("transport", {"name": "fastpass"}))
    with pytest.raises(ResultError, match=r"different names of hosts.*got two links a0>leaf"):
        rm.run(plan, out=tmp_path / "run", quiet=True).animate()


def test_too_many_hosts_and_events_are_errors_with_a_remedy(
    compared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawing = drawing_of('kind = "star"\nhosts = 65', tmp_path)
    with pytest.raises(PlanError, match=r"at most 64 hosts.*got 65; choose some") as of_hosts:
        network_of(drawing, [], None)
    assert (of_hosts.value.key, of_hosts.value.got) == ("hosts", "65")
    monkeypatch.setattr(events, "EVENTS_MAX", 2000)
    with pytest.raises(PlanError, match="at most 2 000 packets") as of_events:
        rm.Run(compared / "tcp").animate()
    assert of_events.value.key == "to"
    remedy = re.search(r"such as ([\d.]+us)", str(of_events.value))
    assert remedy is not None
    assert rm.Run(compared / "tcp").animate(end=remedy[1]).n_events <= 2000


def test_runs_that_cannot_be_played_are_errors(compared: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(SMALL)
    untraced = rm.run(plan, quiet=True)
    with pytest.raises(ResultError, match="expected a timeline"):
        untraced.animate()
    with pytest.raises(PlanError, match=r"from: expected a time before .*us, the end of the run"):
        rm.Run(compared / "tcp").animate(start=500)
    few = rm.run(
        PLAN, run=rm.RunOptions(timeline="a.perfetto-trace", timeline_events=500), quiet=True
    )
    with pytest.raises(PlanError, match=r"to: expected a time until .* end of the timeline"):
        few.animate()
    other = rm.run(PLAN, topology=rm.Star(hosts=9), quiet=True)
    with pytest.raises(ResultError, match="the same network"):
        animations.animate({"a": rm.Run(compared / "tcp"), "b": other})


def test_a_page_needs_no_other_file_and_is_small(compared: Path, tmp_path: Path) -> None:
    comparison = rm.Comparison.load(compared)
    found = comparison.animate(tmp_path / "new" / "page.html", title="A <b> & c")
    text = (tmp_path / "new" / "page.html").read_text(encoding="utf-8")
    assert text == found.html == comparison.animate(title="A <b> & c").html
    assert len(text) < 300_000
    assert "<title>A &lt;b&gt; &amp; c</title>" in text
    loaded = re.findall(r"(?:src|href)=\"([^\"]{1,60})|@import|url\(|https?://", text)
    assert set(loaded) == {"data:,"}
    assert found._repr_html_().startswith("<iframe srcdoc=")
    assert not list(tmp_path.glob("**/*.partial"))


def test_the_command_runs_a_plan_and_keeps_only_the_page(here: Path) -> None:
    Path("plan.toml").write_text(SMALL)
    arguments = ("--quiet", "--to", "20us", "--set", "workload.load=0.7")
    line = command("animate", "plan.toml", *arguments, "--out", "page.html")
    assert re.fullmatch(r"page\.html: [\d ]+ events, [\d.]+ MB\n", line)
    assert sorted(path.name for path in here.iterdir()) == ["page.html", "plan.toml"]
    shown = unpack(Path("page.html").read_text(encoding="utf-8"))
    assert (shown["title"], shown["window"]) == ("plan", [0, 20_000_000])
    assert [run["label"] for run in shown["runs"]] == ["dcPIM"]
    more = ("--transports", "ndp,phost", "--results", "kept", "--json")
    about = json.loads(command("animate", "plan.toml", *arguments, *more))
    assert (about["schema"], about["file"]) == ("rampmeter.animate/1", "animation.html")
    assert about["bytes"] == Path("animation.html").stat().st_size
    (again, folder) = ("again.html", "kept")
    command("animate", folder, "--to", "20us", "--title", "plan", "--out", again)
    first, second = (unpack(Path(file).read_text()) for file in ("animation.html", again))
    assert first == second
    command("animate", "kept/ndp", "--to", "10us", "--hosts", "0-3", "--out", again)
    assert [run["label"] for run in unpack(Path(again).read_text())["runs"]] == ["NDP"]


def test_the_window_of_a_plan_is_that_of_its_page(tmp_path: Path) -> None:
    keys = ("run.timeline=a.perfetto-trace", "run.timeline-from-us=10", "run.timeline-until-us=30")
    out = tmp_path / "page.html"
    settings = [word for key in keys for word in ("--set", key)]
    command("animate", PLAN, "--quiet", "--out", out, *settings)
    assert unpack(out.read_text())["window"] == [10_000_000, 30_000_000]
    command("animate", PLAN, "--quiet", "--out", out, *settings, "--from", "5us", "--to", "12us")
    assert unpack(out.read_text())["window"] == [5_000_000, 12_000_000]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--from", "9s"), "--from: expected a time before [\\d.]+us, the end of the run, got 9s"),
        (("--from", "soon"), "--from: expected a time such as"),
        (("--from", "5us", "--to", "2us"), "--to: expected a time after 5us, got 2us"),
        (("--hosts", "99"), "--hosts: expected hosts from 0 to 7, got 99"),
        (("--hosts", "x"), "--hosts: expected numbers and ranges"),
    ],
)
@pytest.mark.parametrize("of", ["a plan", "a folder"])
def test_errors_name_the_option(
    arguments: tuple[str, ...], message: str, of: str, compared: Path
) -> None:
    source = PLAN if of == "a plan" else compared / "tcp"
    done = call("animate", source, *arguments, "--quiet")
    assert done.exit_code == 2
    assert re.search(message, done.stderr), done.stderr


def test_the_end_of_a_run_without_deliveries_is_that_of_its_events(tmp_path: Path) -> None:
    settings = ("--set", "run.drain-us=1", "--from", "9s", "--quiet")
    done = call("animate", PLAN, *settings)
    assert re.search(r"--from: expected a time before [\d.]+[nu]s, the end", done.stderr)


def test_interrupted_runs_have_a_warning(compared: Path, tmp_path: Path) -> None:
    folder = interrupted(compared / "dcpim", tmp_path / "partial")
    done = call("animate", folder, "--out", tmp_path / "page.html")
    assert "the run was interrupted" in done.stderr


def test_options_of_plans_are_refused_for_folders(compared: Path) -> None:
    failure = error_line("animate", compared, "--transports", "tcp")
    assert "expected a plan with these options" in failure


def test_the_command_records_the_causes_of_each_flow(tmp_path: Path) -> None:
    out, results = tmp_path / "page.html", tmp_path / "results"
    command("animate", PLAN, "--out", out, "--results", results, "--quiet")
    (shown,) = unpack(out.read_text())["runs"]
    times = dict(zip(shown["flows"]["flow"], shown["flows"]["fct"], strict=True))
    assert {int(flow) for flow in shown["blame"]} == times.keys()
    for flow, parts in shown["blame"].items():
        assert sum(time for _, time in parts) == times[int(flow)]
    assert "serialisation" in {name for parts in shown["blame"].values() for name, _ in parts}
    without = tmp_path / "without.html"
    command("animate", PLAN, "--out", without, "--set", "run.blame=false", "--quiet")
    assert unpack(without.read_text())["runs"][0]["blame"] == {}
