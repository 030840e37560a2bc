"""Timelines, read by Perfetto's own schema: they agree with the results of the run."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import rampmeter as rm
from rampmeter.on_demand import perfetto_trace
from rampmeter.plan import schema
from rampmeter.timeline import KINDS, PORT, QUEUE, Event, Timeline, Track

TRANSPORTS = tuple(
    about["name"]
    for about in schema.transports()
    if about["wire"] and about["name"] != schema.PYTHON
)
GBPS = {
    "host-up": 100,
    "tor-down": 100,
    "tor-up": 400,
    "spine-down": 400,
    "arbiter-up": 400,
    "arbiter-down": 400,
}
# The controllers of CAPTON and Hyline have a link like those of hosts.
SLOW_ARBITER = {"arbiter-up": 100, "arbiter-down": 100}
RACKS, HOSTS = 2, 4


def gbps(run: rm.Run) -> dict[str, int]:
    """Returns the rate of the links of each tier."""
    is_slow = run.manifest["plan"]["transport"]["name"] in ("capton", "hyline")
    return {**GBPS, **SLOW_ARBITER} if is_slow else GBPS


def plan(
    run: str = "", transport: str = "dcpim", flows: int = 100, fabric: str = "", more: str = ""
) -> rm.Plan:
    """Returns a plan with eight hosts at two leaf switches, and all events in the timeline."""
    return rm.Plan(
        f'[topology]\nkind = "leaf-spine"\nracks = {RACKS}\nhosts-per-rack = {HOSTS}\nspines = 2\n'
        f'[fabric]\n{fabric}\n[transport]\nname = "{transport}"\n'
        f'[workload]\npattern = "all-to-all"\nsizes = "imc10"\nload = 0.7\nflows = {flows}\n'
        f'[run]\ntimeline = "run.perfetto-trace"\npaths = true\n{run}\n{more}'
    )


def tier(track: Track) -> str:
    """Returns the tier of the port that a track is of."""
    source, target = track.name.split(" ")[0].split(">")
    ends = {"h": "host-up", "a": "arbiter-up"}
    if source[0] in ends:
        return ends[source[0]]
    if target[0] in ends:
        return "tor-down" if target[0] == "h" else "arbiter-down"
    return "tor-up" if int(source[1:]) < RACKS else "spine-down"


def run(plan: rm.Plan, out: Path) -> tuple[rm.Run, Timeline]:
    """Returns the results of a plan, and its timeline."""
    done = rm.run(plan, out=out, quiet=True)
    assert done.timeline_file is not None
    assert not list(out.glob("*.partial"))
    return done, Timeline.load(done.timeline_file)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[rm.Run, Timeline]:
    """Returns a run of dcPIM, all of it in the timeline."""
    return run(plan(), tmp_path_factory.mktemp("dcpim"))


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> tuple[rm.Run, Timeline]:
    """Returns a run of pFabric whose buffers overflow."""
    tiny = plan(transport="pfabric", fabric="buffer-bytes = 9000")
    return run(tiny, tmp_path_factory.mktemp("pfabric"))


def check_flows(run: rm.Run, timeline: Timeline) -> None:
    """Every flow has the place and time of the table of flows."""
    out, into = timeline.flows("out"), timeline.flows("in")
    rows = run.flows.to_pylist()
    assert out.keys() == into.keys() == {row["flow"] for row in rows}
    for row in rows:
        group, event = out[row["flow"]]
        assert group == f"h{row['src']}"
        assert into[row["flow"]] == (
            f"h{row['dst']}",
            Event(**{**vars(event), "name": into_name(row)}),
        )
        assert event.at == row["arrival_ps"]
        assert (event.args["size"], event.args["status"]) == (row["size_bytes"], row["status"])
        if row["fct_ps"] is not None:
            assert event.until == row["arrival_ps"] + row["fct_ps"]
            assert event.args["slowdown"] == pytest.approx(row["fct_ps"] / row["ideal_ps"])


def into_name(row: Mapping[str, Any]) -> str:
    return f"flow {row['flow']} from h{row['src']}"


def check_links(run: rm.Run, timeline: Timeline) -> None:
    """Links carry one packet at a time, and as many bytes as the summary counts."""
    busy: Counter[str] = Counter()
    carried: Counter[str] = Counter()
    for row in timeline.links:
        for before, after in pairwise(row.slices):
            assert before.at < before.until <= after.at < after.until
        busy[tier(row)] += sum(event.until - event.at for event in row.slices)
        carried[tier(row)] += sum(event.args["bytes"] for event in row.slices)
    for of in run.summary["tiers"]:
        name = of["name"]
        assert carried[name] == of["bytes"]
        assert busy[name] * gbps(run)[name] == of["bytes"] * 8 * 1000


def check_queues(run: rm.Run, timeline: Timeline) -> None:
    """The longest queue of each tier is that of the summary, and all are empty at the end."""
    longest: Counter[str] = Counter()
    for row in timeline.of_role(QUEUE):
        assert all(before.at <= after.at for before, after in pairwise(row.values))
        longest[tier(row)] = max(longest[tier(row)], *(event.value for event in row.values))
        assert row.values[-1].value == 0
    for of in run.summary["tiers"]:
        assert longest[of["name"]] == of["queue_max_bytes"]


def check_drops(run: rm.Run, timeline: Timeline) -> int:
    """Drops are counted by tier and reason as in the summary. Returns how many there are."""
    drops: dict[str, Counter[str]] = defaultdict(Counter)
    for row in timeline.of_role(PORT):
        for event in row.instants:
            if event.name == "drop":
                drops[tier(row)][event.args["reason"]] += 1
    for of in run.summary["tiers"]:
        assert drops[of["name"]] == of["drops"]
    return sum(sum(by_reason.values()) for by_reason in drops.values())


def check_paths(run: rm.Run, timeline: Timeline) -> None:
    """Arrows join the links of a packet's way; those of packets that arrived are the paths."""
    hops: dict[int, list[tuple[int, str, Event]]] = defaultdict(list)
    for row in timeline.links:
        for event in row.slices:
            [arrow] = event.arrows
            hops[arrow].append((event.at, row.name, event))
    taken: Counter[tuple[int, str]] = Counter()
    carried: Counter[tuple[int, str]] = Counter()
    for row in timeline.named("data received"):
        for event in row.instants:
            assert event.is_last
            way = [name for _, name, _ in sorted(hops[event.arrows[0]], key=lambda hop: hop[0])]
            assert all(a.split(">")[1] == b.split(">")[0] for a, b in pairwise(way))
            assert way[-1].endswith(f">{row.group}")
            path = ">".join([way[0].split(">")[0], *(name.split(">")[1] for name in way)])
            taken[event.args["flow"], path] += 1
            carried[event.args["flow"], path] += event.args["payload"]
    assert run.paths is not None
    table = run.paths.to_pylist()
    assert {(entry["flow"], entry["path"]): entry["packets"] for entry in table} == taken
    assert {(entry["flow"], entry["path"]): entry["bytes"] for entry in table} == carried
    brought: Counter[int] = Counter()
    for entry in table:
        brought[entry["flow"]] += entry["bytes"]
    for flow in run.flows.to_pylist():
        if flow["status"] == "delivered":
            assert brought[flow["flow"]] >= flow["size_bytes"]


