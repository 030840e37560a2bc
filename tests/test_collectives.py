"""Collective operations: in plans, in results, and between real hosts."""

import re
from pathlib import Path
from typing import Any

import pytest

import rampmeter as rm
from rampmeter.plan.plan import Plan
from rampmeter.results.run import Run
from rampmeter.testbed.experiment import run_testbed
from rampmeter.text.toml import TomlValue

from .commands import call, ok
from .namespaces import needs_namespaces

PLAN = """
seed = 1
[topology]
kind = "leaf-spine"
racks = 2
hosts-per-rack = 4
spines = 2
access-gbps = 0.05
core-gbps = 0.2
[transport]
name = "phost"
[workload]
pattern = "collective"
operation = "all-reduce"
algorithm = "ring"
vector-bytes = 160000
compute-us = 100.0
rounds = 2
pause-us = 2000.0
"""

STEPS, HOSTS = 14, 8
"""Steps of a round, in each of which every host sends once."""


def row(run: Run, number: int) -> dict[str, Any]:
    """Returns a round of the only collective of a run."""
    rounds: list[dict[str, Any]] = run.summary["collectives"]
    return rounds[number]


def test_a_collective_has_its_time_and_bandwidths_in_the_summary(tmp_path: Path) -> None:
    run = rm.run(
        topology=rm.leaf_spine(2, 4, 2),
        transport=rm.Ideal(),
        workload=rm.collective("all-gather", 8_000_000, rounds=2),
        out=tmp_path / "out",
    )
    for number in (0, 1):
        of = row(run, number)
        assert (of["operation"], of["algorithm"], of["flows"]) == ("all-gather", "ring", 56)
        # Seven steps of a megabyte each, 1040 or 1500 bytes a packet at 100 Gbit/s.
        assert of["completion_ps"] == pytest.approx(7 * 8e6 * 10 * 1500 / 1460, rel=0.05)
        # Hosts begin their second round one after the other, while others are in their first.
        assert 1.0 <= of["lower_bound_ratio"] < 1.005
        gbps = 8_000_000 * 8e3 / of["completion_ps"]
        assert of["algorithm_gbps"] == pytest.approx(gbps)
        assert of["bus_gbps"] == pytest.approx(gbps * 7 / 8)


