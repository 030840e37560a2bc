"""Lone messages and load between hosts of 10, 40, 100 and 400 Gbit/s, for every transport."""

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import rampmeter as rm

from . import networks

RATES = (10, 40, 100, 400)
SLOWEST = RATES[:1] * len(RATES)
SIZES = (1_000, 20_000, 100_000, 1_000_000, 20_000_000)
REFUSED = {("cosy", "leaf_spine")}
"""cosy computes the packet memory that ports require: 1.44 MB here, more than ports have."""
BEYOND = {
    # All hosts have the phase of the slowest host, and a warning reports it. A message that is
    # short for a fast pair and not for a slow one waits for the next phase.
    "dcpim": 1.35,
    # A fast sender sends its first window at the rate of its link, and a port to a slow host queues
    # eight packets. The others are trimmed and retransmitted (NDP, section 3).
    "ndp": 2.3,
    # Switches drop unscheduled packets if more than four are queued, as at a port to a slow host.
    # The sender is notified a round trip later (Aeolus).
    "homa-aeolus": 3.5,
    # Tokens for the last packets of a message wait for the clock of the destination.
    "phost": 1.2,
}
"""Maximum slowdown of a lone message over that between hosts of one rate, if it is not 1.1."""

Rates = tuple[int, ...]
Network = Callable[[Rates], networks.Topology]