def test_every_flow_is_a_slice_from_its_arrival_to_its_end(
    whole: tuple[rm.Run, Timeline], lossy: tuple[rm.Run, Timeline]
) -> None:
    check_flows(*whole)
    check_flows(*lossy)


def test_busy_time_of_links_is_the_transmission_time_of_their_bytes(
    whole: tuple[rm.Run, Timeline], lossy: tuple[rm.Run, Timeline]
) -> None:
    check_links(*whole)
    check_links(*lossy)


def test_bytes_of_links_equal_those_of_the_series_in_every_interval(
    whole: tuple[rm.Run, Timeline],
) -> None:
    done, timeline = whole
    ports = {of["name"]: of["ports"] for of in done.summary["tiers"]}
    begun: dict[str, list[Event]] = defaultdict(list)
    for row in timeline.links:
        begun[tier(row)] += row.slices
    interval = 10_000_000
    sent: dict[str, Counter[int]] = defaultdict(Counter)
    for name, events in begun.items():
        for event in events:
            # A packet that is sent in two intervals counts in both.
            for number in range(event.at // interval, event.until // interval + 1):
                begin, end = number * interval, (number + 1) * interval
                part = min(event.until, end) - max(event.at, begin)
                sent[name][number] += event.args["bytes"] * part // (event.until - event.at)
    samples = done.series.to_pylist()
    assert samples[0]["time_ps"] == interval
    for sample in samples:
        name = sample["tier"]
        capacity = ports[name] * gbps(done)[name] * interval / 8000
        counted = sent[name][sample["time_ps"] // interval - 1]
        # Bytes are rounded by port.
        assert sample["utilisation"] * capacity == pytest.approx(counted, abs=ports[name] * 200)


def test_queues_and_drops_are_those_of_the_summary(
    whole: tuple[rm.Run, Timeline], lossy: tuple[rm.Run, Timeline]
) -> None:
    check_queues(*whole)
    check_queues(*lossy)
    assert check_drops(*whole) == 0
    assert check_drops(*lossy) > 50


def test_arrows_follow_packets_along_the_paths_of_the_table(
    whole: tuple[rm.Run, Timeline], lossy: tuple[rm.Run, Timeline]
) -> None:
    check_paths(*whole)
    check_paths(*lossy)


def test_events_have_the_kinds_of_their_packets(whole: tuple[rm.Run, Timeline]) -> None:
    kinds = {event.name: event.kind for track in whole[1].links for event in track.slices}
    assert kinds["token"] == kinds["grant"] == kinds["accept"] == "permission"
    assert kinds["notification"] == kinds["request"] == "request"
    assert kinds["data"] == kinds["unscheduled data"] == "data"
    assert kinds["ack"] == "acknowledgement"
    assert kinds["finish"] == "other control"
    assert {*kinds.values()} == {*KINDS}


def test_timelines_without_roles_are_refused(
    whole: tuple[rm.Run, Timeline], tmp_path: Path
) -> None:
    trace = perfetto_trace.Trace()
    trace.ParseFromString((whole[0].path / "run.perfetto-trace").read_bytes())
    for packet in trace.packet:
        if packet.HasField("track_event"):
            packet.track_event.ClearField("category_iids")
    file = tmp_path / "former.perfetto-trace"
    file.write_bytes(trace.SerializeToString())
    with pytest.raises(rm.ResultError, match="a timeline of an earlier version; run the plan"):
        Timeline.load(file)


def test_the_stages_of_dcpim_follow_one_another(whole: tuple[rm.Run, Timeline]) -> None:
    done, timeline = whole
    stage = done.manifest["derived"]["transport.matching-stage-us"] * 1e6
    rows = timeline.named("matching")
    assert len(rows) == RACKS * HOSTS
    for row in rows:
        *all_but_last, last = row.slices
        assert [e.until - e.at for e in all_but_last] == [pytest.approx(stage)] * len(all_but_last)
        assert all(before.until == after.at for before, after in pairwise(row.slices))
        assert [event.name for event in row.slices[:9]] == [
            "request 1",
            "grant 1",
            "accept, request 2",
            "grant 2",
            "accept, request 3",
            "grant 3",
            "accept, request 4",
            "grant 4",
            "accept 4",
        ]
        assert last.until == done.summary["counters"]["end_ps"]
    for row in timeline.named("data phase"):
        assert [event.args["number"] for event in row.slices] == list(range(len(row.slices)))


def test_control_packets_are_instants_at_both_ends(whole: tuple[rm.Run, Timeline]) -> None:
    done, timeline = whole
    sent, received = (
        Counter(e.name for row in timeline.named(f"control {way}") for e in row.instants)
        for way in ("sent", "received")
    )
    assert sent == received
    assert sent["token"] == done.summary["transport"]["tokens_sent"]
    assert sent["request"] > sent["grant"] >= sent["accept"] > 0
    token = next(
        e for row in timeline.named("control sent") for e in row.instants if e.name == "token"
    )
    assert token.args["header"].keys() >= {"seq"}


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_each_transport_has_a_timeline_that_changes_nothing(transport: str, tmp_path: Path) -> None:
    done, timeline = run(plan(transport=transport, flows=50), tmp_path / "with")
    for check in (check_flows, check_links, check_queues, check_drops, check_paths):
        check(done, timeline)
    bare = plan(transport=transport, flows=50).text.split("[run]")[0]
    without = rm.run(rm.Plan(bare), out=tmp_path / "without", quiet=True)
    assert without.timeline_file is None
    assert without.paths is None
    assert without.flows.equals(done.flows)
    assert without.summary == done.summary


def test_two_transports_on_one_network_share_a_timeline(tmp_path: Path) -> None:
    text = plan(transport="cosy", flows=50).text
    below = text.replace('name = "cosy"', 'name = "cosy"\nbest-effort = { name = "dcpim" }')
    _, timeline = run(rm.Plan(below), tmp_path)
    kinds = {e.name for row in timeline.named("control sent") for e in row.instants}
    assert "packet" not in kinds
    assert timeline.named("matching")


def test_a_window_contains_overlapping_events(
    whole: tuple[rm.Run, Timeline], tmp_path: Path
) -> None:
    begin, end = 100_000_000, 150_000_000
    done, timeline = run(plan("timeline-from-us = 100\ntimeline-until-us = 150"), tmp_path)
    assert done.summary == whole[0].summary
    assert done.manifest["timeline"]["from_ps"] == begin
    assert done.manifest["timeline"]["until_ps"] == end

    def known(timeline: Timeline) -> set[tuple[str, str, int, int, str]]:
        return {
            (row.group, row.name.split(" ")[0], event.at, event.until, event.name)
            for row in timeline.tracks
            for event in row.slices
            if event.at < end and event.until >= begin
        }

    assert known(timeline) == known(whole[1])
    assert sum(len(row.slices) for row in timeline.tracks) == len(known(timeline))
    queues = {row.name: row for row in whole[1].of_role(QUEUE)}
    for row in timeline.of_role(QUEUE):
        inside = [e for e in queues[row.name].values if begin <= e.at < end]
        before = [e.value for e in queues[row.name].values if e.at < begin]
        assert row.values == [Event(begin, value=before[-1]), *inside]


def test_a_timeline_that_is_full_ends_there(whole: tuple[rm.Run, Timeline], tmp_path: Path) -> None:
    done, timeline = run(plan("timeline-events = 20000"), tmp_path)
    report = done.manifest["timeline"]
    assert report["limit_reached"] is True
    assert whole[0].manifest["timeline"]["limit_reached"] is False
    assert 20_000 <= report["events"] < 22_000
    until = report["until_ps"]
    assert 0 < until < done.summary["counters"]["end_ps"]

    def received(timeline: Timeline) -> list[tuple[str, list[int]]]:
        rows = timeline.named("data received")
        return [(row.group, [e.at for e in row.instants if e.at < until]) for row in rows]

    assert received(timeline) == received(whole[1])[: len(received(timeline))]


def test_unselected_nodes_are_hidden(tmp_path: Path) -> None:
    _, timeline = run(plan("timeline-hosts = [1, 5]\ntimeline-switches = [0]"), tmp_path)
    groups = {row.group for row in timeline.tracks if row.name}
    assert groups == {"h1", "h5", "s0"}
    flows = [*timeline.flows("out").values(), *timeline.flows("in").values()]
    assert {group for group, _ in flows} == {"h1", "h5"}


def test_outages_are_events_of_the_network_and_of_both_ports(tmp_path: Path) -> None:
    faults = (
        "[faults]\nrerouting-us = 10\n"
        "outages = [{ switch = 2, from-us = 100.5, until-us = 200.25 }]\n"
    )
    done, timeline = run(plan(more=faults), tmp_path)
    [outages] = timeline.named("outages")
    expected = [
        (at, f"s{tor}-s2 {what}")
        for at, what in ((100_500_000, "down"), (200_250_000, "up"))
        for tor in range(RACKS)
    ]
    assert [(event.at, event.name) for event in outages.instants] == expected
    at_ports = {
        row.name.split(" ")[0]: [(e.at, e.name) for e in row.instants if e.name != "drop"]
        for row in timeline.of_role(PORT)
    }
    events = [(100_500_000, "down"), (200_250_000, "up")]
    assert at_ports == {
        name: events for tor in range(RACKS) for name in (f"s{tor}>s2", f"s2>s{tor}")
    }
    assert check_drops(done, timeline) > 0


def test_hosts_with_two_links_have_a_track_for_each(tmp_path: Path) -> None:
    text = plan(flows=50).text.replace("spines = 2", "spines = 2\nrails = 2")
    done, timeline = run(rm.Plan(text), tmp_path)
    check_flows(done, timeline)
    check_paths(done, timeline)
    uplinks = {row.name for row in timeline.links if row.group == "h0"}
    assert uplinks == {"h0>s0", "h0>s1"}
