"""Causes at links: packets in front, polls of senders, and several links of a host."""

from pathlib import Path

import pytest

import rampmeter as rm
from rampmeter.results.run import blame_of

from .test_blame import BUSY, PLAN, PRESETS

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
