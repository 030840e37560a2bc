"""Derived values belong to pairs of hosts, and warnings name slow links."""

from pathlib import Path
from typing import Any

import pytest

import rampmeter as rm

from . import networks


@pytest.mark.parametrize(("transport", "most"), [("phost", 1.12), ("ndp", 1.05), ("capton", 1.1)])
def test_windows_and_timeouts_of_fast_hosts_are_not_those_of_slow_ones(
    transport: str, most: float, tmp_path: Path
) -> None:
    """1 MB between hosts of 100 Gbit/s, with other hosts of 1 Gbit/s, in two racks."""
    access = [(f"h{n}", f"s{n // 4}", (100, 1)[n % 2], 500) for n in range(8)]
    topology = networks.links(8, 2, [*access, ("s0", "s1", 100, 500)])
    file = tmp_path / "flows.csv"
    file.write_text("arrival_us,src,dst,size_bytes\n0,0,4,1000000\n100000,0,2,1000000\n")
    done = networks.run(topology, transport, {"pattern": "trace", "file": str(file)})
    slowdowns = done.flows["fct_ps"].to_numpy() / done.flows["ideal_ps"].to_numpy()
    assert slowdowns.max() < most


@pytest.mark.parametrize("transport", ["capton", "hyline"])
def test_a_slow_host_does_not_make_the_controller_slow(transport: str, tmp_path: Path) -> None:
    """300 kB at 1.6 Tbit/s, alone and with a host of 10 Mbit/s."""
    file = tmp_path / "flows.csv"
    file.write_text("arrival_us,src,dst,size_bytes\n0,0,1,300000\n")
    times = []
    for last in (1600, 0.01):
        access = [(f"h{n}", "s0", (1600, last)[n == 3], 500) for n in range(4)]
        workload = {"pattern": "trace", "file": str(file)}
        done = networks.run(networks.links(4, 1, access), transport, workload)
        times.append(done.flows["fct_ps"].to_numpy()[0])
    assert times[1] < 1.05 * times[0]


def test_second_interfaces_and_slow_paths_are_named() -> None:
    """Paths of two rates, and a second interface that a uniform load fills."""
    spines: list[Any] = [(f"s{r}", f"s{s}", (100, 40)[s - 2], 500) for r in (0, 1) for s in (2, 3)]
    access: list[Any] = [(f"h{n}", f"s{n // 2}", 100, 500) for n in range(4)]
    load: dict[str, Any] = {"pattern": "all-to-all", "sizes": "imc10", "load": 0.3, "flows": 10}
    slow = rm.Plan.of(
        topology=networks.links(4, 4, access + spines), transport=rm.Dctcp(), workload=load
    )
    assert any("link s0-s3 is the slowest" in line for line in slow.warnings)
    near: list[Any] = [*access, ("s0", "s1", 400, 500), ("h3", "s0", 1, 500)]
    full = rm.Plan.of(topology=networks.links(4, 2, near), transport=rm.Homa(), workload=load)
    assert any("at which link h3-s0 is full" in line for line in full.warnings)
