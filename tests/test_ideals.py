"""Ideals are bounds from below in every network: no flow of any transport is faster."""

import random
import warnings
from pathlib import Path
from typing import Any

import pytest

import rampmeter as rm

from . import networks

RATES = (10.0, 25.0, 40.0, 100.0)


def network(seed: int) -> dict[str, Any]:
    """A random network: hosts with one or two links of several rates, switches in a random tree
    with further links, some of them parallel."""
    draw = random.Random(seed)
    n_hosts, n_switches = draw.randint(3, 8), draw.randint(1, 6)

    def link(a: str, b: str) -> dict[str, Any]:
        delay = draw.choice((0, 100, 650, 5000))
        return {"between": [a, b], "gbps": draw.choice(RATES), "propagation-ns": delay}

    joined = [link(f"s{n}", f"s{draw.randrange(n)}") for n in range(1, n_switches)]
    for _ in range(draw.randint(0, n_switches)):
        if n_switches > 1:
            a, b = draw.sample(range(n_switches), 2)
            joined.append(link(f"s{a}", f"s{b}"))
    # The first switches have hosts, so that no switch is without a way to one.
    homes = [draw.randrange(n_switches) for _ in range(n_hosts)]
    homes[0] = 0
    access = [link(f"h{n}", f"s{home}") for n, home in enumerate(homes)]
    several = draw.random() < 0.4
    for n, home in enumerate(homes):
        others = [s for s in range(n_switches) if s != home]
        if several and others and draw.random() < 0.6:
            access.append(link(f"h{n}", f"s{draw.choice(others)}"))
    return {
        "kind": "links",
        "hosts": n_hosts,
        "switches": n_switches,
        "links": access + joined,
        "switch-ns": draw.choice((0.0, 450.0)),
        "host-ns": draw.choice((0.0, 450.0)),
    }


def flows(seed: int, hosts: int, count: int, spacing_us: float) -> str:
    """Returns a trace of flows of all sizes between random pairs."""
    draw = random.Random(-seed)
    rows = ["arrival_us,src,dst,size_bytes"]
    for n in range(count):
        src, dst = draw.sample(range(hosts), 2)
        size = int(10 ** draw.uniform(0, 5.5))
        rows.append(f"{n * spacing_us},{src},{dst},{size}")
    return "\n".join(rows) + "\n"


def slowdowns(
    transport: str, topology: dict[str, Any], trace: str, folder: Any
) -> tuple[list[float], rm.Run] | None:
    """Slowdowns by both ideals, or `None` if the transport refuses the network. Acknowledgements of
    Fastpod may pass its arbiter, on a path with more hops that takes less time."""
    file = folder / "flows.csv"
    file.write_text(trace)
    warnings.simplefilter("ignore")
    try:
        run = rm.run(
            topology=topology,
            transport={"name": transport},
            workload={"pattern": "trace", "file": str(file)},
            run={"drain-us": 10_000_000.0},
            seed=1,
            quiet=True,
        )
    except rm.PlanError:
        return None
    of = []
    pairs = [("fct_ps", "ideal_ps"), ("acked_ps", "acked_ideal_ps")]
    for took, ideal in pairs[:1] if transport == "fastpod" else pairs:
        pair = zip(run.flows[took].to_pylist(), run.flows[ideal].to_pylist(), strict=True)
        of += [took_ps / ideal_ps for took_ps, ideal_ps in pair if took_ps is not None]
    return of, run


@pytest.mark.parametrize("transport", networks.TRANSPORTS)
def test_no_flow_is_faster_than_its_ideal(transport: str, tmp_path: Any) -> None:
    accepted = 0
    for seed in range(12):
        topology = network(seed)
        trace = flows(seed, topology["hosts"], 60, spacing_us=20.0)
        outcome = slowdowns(transport, topology, trace, tmp_path)
        if outcome is not None and outcome[0]:
            accepted += 1
            assert min(outcome[0]) >= 1.0, f"network {seed}"
    assert accepted >= 4


