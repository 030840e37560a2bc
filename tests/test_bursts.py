"""Bursts that leave a link idle only if a transport waits for something that never arrives.

Runs have the first preset of each transport. Presets that are transcribed from a simulator have its
timeouts. A bound is a multiple of the time in which links could carry the bytes.
"""

from pathlib import Path
from typing import Any

import pytest

import rampmeter as rm
from rampmeter.plan import schema

Flow = tuple[float, int, int, int]
"""Arrival in microseconds, source, destination, bytes."""
BYTES_PER_US = 12_500
"""Of hosts' links, 100 Gbit/s."""
STAR: dict[str, Any] = {"kind": "star", "hosts": 9}
RACKS: dict[str, Any] = {"kind": "leaf-spine", "racks": 2, "hosts-per-rack": 4, "spines": 2}
ALL = [name for name in schema.names() if name != "cosy"]
"""All transports, except for the one that rejects messages for which a host has no slots."""


def run(
    transport: str, flows: list[Flow], folder: Path, topology: dict[str, Any], **parts: Any
) -> rm.Run:
    """Runs flows and checks that all of them end."""
    trace = folder / "flows.csv"
    rows = (",".join(map(str, flow)) for flow in sorted(flows))
    trace.write_text("\n".join(["arrival_us,src,dst,size_bytes", *rows]))
    done = rm.run(
        topology=topology,
        transport={"name": transport},
        workload={"pattern": "trace", "file": str(trace)},
        run={"drain-us": 1e6, "sample-us": 0},
        seed=1,
        quiet=True,
        **parts,
    )
    assert set(done.flows["status"].to_pylist()) == {"delivered"}
    return done


def ends_us(done: rm.Run) -> list[float]:
    """Returns the ends of flows in microseconds, in the order of the trace."""
    rows = zip(done.flows["arrival_ps"].to_pylist(), done.flows["fct_ps"].to_pylist(), strict=True)
    return [(arrival + fct) / 1e6 for arrival, fct in rows if fct is not None]


PAIR = {"dcpim": (1.7, "a flow of more than a BDP waits for a matching")}
"""Largest times of messages of a host to another: transports with more than 1.35, and why."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("transport", ALL)
def test_messages_between_two_hosts_keep_their_link_busy(transport: str, tmp_path: Path) -> None:
    bound, _ = PAIR.get(transport, (1.35, ""))
    for n, size in ((8, 60_000), (8, 200_000), (40, 100_000)):
        done = run(transport, [(0, 0, 1, size)] * n, tmp_path, STAR)
        lone = float(done.flows["ideal_ps"].to_numpy().max()) / 1e6
        line = lone + (n - 1) * size / BYTES_PER_US
        assert max(ends_us(done)) < bound * line, (n, size)


SLOW_START = "a handshake, and slow start"
REQUESTS = "each step of a ring waits for a request"
COLLECTIVES = {
    "dcpim": (2.8, 5.5, "messages of more than a BDP wait for a matching"),
    "fastpass": (1.5, 1.9, REQUESTS),
    "fastpod": (1.5, 1.9, REQUESTS),
    "capton": (1.6, 1.8, REQUESTS),
    "tcp": (1.5, 2.0, SLOW_START),
    "dctcp": (1.5, 2.0, SLOW_START),
    "pias": (1.5, 2.0, SLOW_START),
    "sird": (1.8, 1.6, "credit of a receiver for senders that are busy"),
}
"""Largest times of an all-to-all and of an all-reduce by ring, over those of the transport `ideal`:
transports with more than 1.5, and why."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("transport", ALL)
def test_collectives_keep_links_busy(transport: str) -> None:
    *bounds, _ = COLLECTIVES.get(transport, (1.5, 1.5, ""))
    for operation, bound in zip(("all-to-all", "all-reduce"), bounds, strict=True):
        workload: dict[str, Any] = {"pattern": "collective", "operation": operation}
        ends = []
        for name in (transport, "ideal"):
            done = rm.run(
                topology=RACKS,
                transport={"name": name},
                workload={**workload, "vector-bytes": 800_000},
                run={"sample-us": 0},
                seed=1,
                quiet=True,
            )
            assert set(done.flows["status"].to_pylist()) == {"delivered"}
            ends.append(max(ends_us(done)))
        assert ends[0] < float(bound) * ends[1], operation


OUTCAST = {
    "dcpim": (1.6, "messages wait for a matching"),
    "phost": (1.4, "tokens of many destinations reach one source"),
}
"""Largest times of messages of a host to several others: transports with more than 1.3."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("transport", ALL)
def test_messages_of_a_host_to_many_keep_its_link_busy(transport: str, tmp_path: Path) -> None:
    bound, _ = OUTCAST.get(transport, (1.3, ""))
    for n, size in ((3, 1_000_000), (8, 1_000_000), (8, 300_000)):
        done = run(transport, [(0, 0, 1 + k, size) for k in range(n)], tmp_path, STAR)
        lone = float(done.flows["ideal_ps"].to_numpy().max()) / 1e6
        assert max(ends_us(done)) < bound * (lone + (n - 1) * size / BYTES_PER_US), (n, size)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("transport", ["dcpim", "phost", "ndp"])
def test_a_long_message_ends_while_tiny_ones_arrive(transport: str, tmp_path: Path) -> None:
    """Tiny messages take 10 % of the link; one in a thousand packets is lost."""
    tiny = [(k * 0.08, 1 + k % 7, 0, 64) for k in range(20_000)]
    done = run(transport, [(0, 8, 0, 5_000_000), *tiny], tmp_path, STAR, faults={"loss": 1e-3})
    sizes = done.flows["size_bytes"].to_pylist()
    end = dict(zip(sizes, ends_us(done), strict=True))[5_000_000]
    # 400 us of its own, a tenth more for the others, and repairs.
    assert end < 800


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("transport", ["dcpim", "phost", "homa", "ndp", "sird"])
def test_a_host_that_vanishes_does_not_keep_its_receiver_from_others(
    transport: str, tmp_path: Path
) -> None:
    """A host announces ten messages and loses its link. Two others send 2 MB each."""
    flows = [(0.0, 8, 0, 1_000_000)] * 10 + [(5.0, 1, 0, 2_000_000), (5.0, 2, 0, 2_000_000)]
    trace = tmp_path / "flows.csv"
    rows = (",".join(map(str, flow)) for flow in flows)
    trace.write_text("\n".join(["arrival_us,src,dst,size_bytes", *rows]))
    done = rm.run(
        topology=STAR,
        transport={"name": transport},
        workload={"pattern": "trace", "file": str(trace)},
        faults={"outages": [{"link": "h8-s0", "from-us": 3.0}]},
        run={"drain-us": 5e3, "sample-us": 0},
        seed=1,
        quiet=True,
    )
    # Both together take 320 us.
    ends = ends_us(done)
    assert len(ends) == 2
    assert max(ends) < (600 if transport == "sird" else 450)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("transport", ["dcpim", "phost"])
def test_packets_queued_in_a_deep_port_are_not_retransmitted(
    transport: str, tmp_path: Path
) -> None:
    """31 hosts send 20 KB each to one host, whose port holds all of it."""
    flows = [(0.0, src, 0, 20_000) for src in range(1, 32)]
    topology = {"kind": "star", "hosts": 32}
    done = run(transport, flows, tmp_path, topology, fabric={"buffer-bytes": 5_000_000})
    again = int(done.flows["retransmitted_bytes"].to_numpy().sum())
    assert again < 0.2 * 31 * 20_000
