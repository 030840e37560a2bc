"""Links whose other direction is too slow for the control packets that return for data."""

from pathlib import Path
from typing import Any, Final

import pytest

import rampmeter as rm
from rampmeter.plan import schema

from . import networks

PER_PACKET: Final = sorted({*networks.TRANSPORTS} - {*networks.SLOTTED, "ideal"})
"""Transports whose receivers send control packets for each packet of data."""
PRESETS: Final = [
    (name, preset) for name in PER_PACKET for preset, _ in schema.transport_info(name)["presets"]
]


def flow_from_0_to_1(topology: Any, transport: Any, folder: Path, **parts: Any) -> rm.Plan:
    file = folder / "flows.csv"
    file.write_text("arrival_us,src,dst,size_bytes\n0,0,1,4MB\n")
    workload = {"pattern": "trace", "file": str(file)}
    return rm.Plan.of(topology=topology, transport=transport, workload=workload, **parts)


def returned_share(transport: Any, folder: Path) -> float:
    """Returns the share of returned bytes over data, if both directions are fast."""
    plan = flow_from_0_to_1(
        {"kind": "star", "hosts": 2}, transport, folder, run=rm.RunOptions(links=True)
    )
    done = rm.run(plan, quiet=True)
    assert done.links is not None
    sent = {"h0": 0, "h1": 0}
    for row in done.links.to_pylist():
        if row["from"] in sent:
            sent[row["from"]] += row["sent_bytes"]
    return sent["h1"] / sent["h0"]


def slow_back(gbps: float) -> Any:
    """Returns a network in which host 1 receives 100 Gbit/s and sends less."""
    links: list[Any] = [
        {"between": ["gpu-a", "tor"], "gbps": 100},
        {"between": ["tor", "gpu-b"], "gbps": 100, "gbps-back": gbps},
    ]
    names: Any = {"hosts": ["gpu-a", "gpu-b"], "switches": ["tor"]}
    return {"kind": "links", **names, "links": links}


def warnings_of(plan: rm.Plan) -> list[str]:
    return [text for text in plan.warnings if "control packets" in text]


@pytest.mark.parametrize(("name", "preset"), PRESETS)
def test_a_direction_is_too_slow_if_its_return_traffic_exceeds_it(
    name: str, preset: str, tmp_path: Path
) -> None:
    """The need that the warning has is that of a run in which both directions are fast."""
    transport = {"name": name, "preset": preset}
    needed = 100 * returned_share(transport, tmp_path)
    [warning] = warnings_of(flow_from_0_to_1(slow_back(needed * 0.9), transport, tmp_path))
    assert warning.startswith("topology: link gpu-b-tor has ")
    assert f" from gpu-b to tor, and the control packets of {name} for 100 Gbit/s " in warning
    stated = float(warning.rpartition(" need ")[2].partition(":")[0])
    assert stated == pytest.approx(needed, rel=0.08)
    assert not warnings_of(flow_from_0_to_1(slow_back(needed * 1.15), transport, tmp_path))


@pytest.mark.parametrize("name", ["phost", "ndp", "homa", "sird", "dcpim"])
def test_data_wait_for_tokens_grants_and_pulls(name: str, tmp_path: Path) -> None:
    """A third of the rate that control packets need makes a flow three times as long."""
    transport = {"name": name}
    needed = 100 * returned_share(transport, tmp_path)
    done = rm.run(flow_from_0_to_1(slow_back(needed / 3), transport, tmp_path), quiet=True)
    [fct], [ideal] = (done.flows[column].to_numpy() for column in ("fct_ps", "ideal_ps"))
    assert fct > 2 * ideal
    assert any("control packets" in text for text in done.summary["warnings"])


@pytest.mark.parametrize("name", networks.SLOTTED)
def test_transports_of_slots_are_as_slow_as_the_slower_direction(name: str, tmp_path: Path) -> None:
    assert not warnings_of(flow_from_0_to_1(slow_back(1), {"name": name}, tmp_path))


def test_links_between_racks_are_seen_too(tmp_path: Path) -> None:
    access: list[Any] = [{"between": [f"h{n}", f"s{n // 4}"], "gbps": 100} for n in range(8)]
    core: list[Any] = [{"between": ["s0", "s1"], "gbps": 200, "gbps-back": 5}]
    topology: Any = {"kind": "links", "hosts": 8, "switches": 2, "links": access + core}
    [warning] = warnings_of(flow_from_0_to_1(topology, {"name": "tcp"}, tmp_path))
    expected = (
        "topology: link s0-s1 has 5 Gbit/s from s1 to s0, and the control packets of tcp for 200 "
        "Gbit/s of data in the other direction need 5.333: expect that data wait for them"
    )
    assert warning == expected
    # Hosts of 25 Gbit/s send 100 Gbit/s together.
    for link in access[:4]:
        link["gbps"] = 25
    assert not warnings_of(flow_from_0_to_1(topology, {"name": "tcp"}, tmp_path))
    topology["links"].append({"between": ["s0", "s1"], "gbps": 5, "gbps-back": 200})
    assert not warnings_of(flow_from_0_to_1(topology, {"name": "tcp"}, tmp_path))
