"""Ten networks that are not uniform, and the transports that run in them.

`python -m tests.networks` prints the table of docs/project/networks-review.md.
"""

import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rampmeter as rm
from rampmeter.plan import schema

TRANSPORTS = tuple(schema.names())
"""All transports of the package, without those in Python."""
SLOTTED = ("fastpass", "fastpod", "cosy")
"""Transports that treat all hosts as if they had the slowest rate, and warn."""

Topology = dict[str, Any]
Network = Callable[[], Topology]


def run(topology: Topology, transport: str, workload: dict[str, Any]) -> rm.Run:
    """Runs one transport in one network."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rm.run(
            topology=topology,
            transport={"name": transport},
            workload=workload,
            run={"drain-us": 1_000_000.0},
            seed=1,
            quiet=True,
        )


def lone_slowdowns(topology: Topology, transport: str, folder: Path) -> list[float]:
    """Returns the slowdowns of flows of 10 MB between four pairs of hosts, one after the other."""
    last = topology["hosts"] - 1
    file = folder / "flows.csv"
    pairs = ((0, last), (last, 0), (1, (last + 1) // 2), (0, 1))
    rows = [f"{20_000 * n},{src},{dst},10000000" for n, (src, dst) in enumerate(pairs)]
    file.write_text("\n".join(["arrival_us,src,dst,size_bytes", *rows]) + "\n")
    flows = run(topology, transport, {"pattern": "trace", "file": str(file)}).flows
    assert set(flows["status"].to_pylist()) == {"delivered"}
    return [float(ratio) for ratio in flows["fct_ps"].to_numpy() / flows["ideal_ps"].to_numpy()]


def loaded_statuses(topology: Topology, transport: str) -> list[str]:
    """Returns the statuses of 400 flows of IMC10 between all hosts at load 0.5."""
    load = {"pattern": "all-to-all", "sizes": "imc10", "load": 0.5, "flows": 400}
    return [str(status) for status in run(topology, transport, load).flows["status"].to_pylist()]


def links(hosts: int, switches: int, links: list[Any], **keys: Any) -> Topology:
    """Returns a topology of links: ends, Gbit/s and nanoseconds."""
    table = [
        {"between": [a, b], "gbps": float(gbps), "propagation-ns": float(ns)}
        for a, b, gbps, ns in links
    ]
    return {"kind": "links", "hosts": hosts, "switches": switches, "links": table, **keys}


def mixed_rates() -> Topology:
    """Returns two racks with hosts of 25, 50 and 100 Gbit/s."""
    rates = (100, 25, 50, 25, 100, 100, 25, 50)
    access = [(f"h{n}", f"s{n // 4}", gbps, 500) for n, gbps in enumerate(rates)]
    core = [(f"s{rack}", f"s{spine}", 200, 500) for rack in (0, 1) for spine in (2, 3)]
    return links(8, 4, access + core)


def dual_homed() -> Topology:
    """Returns racks in which each host has a link to both leaf switches."""
    access = [(f"h{n}", f"s{2 * (n // 4) + leaf}", 50, 500) for n in range(8) for leaf in (0, 1)]
    core = [(f"s{leaf}", f"s{spine}", 200, 500) for leaf in range(4) for spine in (4, 5)]
    return links(8, 6, access + core)


def rails_with_scale_up() -> Topology:
    """Servers of four accelerators: a fast switch within each, a rail for each place, a spine."""
    scale_up = [(f"h{n}", f"s{n // 4}", 400, 100) for n in range(8)]
    rails = [(f"h{n}", f"s{2 + n % 4}", 100, 500) for n in range(8)]
    spine = [(f"s{rail}", "s6", 200, 500) for rail in range(2, 6)]
    return links(8, 7, scale_up + rails + spine)


def torus() -> Topology:
    """Returns a 3 by 3 torus with a switch for each host, in a ring of each dimension."""
    access = [(f"h{n}", f"s{n}", 100, 100) for n in range(9)]
    ring = []
    for row in range(3):
        for column in range(3):
            own = 3 * row + column
            ring.append((f"s{own}", f"s{3 * row + (column + 1) % 3}", 100, 300))
            ring.append((f"s{own}", f"s{3 * ((row + 1) % 3) + column}", 100, 300))
    return links(9, 9, access + ring)


def dragonfly() -> Topology:
    """Returns three groups of two switches, each with a link to one other group."""
    access = [(f"h{n}", f"s{n // 2}", 100, 100) for n in range(12)]
    local = [(f"s{2 * group}", f"s{2 * group + 1}", 200, 200) for group in range(3)]
    between = [("s1", "s2", 200, 1000), ("s3", "s4", 200, 1000), ("s5", "s0", 200, 1000)]
    return links(12, 6, access + local + between)


def slow_core() -> Topology:
    """Returns a network with slower links between switches than those of hosts."""
    access = [(f"h{n}", f"s{n // 4}", 100, 500) for n in range(8)]
    core = [(f"s{rack}", f"s{spine}", 40, 500) for rack in (0, 1) for spine in (2, 3)]
    return links(8, 4, access + core)


def parallel_links() -> Topology:
    """Returns two switches with three links of two rates between them."""
    access = [(f"h{n}", f"s{n // 4}", 25, 500) for n in range(8)]
    return links(
        8, 2, [*access, ("s0", "s1", 100, 500), ("s0", "s1", 100, 500), ("s0", "s1", 40, 500)]
    )


def asymmetric_delays() -> Topology:
    """Returns two spines, one of them far away, and hosts near and far."""
    access = [(f"h{n}", f"s{n // 4}", 100, 200 + 1500 * (n % 2)) for n in range(8)]
    core = [
        (f"s{rack}", f"s{spine}", 400, 500 + 4000 * (spine - 2))
        for rack in (0, 1)
        for spine in (2, 3)
    ]
    return links(8, 4, access + core)


def oversubscribed() -> Topology:
    """Returns three tiers, each with half of the capacity of the one below."""
    access = [(f"h{n}", f"s{n // 4}", 100, 300) for n in range(16)]
    pods = [
        (f"s{rack}", f"s{4 + 2 * (rack // 2) + agg}", 100, 300)
        for rack in range(4)
        for agg in (0, 1)
    ]
    core = [(f"s{agg}", f"s{8 + agg % 2}", 100, 300) for agg in range(4, 8)]
    return links(16, 10, access + pods + core)


def broken_plane() -> Topology:
    """Returns a leaf-spine network in which one spine has lost its link to the first rack."""
    access = [(f"h{n}", f"s{n // 4}", 100, 500) for n in range(12)]
    core = [
        (f"s{rack}", f"s{spine}", 200, 500)
        for rack in range(3)
        for spine in (3, 4, 5)
        if (rack, spine) != (0, 5)
    ]
    return links(12, 6, access + core)


NETWORKS: tuple[Network, ...] = (
    mixed_rates,
    dual_homed,
    rails_with_scale_up,
    torus,
    dragonfly,
    slow_core,
    parallel_links,
    asymmetric_delays,
    oversubscribed,
    broken_plane,
)


def cell(topology: Topology, transport: str, folder: Path) -> str:
    """Returns a largest lone slowdown, with failures and rejections if there are any."""
    try:
        largest = max(lone_slowdowns(topology, transport, folder))
    except rm.PlanError:
        return "refused"
    statuses = loaded_statuses(topology, transport)
    rejected = statuses.count("rejected")
    others = len(statuses) - rejected - statuses.count("delivered")
    notes = [f"{rejected} rejected"] * (rejected > 0) + [f"{others} failed"] * (others > 0)
    return "; ".join([f"{largest:.2f}", *notes])


def main() -> None:
    """Prints a row for each transport and a column for each network."""
    names = [network.__name__.replace("_", " ") for network in NETWORKS]
    rows = [["transport", *names], ["---"] * (len(names) + 1)]
    with tempfile.TemporaryDirectory() as folder:
        for transport in TRANSPORTS:
            cells = [cell(network(), transport, Path(folder)) for network in NETWORKS]
            rows.append([transport, *cells])
    sys.stdout.writelines("| " + " | ".join(row) + " |\n" for row in rows)


if __name__ == "__main__":
    main()