def star(rates: Rates) -> networks.Topology:
    """Returns two hosts of each rate at one switch."""
    return networks.links(8, 1, [(f"h{n}", "s0", rates[n // 2], 500) for n in range(8)])


def leaf_spine(rates: Rates) -> networks.Topology:
    """Returns two racks with a host of each rate, and two spines."""
    access = [(f"h{n}", f"s{n % 2}", rates[n // 2], 500) for n in range(8)]
    core = [(f"s{rack}", f"s{spine}", 400, 500) for rack in (0, 1) for spine in (2, 3)]
    return networks.links(8, 4, access + core)


def cases(transports: Iterable[str]) -> pytest.MarkDecorator:
    """Returns the mark of a test that runs transports in both networks, without refused pairs."""
    pairs = [
        pytest.param(transport, network, id=f"{transport}-{network.__name__}")
        for transport in transports
        for network in (star, leaf_spine)
        if (transport, network.__name__) not in REFUSED
    ]
    return pytest.mark.parametrize(("transport", "network"), pairs)


@dataclass(frozen=True)
class Lone:
    """Messages that are alone in the network: rows are pairs of hosts, columns are sizes."""

    times_ps: NDArray[np.float64]
    slowdowns: NDArray[np.float64]
    warnings: list[str]


def lone(
    topology: networks.Topology, transport: str, pairs: list[tuple[int, int]], file: Path
) -> Lone:
    """Runs a message of each size between each pair, one at a time; all of them finish."""
    at_us, rows = 1.0, []
    for src, dst in pairs:
        for size in SIZES:
            rows.append(f"{at_us},{src},{dst},{size}")
            # The slowest host sends it five times.
            at_us += 5 * size * 8e-3 / RATES[0] + 1_000
    file.write_text("\n".join(["arrival_us,src,dst,size_bytes", *rows]) + "\n")
    done = networks.run(topology, transport, {"pattern": "trace", "file": str(file)})
    flows = done.flows.sort_by("flow")
    assert flows["status"].to_pylist() == ["delivered"] * len(rows)
    times, ideals = (
        flows[name].to_numpy().astype(np.float64).reshape(len(pairs), len(SIZES))
        for name in ("fct_ps", "ideal_ps")
    )
    assert (times >= ideals).all()
    return Lone(times, times / ideals, done.summary["warnings"])


def between_all_rates() -> list[tuple[int, int]]:
    """Returns a pair of hosts for each pair of rates; those of `leaf_spine` are in two racks."""
    return [(2 * src, 2 * dst + 1) for src in range(len(RATES)) for dst in range(len(RATES))]


@cases(name for name in networks.TRANSPORTS if name not in networks.SLOTTED)
def test_a_lone_message_is_as_fast_as_between_hosts_of_one_rate(
    transport: str, network: Network, tmp_path: Path
) -> None:
    file = tmp_path / "flows.csv"
    mixed = lone(network(RATES), transport, between_all_rates(), file)
    assert not any("as fast as the slowest" in warning for warning in mixed.warnings)
    uniform = np.concatenate(
        [lone(network((rate,) * 4), transport, [(0, 1)], file).slowdowns for rate in RATES]
    )
    # By rate of the source, rate of the destination, and size.
    slowdowns = mixed.slowdowns.reshape(len(RATES), len(RATES), len(SIZES))
    factors = slowdowns / np.maximum(uniform[:, np.newaxis], uniform)
    beyond = [
        (RATES[src], RATES[dst], SIZES[size], factors[src, dst, size])
        for src, dst, size in np.argwhere(factors > BEYOND.get(transport, 1.1))
    ]
    assert not beyond


@cases(networks.SLOTTED)
def test_slots_are_as_long_as_the_slowest_host_requires(
    transport: str, network: Network, tmp_path: Path
) -> None:
    """Messages between fast hosts take as long as between the slowest, with a warning."""
    file = tmp_path / "flows.csv"
    mixed = lone(network(RATES), transport, between_all_rates(), file)
    expected = f"transport.name: {transport} assumes that all hosts are as fast as the slowest"
    assert [expected in warning for warning in mixed.warnings].count(True) == 1
    slowest = lone(network(SLOWEST), transport, [(0, 1)], file)
    assert not any("as fast as the slowest" in warning for warning in slowest.warnings)
    factors = mixed.times_ps / slowest.times_ps
    assert factors.max() < 1.1, factors
    # Access links add less to small messages of fast hosts.
    long = [size >= 100_000 for size in SIZES]
    assert factors[:, long].min() > 0.9, factors


def test_cosy_has_the_memory_that_it_computes_and_refuses_less() -> None:
    load: dict[str, Any] = {"pattern": "all-to-all", "sizes": "imc10", "load": 0.5, "flows": 10}
    done = networks.run(leaf_spine(RATES), "cosy", load)
    assert done.manifest["plan"]["fabric"]["buffer-bytes"] == 1_440_000
    with pytest.raises(rm.PlanError, match=r"fabric\.buffer-bytes: expected at least 1440000, "):
        rm.run(
            topology=leaf_spine(RATES),
            transport={"name": "cosy"},
            workload=load,
            fabric={"buffer-bytes": 1_000_000},
            quiet=True,
        )


SLOW_CORE = {
    "kind": "links",
    "hosts": 4,
    "switches": 2,
    "links": [
        *({"between": [f"h{n}", f"s{n // 2}"], "gbps": (100, 25)[n % 2]} for n in range(4)),
        {"between": ["s0", "s1"], "gbps": 25, "propagation-ns": 5_000},
    ],
}
"""Hosts of two rates, and a link between switches as slow as the slow ones."""


@pytest.mark.parametrize("transport", ["pfabric", "hyline", "phost", "homa", "sird", "hpcc"])
def test_a_slow_core_has_memory_for_the_windows_of_fast_hosts(transport: str) -> None:
    lone = {"pattern": "incast", "fan": 1, "hub": 2, "flow-bytes": 10_000_000, "peers": [0]}
    flows = networks.run(SLOW_CORE, transport, lone).flows
    (row,) = flows.to_pylist()
    assert 1.0 <= row["fct_ps"] / row["ideal_ps"] < 1.1


@cases(networks.TRANSPORTS)
def test_no_message_fails_at_half_load(transport: str, network: Network) -> None:
    load = {"pattern": "all-to-all", "sizes": "imc10", "load": 0.5, "flows": 1_000}
    flows = networks.run(network(RATES), transport, load).summary["flows"]
    # cosy rejects messages whose delay it cannot bound.
    rejected_max = 300 if transport == "cosy" else 0
    assert flows["submitted"] == 1_000
    assert flows["delivered"] + flows["rejected"] == 1_000
    assert flows["rejected"] <= rejected_max


def test_dcpim_warns_of_a_phase_that_follows_from_slow_hosts() -> None:
    load = {"pattern": "all-to-all", "sizes": {"fixed": 1_000}, "load": 0.1, "flows": 10}
    expected = "transport.name: dcpim has one phase for all hosts"
    for rates, n_warnings in (((1, 1, 1, 100), 1), ((100,) * 4, 0)):
        warnings = networks.run(star(rates), "dcpim", load).summary["warnings"]
        assert [expected in warning for warning in warnings].count(True) == n_warnings, warnings


def test_ports_have_the_memory_and_marks_of_their_rate() -> None:
    load = {"pattern": "all-to-all", "sizes": {"fixed": 1_000}, "load": 0.1, "flows": 10}
    fabric = networks.run(star(RATES), "dctcp", load).manifest["plan"]["fabric"]
    for key in ("buffer-bytes", "ecn-bytes"):
        assert set(fabric[key]) == {str(rate) for rate in RATES}
        of_rates = [fabric[key][str(rate)] for rate in RATES]
        assert of_rates == sorted(set(of_rates)), key


ONE_FLOW = ("capton", "hyline")
"""Transports in which a host sends one flow at a time and receives one."""
N_SLOW = 6


def fast_slowdown(transport: str, pairs: list[tuple[int, int]], file: Path) -> float:
    """Returns the slowdown of 100 MB between two fast hosts, after 10 MB of each other pair."""
    ends = [(f"h{n}", "s0", 10 if n < N_SLOW else 400, 500) for n in range(N_SLOW + 2)]
    flows = [(0, src, dst, 10_000_000) for src, dst in pairs]
    flows.append((20, N_SLOW, N_SLOW + 1, 100_000_000))
    rows = ["arrival_us,src,dst,size_bytes", *(",".join(map(str, flow)) for flow in flows)]
    file.write_text("\n".join(rows) + "\n")
    trace = {"pattern": "trace", "file": str(file)}
    done = networks.run(networks.links(N_SLOW + 2, 1, ends), transport, trace)
    is_warned = any(
        "one outgoing and one incoming flow" in warning for warning in done.summary["warnings"]
    )
    assert is_warned == (transport in ONE_FLOW)
    fast = done.flows.filter(np.equal(done.flows["src"].to_numpy(), N_SLOW))
    fast = fast.filter(np.equal(fast["dst"].to_numpy(), N_SLOW + 1))
    return float(fast["fct_ps"][0].as_py() / fast["ideal_ps"][0].as_py())


@pytest.mark.parametrize(
    "transport",
    ["ideal", *sorted({*networks.TRANSPORTS} - {*networks.SLOTTED, *ONE_FLOW, "ideal"})],
)
def test_slow_peers_leave_most_of_a_fast_link_to_a_fast_one(transport: str, tmp_path: Path) -> None:
    """Six peers of 10 Gbit/s take 60 of 400 Gbit/s: the others would take 1.18 times as long."""
    receiver = [(slow, N_SLOW + 1) for slow in range(N_SLOW)]
    sender = [(N_SLOW, slow) for slow in range(N_SLOW)]
    for pairs in (receiver, sender):
        assert fast_slowdown(transport, pairs, tmp_path / "flows.csv") <= 1.3


@pytest.mark.parametrize("transport", ONE_FLOW)
def test_a_warning_reports_fast_hosts_that_wait_for_slow_peers(
    transport: str, tmp_path: Path
) -> None:
    receiver = [(slow, N_SLOW + 1) for slow in range(N_SLOW)]
    assert fast_slowdown(transport, receiver, tmp_path / "flows.csv") > 10


STARS = ((100, 25, 25), (50, 25), (400, 10, 25))


@pytest.mark.parametrize(
    "transport", [name for name in networks.TRANSPORTS if name not in networks.SLOTTED]
)
def test_every_pair_of_a_small_star_has_the_rate_of_its_slower_host(
    transport: str, tmp_path: Path
) -> None:
    """Round trips are as short as a packet of the slow hosts, which is where pairs differ most."""
    file = tmp_path / "flows.csv"
    slow = {}
    for rates in STARS:
        pairs = list(itertools.permutations(range(len(rates)), 2))
        rows = [f"{1 + 20_000 * n},{src},{dst},3000000" for n, (src, dst) in enumerate(pairs)]
        file.write_text("\n".join(["arrival_us,src,dst,size_bytes", *rows]) + "\n")
        for delay_ns in (0, 200, 220):
            links = [(f"h{n}", "s0", rate, delay_ns) for n, rate in enumerate(rates)]
            star = networks.links(len(rates), 1, links)
            done = networks.run(star, transport, {"pattern": "trace", "file": str(file)})
            flows = done.flows.sort_by("flow")
            for pair, fct, ideal in zip(pairs, flows["fct_ps"], flows["ideal_ps"], strict=True):
                if fct.as_py() > 1.1 * ideal.as_py():
                    slow[rates, delay_ns, pair] = round(fct.as_py() / ideal.as_py(), 2)
    assert slow == {}
