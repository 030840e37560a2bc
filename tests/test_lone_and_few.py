"""One message or a few in networks with uneven paths, interfaces and delays, or with losses."""

import random
from math import log2
from pathlib import Path
from typing import Any

import pytest

import rampmeter as rm

from . import networks

MB = 1_000_000
Flow = tuple[float, int, int, int]
"""Arrival in microseconds, source, destination, bytes."""


def star(gbps: list[float], ns: list[float] | None = None) -> networks.Topology:
    """Returns hosts of these rates and delays at one switch."""
    delays = ns or [500.0] * len(gbps)
    ends = [(f"h{n}", "s0", rate, delays[n]) for n, rate in enumerate(gbps)]
    return networks.links(len(gbps), 1, ends)


def two_racks(spines: list[float]) -> networks.Topology:
    """Returns two racks with four hosts of 100 Gbit/s each, and spines of these rates."""
    access = [(f"h{n}", f"s{n // 4}", 100, 500) for n in range(8)]
    core = [
        (f"s{rack}", f"s{2 + n}", rate, 500) for n, rate in enumerate(spines) for rack in (0, 1)
    ]
    return networks.links(8, 2 + len(spines), access + core)


TWO_PLANES = [(f"h{host}", f"s{n}", 100 * (n + 1), 500) for n in (0, 1) for host in (0, 1)]
"""Two hosts with a switch of 100 Gbit/s and one of 200, both of which reach all."""
HEADER = 40
SCALES = {
    "576 B": (100.0, 2_000.0, 576),
    "100 Gbit/s, 100 ns": (100.0, 100.0, 1_500),
    "1.6 Tbit/s, 100 ns": (1_600.0, 100.0, 1_500),
    "1.6 Tbit/s, 4 us": (1_600.0, 4_000.0, 1_500),
    "10 Mbit/s, 100 ns": (0.01, 100.0, 1_500),
    "10 Mbit/s, 1 ms, 576 B": (0.01, 1e6, 576),
    "10 Mbit/s, 300 ms": (0.01, 3e8, 1_500),
    "1 Gbit/s, 300 ms": (1.0, 3e8, 1_500),
}
"""By name: Gbit/s of all links, nanoseconds of a round trip without packets, bytes of a packet."""
LONE = {
    "ideal": (0, ""),
    "dcpim": (20, "a matching, and phases of few packets if round trips are short"),
    "phost": (4, "tokens follow the free ones after a round trip"),
    "fastpass": (5, "a request, and a slot for each packet"),
    "cosy": (4, "a reservation, and a slot for each packet"),
    "tcp": (1, "a handshake, and slow start"),
    "dctcp": (1, "a handshake, and slow start"),
    "pias": (1, "a handshake, and slow start"),
    "capton": (2, "a request and the controller's computation"),
    "hyline": (2, "a request and the controller's computation"),
    "fastpod": (10, "a request, and slots that are planned ahead"),
    "sird": (2, "credit follows the unscheduled packets after a round trip"),
}
"""Round trips with full packets that a lone message may take longer than the ideal, and why."""
SLOW_START = ("tcp", "dctcp", "pias")
"""Transports that double a window of 10 packets each round trip."""
FEW = (1.5, 25)
"""Upper bounds of contending messages' time: a multiple of their time on the receiver's link,
and a number of round trips with full packets: matchings, slots, and retransmissions."""
MORE = {
    # Its last packets wait for a timeout that does not follow the network.
    "hyline": (1.5, 100),
    # Its windows do not fill links if a round trip carries few packets. 100 packets of 1500 B from
    # each of eight hosts take 1.6 times the link's time at 100 ns, and 1.0 times at 8 us.
    "hpcc": (2.5, 25),
}
"""The same of transports that take longer."""


def run(
    topology: networks.Topology, transport: str, flows: list[Flow], folder: Path, **parts: Any
) -> rm.Run:
    file = folder / "flows.csv"
    rows = [",".join(map(str, flow)) for flow in flows]
    file.write_text("\n".join(["arrival_us,src,dst,size_bytes", *rows]) + "\n")
    return rm.run(
        topology=topology,
        transport={"name": transport} | parts.pop("transport_keys", {}),
        workload={"pattern": "trace", "file": str(file)},
        seed=1,
        quiet=True,
        **({"run": {"drain-us": 4e6}} | parts),
    )