def test_the_transport_ideal_reaches_the_ideal_of_a_lone_flow(tmp_path: Any) -> None:
    for seed in range(12):
        topology = network(seed)
        trace = flows(seed, topology["hosts"], 30, spacing_us=10_000.0)
        outcome = slowdowns("ideal", topology, trace, tmp_path)
        assert outcome is not None
        assert outcome[0] == [1.0] * len(outcome[0])


def test_results_name_ideals_that_are_bounds(tmp_path: Any) -> None:
    """Four spines of 25 Gbit/s carry as much as a host's link of 100, but not to the picosecond."""
    topology: dict[str, Any] = {"kind": "leaf-spine", "racks": 2, "hosts-per-rack": 2, "spines": 4}
    trace = "arrival_us,src,dst,size_bytes\n0,0,2,1460000\n1000,0,1,1460000\n"
    for core, bounds in ((25.0, [True, False]), (400.0, [False, False])):
        topology |= {"access-gbps": 100.0, "core-gbps": core}
        outcome = slowdowns("pfabric", topology, trace, tmp_path)
        assert outcome is not None
        rows = outcome[1].flows.sort_by("arrival_ps")
        assert rows["ideal_is_bound"].to_pylist() == bounds
        # Not those of one link of the core, which needs 480 us.
        assert int(rows["ideal_ps"][0].as_py()) < 130_000_000


@pytest.mark.parametrize("rails", [1, 2])
def test_a_message_keeps_its_interface_with_equal_cost_multipath(rails: int) -> None:
    """HPCC's receivers drop packets out of order, and nothing else drops packets."""
    warnings.simplefilter("ignore")
    run = rm.run(
        topology={
            "kind": "leaf-spine",
            "racks": 2,
            "hosts-per-rack": 8,
            "spines": 2,
            "rails": rails,
        },
        transport={"name": "hpcc"},
        workload={"pattern": "all-to-all", "sizes": "web-search", "load": 0.4, "flows": 400},
        fabric={"spray": "ecmp"},
        seed=1,
        quiet=True,
    )
    counts = run.summary["transport"]
    assert counts["path_changes"] == counts["out_of_order_drops"] == counts["timeouts"] == 0
    assert run.summary["flows"]["delivered"] == 400


def test_hosts_reach_one_another_over_any_of_their_interfaces(tmp_path: Any) -> None:
    """Two servers with a scale-up switch each, and a rail that joins them."""
    ends = [("h0", "s0"), ("h1", "s0"), ("h2", "s1"), ("h3", "s1")]
    fast = [{"between": [*pair], "gbps": 2880.0, "propagation-ns": 25} for pair in ends]
    slow = [{"between": [f"h{n}", "s2"], "gbps": 400.0, "propagation-ns": 500} for n in range(4)]
    topology: dict[str, Any] = {"kind": "links", "hosts": 4, "switches": 3, "links": fast + slow}
    trace = "arrival_us,src,dst,size_bytes\n0,0,1,10000000\n1000,0,3,10000000\n"
    outcome = slowdowns("homa", topology, trace, tmp_path)
    assert outcome is not None
    took = outcome[1].flows.sort_by("arrival_ps")["fct_ps"].to_pylist()
    # 10 274 000 bytes at 2880 and 400 Gbit/s together, and at 400.
    assert took[0] == pytest.approx(25.06e6 + 2e6, rel=0.02)
    assert took[1] == pytest.approx(205.5e6 + 2e6, rel=0.02)
    with pytest.raises(rm.PlanError, match="got none between h0 and h2"):
        rm.run(
            topology=topology | {"switches": 2, "links": fast},
            transport={"name": "homa"},
            workload={"pattern": "trace", "file": str(tmp_path / "flows.csv")},
            quiet=True,
        )


