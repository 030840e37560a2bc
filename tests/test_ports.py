"""Packet memory and marks that differ between ports."""

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

import rampmeter as rm

TOPOLOGY: dict[str, Any] = {
    **{"kind": "leaf-spine", "racks": 2, "hosts-per-rack": 4, "spines": 1},
    **{"access-gbps": 25.0, "core-gbps": 100.0},
}


def run(fabric: dict[str, Any], folder: Path, transport: str = "dctcp") -> rm.Run:
    """Runs three long flows from one rack into a host of the other."""
    rows = [f"0,{src},4,3000000" for src in (0, 1, 2)]
    file = folder / "flows.csv"
    file.write_text("\n".join(["arrival_us,src,dst,size_bytes", *rows]) + "\n")
    warnings.simplefilter("ignore")
    return rm.run(
        topology=TOPOLOGY,
        transport={"name": transport},
        fabric=fabric,
        workload={"pattern": "trace", "file": str(file)},
        seed=1,
        quiet=True,
    )


def tier(run: rm.Run, name: str) -> dict[str, Any]:
    """Returns the entry of a tier in the summary."""
    (found,) = (each for each in run.summary["tiers"] if each["name"] == name)
    return dict(found)


def longest(run: rm.Run, name: str) -> int:
    """Returns the longest queue of a tier's ports, in bytes."""
    return int(tier(run, name)["queue_max_bytes"])


def test_ports_mark_by_their_rate(tmp_path: Path) -> None:
    by_rate = run({"ecn-bytes": {"25": 50_000, "100": 200_000}}, tmp_path)
    equal = run({"ecn-bytes": 50_000}, tmp_path)
    # The receiver's port of 25 Gbit/s decides: the two runs are the same.
    assert by_rate.flows.equals(equal.flows)
    high = run({"ecn-bytes": {"25": 200_000, "100": 50_000}}, tmp_path)
    assert tier(high, "tor-down").get("marks", 0) < tier(equal, "tor-down")["marks"] / 2
    by_tier = run({"ecn-bytes": {"tor-down": 200_000, "25": 1, "100": 50_000}}, tmp_path)
    assert by_tier.flows.equals(high.flows)


def test_a_share_of_packets_is_marked_between_two_thresholds(tmp_path: Path) -> None:
    def marks(**keys: Any) -> int:
        return int(tier(run({"ecn-bytes": 20_000, **keys}, tmp_path), "tor-down")["marks"])

    step = marks()
    assert marks(**{"ecn-max-bytes": 20_000}) == step
    ramp = marks(**{"ecn-max-bytes": 400_000, "ecn-max-probability": 0.01})
    assert 0 < ramp < step / 2


def test_the_memory_of_ports_differs_by_tier(tmp_path: Path) -> None:
    memory = {"tor-down": 30_000, "25": 500_000, "100": 500_000}
    small = run({"buffer-bytes": memory, "overflow": "tail-drop"}, tmp_path, "tcp")
    large = run({"buffer-bytes": 500_000, "overflow": "tail-drop"}, tmp_path, "tcp")
    assert longest(small, "tor-down") <= 30_000 < longest(large, "tor-down")


@pytest.mark.parametrize(
    ("fabric", "message"),
    [
        (
            {"ecn-bytes": {"25": 1}},
            "fabric.ecn-bytes: expected an entry for ports .* of 100 Gbit/s, got none",
        ),
        (
            {"ecn-bytes": {"25": 1, "100": 1, "tor-dwn": 1}},
            r"fabric.ecn-bytes: expected the rate or the tier \(spine-down, tor-down, tor-up\) of "
            'ports, got "tor-dwn"',
        ),
        ({"ecn-bytes": {"25x": 1}}, 'fabric.ecn-bytes.25x: expected a rate in Gbit/s .* got "25x"'),
        ({"ecn-bytes": {}}, "fabric.ecn-bytes: .* got an empty table"),
        ({"ecn-bytes": {"25": -1, "100": 1}}, "fabric.*ecn.bytes.*-1"),
        ({"ecn-bytes": "many"}, "fabric.ecn-bytes: expected a whole number of bytes"),
        ({"ecn-bytes": True}, "expected a number of bytes, or a table"),
        ({"ecn-max-bytes": 9}, "fabric.ecn-max-bytes: expected fabric.ecn-bytes in the plan"),
        (
            {"ecn-bytes": 10, "ecn-max-bytes": 9},
            r"fabric.ecn-max-bytes: expected at least ecn-bytes \(10\), got 9",
        ),
        (
            {"ecn-max-probability": 0.5},
            "ecn-max-probability: expected fabric.ecn-max-bytes in the plan",
        ),
        (
            {"ecn-bytes": {"25": 1, "25.0": 2, "100": 1}},
            "fabric.ecn-bytes: expected each rate once",
        ),
        (
            {"ecn-bytes": 1, "ecn-max-bytes": 2, "ecn-max-probability": 2.0},
            "fabric.ecn-max-probability: expected a number from 0 to 1",
        ),
    ],
)
def test_errors_name_the_port(fabric: dict[str, Any], message: str, tmp_path: Path) -> None:
    transport = "tcp" if "ecn-bytes" not in fabric else "dctcp"
    with pytest.raises(rm.PlanError, match=message):
        run(fabric, tmp_path, transport)


def test_a_manifest_repeats_marks_of_a_share(tmp_path: Path) -> None:
    keys = {"ecn-bytes": {"25": 20_000, "100": 20_000}, "ecn-max-bytes": 400_000}
    first = run({**keys, "ecn-max-probability": 0.01}, tmp_path)
    fabric = json.loads((first.path / "manifest.json").read_text())["plan"]["fabric"]
    assert fabric["ecn-max-probability"] == 0.01
    again = {key: value for key, value in fabric.items() if value is not None}
    assert run(again, tmp_path).flows.equals(first.flows)


def star(gbps: float, rtt_us: float) -> dict[str, Any]:
    """Returns nine hosts at one switch."""
    delays = {"propagation-ns": rtt_us * 250, "switch-ns": 0.0, "host-ns": 0.0}
    return {"kind": "star", "hosts": 9, "access-gbps": gbps, **delays}


def web_search(transport: str, topology: dict[str, Any], flows: int) -> rm.Run:
    """Runs Web Search at load 0.6."""
    return rm.run(
        topology=topology,
        transport={"name": transport},
        workload={"pattern": "all-to-all", "sizes": "web-search", "load": 0.6, "flows": flows},
        run={"sample-us": 0, "drain-us": 1e9},
        seed=1,
        quiet=True,
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("transport", ["capton", "hyline"])
def test_ports_hold_unscheduled_messages_at_short_round_trips(transport: str) -> None:
    """A bandwidth-delay product of 3 us at 10 Gbit/s is three packets, a message has up to ten."""
    flows = web_search(transport, star(10.0, 3.0), 1000).flows
    assert float((flows["fct_ps"].to_numpy() / flows["ideal_ps"].to_numpy()).max()) < 25


@pytest.mark.filterwarnings("ignore")
def test_ports_of_dcpim_grow_with_round_trips() -> None:
    """Ports of 500 KB would hold a twenty-fifth of a bandwidth-delay product of 1 ms."""
    done = web_search("dcpim", star(100.0, 1000.0), 600)
    assert done.summary["slowdown"]["delivered"]["overall"]["mean"] < 2.0
    again, size = (
        int(done.flows[name].to_numpy().sum()) for name in ("retransmitted_bytes", "size_bytes")
    )
    assert again < 0.05 * size