def times_us(done: rm.Run) -> list[float]:
    return [float(us) for us in done.flows.sort_by("flow")["fct_ps"].to_numpy() / 1e6]


def slowdowns(done: rm.Run) -> list[float]:
    ideals = done.flows.sort_by("flow")["ideal_ps"].to_numpy() / 1e6
    return [float(slowdown) for slowdown in times_us(done) / ideals]


@pytest.mark.parametrize("transport", networks.TRANSPORTS)
def test_a_flow_that_waits_for_long_is_delivered(transport: str, tmp_path: Path) -> None:
    """The first flow waits for 0.25 s, as the other has fewer remaining bytes."""
    flows = [(0.0, 0, 1, 350 * MB), (1000.0, 0, 1, 300 * MB)]
    done = run(star([10, 10, 10]), transport, flows, tmp_path)
    status = done.flows["status"].to_pylist()
    assert set(status) <= ({"delivered", "rejected"} if transport == "cosy" else {"delivered"})


@pytest.mark.parametrize("transport", ["capton", "hyline"])
@pytest.mark.parametrize("spines", [[100, 10], [400, 10], [400, 100]], ids=str)
def test_controllers_use_the_rates_of_each_spine(
    transport: str, spines: list[float], tmp_path: Path
) -> None:
    done = run(two_racks(spines), transport, [(0.0, 0, 4, 5 * MB)], tmp_path)
    assert slowdowns(done)[0] <= 1.1


@pytest.mark.parametrize("transport", ["dctcp", "hpcc"])
def test_a_message_keeps_an_interface_that_is_drawn_by_rate(transport: str, tmp_path: Path) -> None:
    """One of 41 messages has the interface of 10 Gbit/s."""
    ends = [(f"h{n}", f"s{s}", (400, 10)[s], 500) for n in range(8) for s in (0, 1)]
    rng = random.Random(1)
    flows = [(n * 20_000.0, *rng.sample(range(8), 2), 10 * MB) for n in range(24)]
    done = run(networks.links(8, 2, ends), transport, flows, tmp_path)  # type: ignore[arg-type]
    assert sum(time > 2_000 for time in times_us(done)) <= 3
    assert any(
        "the links of h0 to s1 and s0 have rates" in text for text in done.summary["warnings"]
    )


@pytest.mark.parametrize("transport", ["pfabric", "ndp", "homa"])
def test_windows_are_those_of_long_delays(transport: str, tmp_path: Path) -> None:
    """A round trip of 10 ms, and 125 MB in flight."""
    topology = star([100, 100], [2_500_000, 2_500_000])
    done = run(topology, transport, [(0.0, 0, 1, 150 * MB)], tmp_path)
    assert slowdowns(done)[0] <= 1.1