def test_packets_are_spread_over_links_by_their_rates() -> None:
    """Three links of 100 and one of 10 Gbit/s carry half their capacity without long queues."""
    access = [
        {"between": [f"h{n}", f"s{n // 4}"], "gbps": 100.0, "propagation-ns": 1000}
        for n in range(8)
    ]
    rates = (100.0, 100.0, 100.0, 10.0)
    core = [{"between": ["s0", "s1"], "gbps": gbps, "propagation-ns": 1000} for gbps in rates]
    topology: dict[str, Any] = {"kind": "links", "hosts": 8, "switches": 2, "links": access + core}
    warnings.simplefilter("ignore")
    run = rm.run(
        topology=topology,
        transport={"name": "ndp"},
        workload={
            "pattern": "rack-local",
            "hosts-per-rack": 4,
            "sizes": {"fixed": 1_000_000},
            "local-load": 0.0,
            "remote-load": 0.4,
            "flows": 500,
        },
        seed=1,
        quiet=True,
    )
    assert run.summary["slowdown"]["delivered"]["overall"]["mean"] < 3.0
    assert any("have rates from 10 to 100 Gbit/s" in line for line in run.summary["warnings"])


@pytest.mark.parametrize("transport", networks.TRANSPORTS)
def test_lone_flows_of_hosts_of_two_speeds(transport: str, tmp_path: Any) -> None:
    """Hosts of 100 and 25 Gbit/s: flows between all speeds are close to their ideals."""
    speeds = (100.0, 100.0, 25.0, 25.0)
    links = [
        {"between": [f"h{n}", "s0"], "gbps": gbps, "propagation-ns": 1000}
        for n, gbps in enumerate(speeds)
    ]
    topology: dict[str, Any] = {"kind": "links", "hosts": 4, "switches": 1, "links": links}
    pairs = ((0, 1), (0, 2), (2, 0), (2, 3))
    rows = [f"{10_000 * n},{src},{dst},10000000" for n, (src, dst) in enumerate(pairs)]
    trace = "\n".join(["arrival_us,src,dst,size_bytes", *rows]) + "\n"
    outcome = slowdowns(transport, topology, trace, tmp_path)
    assert outcome is not None
    is_warned = any("as fast as the slowest" in line for line in outcome[1].summary["warnings"])
    assert is_warned == (transport in networks.SLOTTED)
    if not is_warned:
        of = outcome[0][: len(pairs)]
        # Windows of dcPIM's tokens are whole packets of short phases.
        assert max(of) < (1.15 if transport == "dcpim" else 1.1), of


@pytest.mark.parametrize("gbps", [0.01, 1.0, 10.0])
@pytest.mark.parametrize("transport", networks.TRANSPORTS)
def test_lone_flows_between_slow_links(transport: str, gbps: float, tmp_path: Any) -> None:
    """Packets longer than a round trip of small packets do not slow a long flow."""
    topology = {"kind": "star", "hosts": 4, "access-gbps": gbps, "propagation-ns": 50}
    trace = "arrival_us,src,dst,size_bytes\n0,0,1,2000000\n"
    outcome = slowdowns(transport, topology, trace, tmp_path)
    assert outcome is not None
    # Slots of cosy and Fastpass have a margin for control packets.
    assert outcome[0][0] < 1.1, outcome[0]


def test_ideals_through_shapers_count_their_bursts(tmp_path: Path) -> None:
    """Ten packets at once, of which links that were idle carry the burst in no time."""
    trace = tmp_path / "one.csv"
    trace.write_text("arrival_us,src,dst,size_bytes\n10,0,1,14600\n")
    run = rm.run(
        topology=rm.star(4),
        transport=rm.DcPim(),
        workload=rm.Trace(file=trace),
        fabric=rm.Fabric(switching="shaped", shaper_burst_us="1.2us"),
        quiet=True,
    )
    [flow] = run.flows.select(["fct_ps", "ideal_ps", "ideal_is_bound"]).to_pylist()
    # A packet on the last link, and 650 ns behind each of two links.
    assert flow == {"fct_ps": 1_420_000, "ideal_ps": 1_420_000, "ideal_is_bound": False}
