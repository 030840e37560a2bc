"""Causes of flows that wait for others: releases, chains, and `rampmeter why --last`."""

import json
from pathlib import Path

import pytest

import rampmeter as rm
from rampmeter.results.chains import COMPUTATION, CONFIRMATION, Chain
from rampmeter.results.run import blame_of

from .causes import PLAN, PRESETS
from .commands import error_line, ok

RING = """\
pattern = "collective"
operation = "all-reduce"
algorithm = "ring"
vector-bytes = 800_000
compute-us = 3.0
"""
CHAIN = """\
arrival_us,src,dst,size_bytes,flow,after,compute_us
0,0,1,20000,0,,0
0,0,2,30000,1,0,0
0,2,3,40000,2,1,1.5
1,4,5,20000,3,,0
"""


def run_of(name: str, workload: str) -> rm.Run:
    preset = next(of for known, of in PRESETS if known == name)
    return rm.run(rm.Plan(PLAN.format(name=name, preset=preset, workload=workload)), quiet=True)


def chain_of(run: rm.Run, flow: int) -> Chain:
    found = blame_of(run).chain(flow)
    assert found is not None
    return found


@pytest.fixture
def chained(tmp_path: Path) -> str:
    """Returns the workload of a trace in which three flows wait for each other."""
    trace = tmp_path / "chain.csv"
    trace.write_text(CHAIN)
    return f'pattern = "trace"\nfile = "{trace}"\n'


@pytest.mark.parametrize("name", ["dcpim", "homa", "ndp", "tcp"])
def test_the_chain_of_the_last_flow_is_the_makespan(name: str) -> None:
    run = run_of(name, RING)
    blame = blame_of(run)
    last = blame.last()
    chain = chain_of(run, last.flow)
    (collective,) = run.summary["collectives"]
    assert chain.time_us == pytest.approx(collective["completion_ps"] / 1e6, abs=1e-6)
    assert sum(chain.parts.values()) == pytest.approx(chain.time_us, abs=1e-6)
    # A ring of 8 hosts has 14 steps, and each host computes before all but the first.
    assert len(chain.flows) == 14
    assert chain.parts[COMPUTATION, "", ""] == pytest.approx(13 * 3.0)
    assert (CONFIRMATION, "", "") not in chain.parts
    for before, after in zip(chain.flows, chain.flows[1:], strict=False):
        assert blame.flow(before).dst == blame.flow(after).src


def test_a_sender_waits_for_the_confirmation_of_its_own_flow(chained: str) -> None:
    run = run_of("ndp", chained)
    blame = blame_of(run)
    releases = [blame.flow(number).release for number in range(4)]
    assert releases[0] is releases[3] is None
    second, third = releases[1], releases[2]
    assert second is not None
    assert third is not None
    assert (second.after, second.computation_us) == (0, 0.0)
    assert second.confirmation_us > 0.5
    assert (third.after, third.confirmation_us) == (1, 0.0)
    assert third.computation_us == pytest.approx(1.5)
    chain = chain_of(run, 2)
    assert chain.flows == (0, 1, 2)
    assert chain.parts[CONFIRMATION, "", ""] == pytest.approx(second.confirmation_us)
    assert sum(chain.parts.values()) == pytest.approx(chain.time_us, abs=1e-6)
    assert blame.chain(3) is None


def test_why_explains_the_chain_of_the_last_flow(chained: str) -> None:
    run = run_of("dcpim", chained)
    text = " ".join(ok("why", run.path, "--last").stdout.split())
    assert (
        "Before, host 2 waited for flow 1 (30 kB from host 0 to host 2), and was notified" in text
    )
    assert "paused or computed for 1.500 us." in text
    assert "It ends a chain of 3 flows that waited for each other since 0.000 us: " in text
    assert "Before" not in ok("why", run.path, "--flow", 3).stdout
    (flow,) = json.loads(ok("why", run.path, "--last", "--json").stdout)["flows"]
    assert flow["release"]["after"] == 1
    assert flow["chain"]["flows"] == [0, 1, 2]
    parts = flow["chain"]["parts"]
    assert sum(part["time_us"] for part in parts) == pytest.approx(flow["chain"]["time_us"])
    message = error_line("why", run.path, "--last", "--slowest", 2)
    assert message.endswith("--last: expected no other choice of flows, got --slowest [plan-value]")
