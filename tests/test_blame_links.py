"""Causes at links: packets in front, polls of senders, and several links of a host."""

from pathlib import Path

import pytest

import rampmeter as rm
from rampmeter.results.run import blame_of

from .causes import BUSY, PLAN, PRESETS

RACKS = {"kind": "leaf-spine", "racks": 2, "hosts-per-rack": 3, "spines": 2}


def test_packets_in_front_name_their_flows_next_to_control_packets() -> None:
    plan = rm.Plan(PLAN.format(name="fastpass", preset="paper", workload=BUSY.format(flows=60)))
    plan = plan.with_(("topology", {**RACKS, "spines": 1, "core-gbps": 100.0}))
    blame = blame_of(rm.run(plan, quiet=True))
    rows = [row for row in blame.blockers.to_pylist() if row["cause"] == "queueing"]
    of_control = sum(row["time_ps"] for row in rows if row["blocker"] is None)
    assert 0 < of_control < 0.1 * sum(row["time_ps"] for row in rows)


def test_a_poll_that_wakes_flows_gives_permission() -> None:
    plan = rm.Plan(PLAN.format(name="hpcc", preset="paper", workload=BUSY.format(flows=300)))
    settings = {"blame": True, "paranoid": True}
    run = rm.run(plan.with_(("topology", RACKS), ("seed", 2), ("run", settings)), quiet=True)
    assert run.status == "finished"


@pytest.mark.parametrize("spray", ["ecmp", "source-round-robin"])
@pytest.mark.parametrize("name", ["tcp", "ndp", "homa", "hpcc"])
def test_own_packets_on_any_link_of_a_host_are_serialisation(
    name: str, spray: str, tmp_path: Path
) -> None:
    trace = tmp_path / "lone.csv"
    trace.write_text("arrival_ps,src,dst,size_bytes\n1000,0,3,300000\n")
    workload = f'pattern = "trace"\nfile = "{trace}"\n'
    preset = next(of for known, of in PRESETS if known == name)
    plan = rm.Plan(PLAN.format(name=name, preset=preset, workload=workload))
    topology = {**RACKS, "hosts-per-rack": 2, "spines": 2, "rails": 2}
    plan = plan.with_(("topology", topology), ("fabric", {"spray": spray}))
    assert "sender-link" not in {cause for (cause,) in blame_of(rm.run(plan, quiet=True)).times()}


CUT_THROUGH = {"switching": "cut-through", "shared-buffer-bytes": 400_000}
PFC = {"pfc": {"xoff-bytes": 20_000}}
LONE = "arrival_ps,src,dst,size_bytes\n1000,0,3,1000\n"


def times_of(name: str, workload: str, *parts: tuple[str, object]) -> dict[str, float]:
    """Returns the sum of the times of all flows by cause."""
    preset = next(of for known, of in PRESETS if known == name)
    plan = rm.Plan(PLAN.format(name=name, preset=preset, workload=workload)).with_(*parts)
    times = blame_of(rm.run(plan, quiet=True)).times()
    return {cause: of_flows.sum() for (cause,), of_flows in times.items()}


def lone(tmp_path: Path) -> str:
    """Returns the workload of a single packet."""
    trace = tmp_path / "lone.csv"
    trace.write_text(LONE)
    return f'pattern = "trace"\nfile = "{trace}"\n'


def test_waits_at_paused_ports_of_cut_through_switches_are_pauses() -> None:
    topology = {**RACKS, "core-gbps": 100.0}
    fabric = {**CUT_THROUGH, **PFC}
    times = times_of("tcp", BUSY.format(flows=300), ("topology", topology), ("fabric", fabric))
    assert times["paused"] > 0
    assert "cut-through" not in times


@pytest.mark.parametrize("pfc", [{}, PFC])
def test_a_packet_waits_for_its_tail_in_front_of_a_faster_link(
    pfc: dict[str, object], tmp_path: Path
) -> None:
    topology = {**RACKS, "access-gbps": 10.0, "core-gbps": 40.0}
    fabric = {**CUT_THROUGH, "cut-through-bytes": 64, **pfc}
    times = times_of("tcp", lone(tmp_path), ("topology", topology), ("fabric", fabric))
    # 800 and 200 ps a byte. The head is put on three links, and all on the last.
    wire = (times["serialisation"] - 64 * (800 + 200 + 200)) / 800
    assert wire > 1000
    assert times["cut-through"] == (wire - 64) * 800 - wire * 200


@pytest.mark.parametrize("name", ["dcpim", "hpcc", "ndp"])
def test_delays_by_faults_are_propagation(name: str, tmp_path: Path) -> None:
    without = times_of(name, lone(tmp_path), ("topology", RACKS))
    faults = {"reorder": 1.0, "duplicate": 0.5, "delay-us": 2.0}
    late = times_of(name, lone(tmp_path), ("topology", RACKS), ("faults", faults))
    assert late["serialisation"] == without["serialisation"]
    assert late["propagation"] > without["propagation"]


def test_waits_behind_own_packets_before_a_gap_are_serialisation(tmp_path: Path) -> None:
    # The second flow uses the slow link after it was idle, while the last packet of the first one
    # is on its way from there.
    trace = tmp_path / "two.csv"
    trace.write_text("arrival_ps,src,dst,size_bytes\n1000,0,3,9000\n15000000,1,3,1000\n")
    topology = {**RACKS, "spines": 1, "core-gbps": 10.0, "propagation-ns": 5000.0}
    workload = f'pattern = "trace"\nfile = "{trace}"\n'
    times = times_of("tcp", workload, ("topology", topology))
    assert "queueing" not in times