def test_the_command_prints_a_table_of_rounds(tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    file.write_text(PLAN)
    result = ok("run", file, "--out", tmp_path / "out")
    assert "all-reduce, ring, hosts 0 to 7" in result.output
    assert len(re.findall(r"^ [01] +\S+ kB +112 +112 ", result.output, re.MULTILINE)) == 2


def test_hosts_of_a_collective_have_steps_lists_and_groups() -> None:
    strided = rm.collective("all-reduce", 1_000, hosts=range(0, 8, 2)).table()
    assert strided["hosts"] == {"first": 0, "count": 4, "step": 2}
    named = rm.collective("all-reduce", 1_000, hosts=["h3", 1], group_size=2).table()
    assert (named["hosts"], named["group-size"]) == (["h3", 1], 2)


def moments(out: Path, host: int) -> dict[tuple[str, int], int]:
    """Returns the times of a host's events by event and flow, in picoseconds."""
    lines = (out / f"nodes/{host}.csv").read_text().splitlines()[1:]
    fields = [line.split(",") for line in lines]
    return {(what, int(flow)): int(at) for what, flow, at in fields}


@needs_namespaces
@pytest.mark.parametrize("over", ["rampd", "tcp"])
def test_a_ring_between_hosts_waits_as_in_the_simulator(over: str, tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    file.write_text(PLAN)
    out = tmp_path / "out"
    argv = ["testbed", str(file), "--arms", f"{over},sim", "--out", str(out), "--quiet"]
    ok(*argv)
    for arm in (over, "sim"):
        run = Run(out / arm)
        assert run.summary["status"] == "finished"
        for number in (0, 1):
            of = row(run, number)
            assert of["delivered"] == of["flows"] == STEPS * HOSTS
            assert of["lower_bound_ratio"] >= 1.0
            assert of["algorithm_gbps"] == pytest.approx(160_000 * 8e3 / of["completion_ps"])
        second = row(run, 0)["start_ps"] + row(run, 0)["completion_ps"]
        assert row(run, 1)["start_ps"] > 2e9
        assert row(run, 1)["start_ps"] < second + 2e9 + 1e11
    for host in range(HOSTS):
        at = moments(out / over, host)
        for step in range(1, STEPS):
            # A host sends in each step the data that it received in the previous one.
            received = at["delivered", (step - 1) * HOSTS + (host - 1) % HOSTS]
            assert at["submitted", step * HOSTS + host] >= received + 100_000_000


@needs_namespaces
def test_tenants_of_a_trace_reach_the_hosts(tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text(
        "arrival_us,src,dst,size_bytes,tenant,after\n0,0,5,9000,2,\n,5,0,8000,1,0\n"
    )
    start = PLAN.index('pattern = "collective"')
    text = PLAN[:start] + 'pattern = "trace"\nfile = "trace.csv"\n'
    run = run_testbed(Plan(text, tmp_path), tmp_path / "out")
    flows = run.flows.sort_by("flow")
    assert flows["tenant"].to_pylist() == [2, 1]
    assert flows["status"].to_pylist() == ["delivered", "delivered"]
    first, second = flows["arrival_ps"].to_pylist()
    assert second >= first + flows["fct_ps"][0].as_py() * 0.9
    table = (tmp_path / "out/hosts.csv").read_text().splitlines()
    assert table[0] == "flow,arrival_ps,src,dst,size_bytes,tenant,after,compute_ps"
    assert table[2] == "1,0,5,0,8000,1,0,0"


def test_events_grow_with_the_flows_of_a_trace(tmp_path: Path) -> None:
    """Unpaused flows and their replies cost the same number of events each."""
    events = []
    for n in (200, 800):
        rows = [f"{i},{10 * i},{i % 7},7,1000,," for i in range(n)]
        rows += [f"{n + i},,7,{i % 7},1000,{i},1" for i in range(n)]
        trace = tmp_path / f"{n}.csv"
        trace.write_text(
            "flow,arrival_us,src,dst,size_bytes,after,compute_us\n" + "\n".join(rows) + "\n"
        )
        file = tmp_path / f"{n}.toml"
        file.write_text(
            f'[topology]\nkind = "star"\nhosts = 8\n[transport]\nname = "pfabric"\n'
            f'[workload]\npattern = "trace"\nfile = "{trace}"\n'
        )
        done = rm.run(Plan.load(file), out=tmp_path / f"r{n}", quiet=True)
        assert done.status == "finished"
        events.append(done.summary["counters"]["events"] / n)
    assert events[1] < 1.2 * events[0]


def test_phases_and_calls_are_printed_with_their_hosts_and_latencies(tmp_path: Path) -> None:
    part: dict[str, TomlValue] = {
        "pattern": "collective",
        "operation": "all-gather",
        "vector-bytes": 4000,
    }
    workload = rm.Phases(
        parts=[
            {**part, "group-size": 2, "group-step": 4},
            {**part, "hosts": [0, 5, 2]},
            rm.Rpc(requests={"fixed": 10}, responses={"fixed": 2000}, calls=3, clients=[0]),
        ]
    )
    plan = rm.Plan.of(topology=rm.star(8), transport=rm.Homa(), workload=workload)
    (tmp_path / "plan.toml").write_text(plan.text)
    arguments = ["run", str(tmp_path / "plan.toml"), "--out", str(tmp_path / "out"), "--quiet"]
    output = call(*arguments).output
    assert "all-gather, ring, hosts 0 to 4 by 4" in output
    assert "all-gather, ring, 3 hosts from 0" in output
    assert "Latency of calls, µs" in output
    assert re.search(r"^ 2 +3 +3 ", output, re.MULTILINE)
