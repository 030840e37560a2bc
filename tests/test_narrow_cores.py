"""Cores much slower than hosts, and peers that are reached by some links of a host only.

Data and answers wait for long in a slow core, so timers must follow from a host's share of it.
"""

from pathlib import Path
from typing import Any

import pytest

import rampmeter as rm

from .commands import ok

DRAIN: dict[str, Any] = {"sample-us": 0, "drain-us": 2e6}


def dumbbell(hosts: int, access_gbps: float, core_gbps: float) -> dict[str, Any]:
    """Returns two switches with as many hosts each, and one link between them."""
    rates = {"access-gbps": access_gbps, "core-gbps": core_gbps}
    return {"kind": "dumbbell", "hosts-per-side": hosts, **rates}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("transport", ["dcpim", "phost", "homa", "homa-aeolus", "sird", "ndp"])
@pytest.mark.parametrize(("hosts", "access_gbps", "core_gbps"), [(8, 10.0, 1.0), (8, 1.0, 0.1)])
def test_all_to_all_ends_over_a_core_that_is_slower_than_a_host(
    transport: str, hosts: int, access_gbps: float, core_gbps: float
) -> None:
    done = rm.run(
        topology=dumbbell(hosts, access_gbps, core_gbps),
        transport={"name": transport},
        workload={
            **{"pattern": "collective", "operation": "all-to-all"},
            "vector-bytes": int(400_000 * access_gbps),
        },
        run=DRAIN,
        quiet=True,
    )
    assert set(done.flows["status"].to_pylist()) == {"delivered"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("transport", ["homa", "sird"])
@pytest.mark.parametrize(
    ("hosts", "access_gbps", "core_gbps"),
    [(8, 10.0, 1.0), (8, 25.0, 1.0), (1, 10.0, 0.1), (1, 100.0, 0.2)],
)
def test_few_packets_queued_in_a_slow_core_are_retransmitted(
    transport: str, hosts: int, access_gbps: float, core_gbps: float, tmp_path: Path
) -> None:
    trace = tmp_path / "flows.csv"
    pairs = [(host, host + hosts) for host in range(hosts)]
    rows = [f"0,{a},{b},1000000" for pair in pairs for a, b in (pair, pair[::-1])]
    trace.write_text("\n".join(["arrival_us,src,dst,size_bytes", *rows]))
    done = rm.run(
        topology=dumbbell(hosts, access_gbps, core_gbps),
        transport={"name": transport},
        workload={"pattern": "trace", "file": str(trace)},
        run=DRAIN,
        quiet=True,
    )
    assert set(done.flows["status"].to_pylist()) == {"delivered"}
    again = int(done.flows["retransmitted_bytes"].to_numpy().sum())
    assert again < 0.2 * 2 * hosts * 1_000_000


@pytest.mark.filterwarnings("ignore")
def test_flows_of_the_ideal_share_the_links_that_lead_to_their_peers(tmp_path: Path) -> None:
    """A server has a link to each of two switches; two peers are at one of them."""
    ends = [("h0", "s0"), ("h0", "s1"), ("h1", "s0"), ("h1", "s1"), ("h2", "s0"), ("h3", "s0")]
    topology: dict[str, Any] = {
        "kind": "links",
        **{"hosts": 4, "switches": 2},
        "links": [
            *({"between": list(pair), "gbps": 100.0} for pair in ends),
            {"between": ["s0", "s1"], "gbps": 400.0},
        ],
    }
    trace = tmp_path / "flows.csv"
    trace.write_text("arrival_us,src,dst,size_bytes\n0,0,2,10000000\n0,0,3,10000000\n")
    done = rm.run(
        topology=topology,
        transport={"name": "ideal"},
        workload={"pattern": "trace", "file": str(trace)},
        run=DRAIN,
        quiet=True,
    )
    first, second = sorted(done.flows["fct_ps"].to_numpy())
    assert second == pytest.approx(2 * first, rel=0.01)


@pytest.mark.parametrize("gbps", [(100, 1, 1, 1), (100, 100, 1, 1), (100, 100, 100, 0.5)])
def test_ndp_runs_with_jumbo_frames_between_hosts_of_several_rates(
    gbps: tuple[float, ...], tmp_path: Path
) -> None:
    topology: dict[str, Any] = {
        "kind": "links",
        **{"hosts": 4, "switches": 1},
        "links": [{"between": [f"h{host}", "s0"], "gbps": rate} for host, rate in enumerate(gbps)],
    }
    trace = tmp_path / "flows.csv"
    trace.write_text("arrival_us,src,dst,size_bytes\n0,0,3,1000000\n")
    done = rm.run(
        topology=topology,
        transport={"name": "ndp", "payload-bytes": 8940},
        workload={"pattern": "trace", "file": str(trace)},
        run=DRAIN,
        quiet=True,
    )
    slowdown = done.flows["fct_ps"].to_numpy() / done.flows["ideal_ps"].to_numpy()
    assert float(slowdown.max()) < 1.1


LONG = """
topology.kind = "links"
topology.hosts = 2
topology.switches = 2
topology.links = [
    {{ between = ["h0", "s0"], gbps = {fast_gbps} }},
    {{ between = ["h1", "s1"], gbps = 100 }},
    {{ between = ["s0", "s1"], gbps = 400, propagation-ns = 5e7 }},
]
transport.name = "{transport}"
workload = {{ pattern = "all-to-all", sizes = "imc10", load = 0.1, flows = 10 }}
"""


@pytest.mark.parametrize("transport", ["dcpim", "phost", "pfabric", "fastpass", "dctcp", "sird"])
@pytest.mark.parametrize("fast_gbps", [100, 400])
def test_plans_of_long_delays_are_plans_again(
    transport: str, fast_gbps: float, tmp_path: Path
) -> None:
    """Memory of ports that follows from long delays has the limit of memory in plans."""
    plan, resolved = tmp_path / "plan.toml", tmp_path / "resolved.toml"
    plan.write_text(LONG.format(transport=transport, fast_gbps=fast_gbps))
    outputs = []
    for file in (plan, resolved):
        done = ok("check", file)
        outputs.append([line for line in done.stdout.splitlines() if not line.startswith("#")])
        resolved.write_text(done.stdout)
    assert outputs[0] == outputs[1]