@pytest.mark.parametrize("transport", networks.TRANSPORTS)
@pytest.mark.parametrize("scale", SCALES)
def test_messages_of_all_sizes_finish_at_every_scale(
    transport: str, scale: str, tmp_path: Path
) -> None:
    """Lone messages of a byte, ten packets and more are near the ideal; eight to one finish."""
    gbps, rtt_ns, mtu = SCALES[scale]
    packet_us, payload = mtu * 8 / gbps / 1e3, mtu - HEADER
    round_trip_us = rtt_ns / 1e3 + 2 * packet_us
    product = int(gbps * rtt_ns / 8)
    lone = [1, 10 * payload, min(max(4 * product, 100 * payload), MB)]
    each = min(max(product, 40 * payload), MB // 2)
    gap_us = 100 * (round_trip_us + 8 * each * 8 / gbps / 1e3)
    flows = [(n * gap_us, 0, 1, size) for n, size in enumerate(lone)]
    flows += [(len(lone) * gap_us, src, 8, each) for src in range(8)]
    topology = star([gbps] * 9, [rtt_ns / 4] * 9) | {"switch-ns": 0.0, "host-ns": 0.0}
    # The memory that HPCC requests is less than the bytes in flight here.
    memory = {"fabric": {"shared-buffer-bytes": 10**9}} if transport == "hpcc" else {}
    framing = {} if transport == "ideal" else {"payload-bytes": payload, "header-bytes": HEADER}
    parts = memory | {"run": {"drain-us": 10 * gap_us, "sample-us": 0}}
    done = run(topology, transport, flows, tmp_path, transport_keys=framing, **parts)
    status = done.flows.sort_by("flow")["status"].to_pylist()
    assert set(status[: len(lone)]) == {"delivered"}
    assert "delivered" in status
    assert set(status) <= ({"delivered", "rejected"} if transport == "cosy" else {"delivered"})
    ideals_us = done.flows.sort_by("flow")["ideal_ps"].to_numpy() / 1e6
    took_us = [ps and ps / 1e6 for ps in done.flows.sort_by("flow")["fct_ps"].to_pylist()]
    for size, took, ideal in zip(lone, took_us, ideals_us, strict=False):
        more, _ = LONE.get(transport, (0, ""))
        doublings = max(0.0, log2(size / payload / 10) + 1) if transport in SLOW_START else 0.0
        assert took <= 1.1 * ideal + (more + doublings) * round_trip_us, (size, took, ideal)
    carried_us = rtt_ns / 1e3 + 8 * each * (mtu / payload) * 8 / gbps / 1e3
    slowest_us = max(took for took in took_us[len(lone) :] if took is not None)
    times, round_trips = MORE.get(transport, FEW)
    most_us = times * carried_us + round_trips * round_trip_us
    assert slowest_us <= most_us, (slowest_us, carried_us)


def test_the_ideal_serves_hosts_of_several_rates_together(tmp_path: Path) -> None:
    """Four flows take 1.6 ms each, and 160 of 400 Gbit/s but for the last, which has the rest."""
    flows = [(0.0, 0, 4, 2 * MB), (0.0, 1, 4, 8 * MB), (0.0, 2, 4, 20 * MB), (0.0, 3, 4, 50 * MB)]
    done = run(star([10, 40, 100, 400, 400]), "ideal", flows, tmp_path)
    assert max(times_us(done)) < 1_700


@pytest.mark.parametrize(
    ("topology", "text"),
    [
        (star([100] * 3, [500, 500, 50_000]), "topology: round trips take "),
        (networks.links(2, 2, TWO_PLANES), "topology: the links of h0 to s0 and s1 have rates "),
        # Each peer is reached by links of one rate.
        (networks.rails_with_scale_up(), None),
        (two_racks([100, 100]), None),
        ({"kind": "fat-tree", "k": 4}, None),
        ({"kind": "leaf-spine", "racks": 3, "hosts-per-rack": 4, "spines": 2}, None),
    ],
)
def test_check_warns_of_rates_that_transports_ignore(
    topology: networks.Topology, text: str | None, tmp_path: Path
) -> None:
    found = run(topology, "homa", [(0.0, 0, 1, MB)], tmp_path).summary["warnings"]
    warned = [warning for warning in found if warning.startswith("topology: ")]
    if text is None:
        assert not warned
    else:
        assert any(warning.startswith(text) for warning in warned)


def test_check_warns_of_a_drain_that_is_shorter_than_a_flow(tmp_path: Path) -> None:
    """100 MB take 8.2 ms at 100 Gbit/s."""
    flows = [(0.0, 0, 1, 100 * MB), (1.0, 0, 1, 1_000)]
    for drain_us, is_warned in ((8_000.0, True), (9_000.0, False)):
        run_parts = {"drain-us": drain_us}
        done = run(star([100, 100]), "homa", flows, tmp_path, run=run_parts)
        warnings = [text for text in done.summary["warnings"] if " takes 0.008" in text]
        assert len(warnings) == is_warned
        assert not warnings or "the flow of 100000000 bytes from h0 to h1" in warnings[0]


@pytest.mark.parametrize("transport", ["homa", "homa-aeolus", "ndp", "sird"])
def test_timeouts_of_slow_and_short_links_are_longer_than_packets(
    transport: str, tmp_path: Path
) -> None:
    """Eight to one at 10 Mbit/s: 64 round trips of control packets are some five full packets."""
    topology = star([0.01] * 9, [25.0] * 9) | {"switch-ns": 0.0, "host-ns": 0.0}
    flows = [(0.0, n, 8, 100_000) for n in range(8)]
    done = run(topology, transport, flows, tmp_path, run={"drain-us": 1e8})
    assert done.flows["retransmitted_bytes"].to_numpy().sum() <= 0.1 * 800_000
