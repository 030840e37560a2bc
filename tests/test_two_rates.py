"""Links with another rate in each direction."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import rampmeter as rm
from rampmeter.plan import schema

from . import networks

LINKS = [
    {"between": ["h0", "s0"], "gbps": 100, "gbps-back": 10, "propagation-ns": 1000},
    {"between": ["h1", "s0"], "gbps": 100, "propagation-ns": 1000},
]


def run(links: list[Any], transport: Any, folder: Path) -> rm.Run:
    """Runs a message of 1 MB from host 0 to host 1, and 10 ms later one back."""
    file = folder / "flows.csv"
    file.write_text("arrival_us,src,dst,size_bytes\n0,0,1,1000000\n10000,1,0,1000000\n")
    return rm.run(
        topology={"kind": "links", "hosts": 2, "switches": 1, "links": links},
        transport=transport,
        workload={"pattern": "trace", "file": str(file)},
        quiet=True,
    )


def column(done: rm.Run, name: str) -> list[float]:
    return [float(value) / 1e6 for value in done.flows.sort_by("flow")[name].to_numpy()]


@pytest.mark.parametrize("name", sorted({*networks.TRANSPORTS} - {*networks.SLOTTED}))
def test_each_direction_has_its_rate(name: str, tmp_path: Path) -> None:
    """1 MB takes 82 us at 100 Gbit/s and 822 us at 10 Gbit/s, with 40 B of headers a packet."""
    done = run(LINKS, {"name": name}, tmp_path)
    assert done.status == "finished"
    ideals, times = column(done, "ideal_ps"), column(done, "fct_ps")
    assert ideals[1] / ideals[0] == pytest.approx(9.6, rel=0.02)
    slowdown = np.array(times) / np.array(ideals)
    assert slowdown.min() >= 1
    # Slow start needs its round trips; phases are as long as the slowest rate requires.
    bounds = dict.fromkeys(("tcp", "dctcp", "pias"), 1.2) | {"dcpim": 1.6}
    assert slowdown.max() <= bounds.get(name, 1.1), slowdown


@pytest.mark.parametrize("name", networks.SLOTTED)
def test_slots_follow_from_the_slower_direction_with_a_warning(name: str, tmp_path: Path) -> None:
    done = run(LINKS, {"name": name}, tmp_path)
    assert done.status == "finished"
    expected = f"{name} assumes that all hosts are as fast as the slowest"
    assert any(expected in warning for warning in done.summary["warnings"])
    ideals, times = column(done, "ideal_ps"), column(done, "fct_ps")
    # The fast direction is as slow as the other.
    assert times[0] == pytest.approx(times[1], rel=0.02)
    assert times[1] < 1.2 * ideals[1]


def test_the_ends_may_be_named_in_either_order(tmp_path: Path) -> None:
    turned = [{**LINKS[0], "between": ["s0", "h0"], "gbps": "10Gbps", "gbps-back": 100.0}, LINKS[1]]
    transport = {"name": "dctcp"}
    assert column(run(turned, transport, tmp_path), "fct_ps") == column(
        run(LINKS, transport, tmp_path), "fct_ps"
    )


def test_tables_of_links_have_the_column(tmp_path: Path) -> None:
    file = tmp_path / "links.csv"
    rows = ["from,to,gbps,gbps-back,propagation-ns", "a,tor,100,10,1000", "b,tor,100,,1000"]
    file.write_text("\n".join(rows) + "\n")
    plan = rm.Plan.of(
        topology={"kind": "file", "file": str(file)},
        transport=rm.Dctcp(),
        workload=rm.imc10(load=0.5, flows=100),
    )
    warnings = "\n".join(plan.warnings)
    assert "expected" not in warnings
    flows = rm.run(plan, quiet=True).flows.to_pandas()
    flows = flows[flows["size_bytes"] > 20_000]
    per_byte = (flows["ideal_ps"] / flows["size_bytes"]).groupby(flows["src"]).min()
    # From a to b at 100 Gbit/s, from b to a at 10.
    assert per_byte[1] / per_byte[0] > 5


@pytest.mark.parametrize(
    ("value", "message"),
    [(0, "gbps-back: expected a rate"), ("fast", "gbps-back: expected a rate")],
)
def test_rates_back_are_checked(value: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(rm.PlanError) as error:
        run([{**LINKS[0], "gbps-back": value}, LINKS[1]], {"name": "dctcp"}, tmp_path)
    assert message in str(error.value)
    assert "link 0" in str(error.value)


def changed(changes: list[Any], folder: Path, transport: str = "dctcp") -> rm.Run:
    """Runs three messages of 1 MB over one link, 10 ms after one another."""
    file = folder / "flows.csv"
    rows = ["0,0,1,1000000", "10000,0,1,1000000", "20000,0,1,1000000"]
    file.write_text("\n".join(["arrival_us,src,dst,size_bytes", *rows]) + "\n")
    return rm.run(
        topology={"kind": "star", "hosts": 2, "propagation-ns": 1000.0},
        transport={"name": transport},
        workload={"pattern": "trace", "file": str(file)},
        faults={"changes": changes},
        out=folder / "out",
        force=True,
        quiet=True,
    )


def test_rates_change_during_a_run(tmp_path: Path) -> None:
    """10 Gbit/s from 5 ms on, and 100 again from 15 ms on."""
    changes = [
        {"link": "h0-s0", "at-us": 5000, "gbps": 10},
        {"link": "s0-h0", "at-us": 15000, "gbps": 10, "gbps-back": 100},
    ]
    done = changed(changes, tmp_path)
    first, second, third = column(done, "fct_ps")
    assert first == pytest.approx(third, rel=0.02)
    assert second - first == pytest.approx(822 - 82, abs=15)
    # Ideals are those of the fastest links that there ever are.
    assert len(set(column(done, "ideal_ps"))) == 1
    assert set(done.flows["ideal_is_bound"].to_pylist()) == {True}
    outages = pq.read_table(tmp_path / "out" / "outages.parquet").to_pylist()
    assert [(row["element"], row["state"]) for row in outages] == [("h0-s0", "changed")] * 2


def test_a_rate_may_change_in_the_middle_of_a_message(tmp_path: Path) -> None:
    done = changed([{"link": "h0-s0", "at-us": 40, "gbps": 10}], tmp_path)
    times = column(done, "fct_ps")
    assert 86 < times[0] < times[1]


def test_utilisation_follows_the_rates_of_links(tmp_path: Path) -> None:
    """12.5 MB take 0.5 ms at 100 Gbit/s and 1.06 ms at 50; another host idles for 1.6 ms."""
    file = tmp_path / "flows.csv"
    file.write_text("arrival_us,src,dst,size_bytes\n0,0,1,12500000\n1600,0,1,1000\n")
    done = rm.run(
        topology={"kind": "star", "hosts": 2},
        transport={"name": "homa"},
        workload={"pattern": "trace", "file": str(file)},
        faults={"changes": [{"link": "h0-s0", "at-us": 500, "gbps": 50}]},
        run={"sample-us": 10.0},
        quiet=True,
    )
    utilisation = {tier["name"]: tier["utilisation"] for tier in done.summary["tiers"]}
    megabits = 12.5 * 8 * 1500 / 1460
    assert utilisation["host-up"] == pytest.approx(megabits / (50 + 55 + 160), rel=0.05)


def test_delays_change_during_a_run(tmp_path: Path) -> None:
    changes = [{"link": "h1-s0", "at-us": 15000, "propagation-ns": 101_000}]
    first, second, third = column(changed(changes, tmp_path, "homa"), "fct_ps")
    assert first == second
    # The window is that of the longest round trip at any time, 205 us. The message takes one way of
    # it, and its time on the link.
    assert third < 1.05 * (103 + 83)


@pytest.mark.parametrize("transport", schema.names())
def test_transports_use_the_longest_delay_of_a_run(transport: str, tmp_path: Path) -> None:
    """Phases, windows and timeouts of the first delay would end no flow, or fail it."""
    changes = [{"link": "h1-s0", "at-us": 100, "propagation-ns": 2_000_000}]
    done = changed(changes, tmp_path, transport)
    assert set(done.flows["status"].to_pylist()) == {"delivered"}


def test_slots_that_a_link_becomes_too_slow_for_are_warned_of(tmp_path: Path) -> None:
    for transport in ("fastpass", "fastpod", "cosy"):
        done = changed([{"link": "h1-s0", "at-us": 15000, "gbps": 10}], tmp_path, transport)
        start = f"transport.name: {transport} has slots for 100 Gbit/s, and faults.changes makes"
        assert any(line.startswith(start) for line in done.summary["warnings"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"link": "h0-s0", "at-us": 1}, "faults.changes[0]: expected gbps or propagation-ns"),
        ({"link": "h0-s1", "at-us": 1, "gbps": 1}, "faults.changes[0].link: expected the ends"),
        ({"link": "h0-s0", "at-us": 1, "gbps": 0}, "faults.changes[0].gbps: expected"),
        (
            {"link": "h0-s0", "at-us": 1, "gbps-back": 1},
            "expected gbps in the same change, got none",
        ),
        ({"link": "h0-s0", "at-us": -1, "gbps": 1}, "faults.changes[0].at-us: expected"),
    ],
)
def test_changes_are_checked(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(rm.PlanError) as error:
        changed([change], tmp_path)
    assert message in str(error.value)


def test_directions_of_changes_follow_from_whole_names(tmp_path: Path) -> None:
    """A name may begin with another one: `rack-h0` and `rack`."""
    names: dict[str, Any] = {"hosts": ["rack-h0", "h1"], "switches": ["rack"]}
    links: list[Any] = [{"between": ["rack-h0", "rack"]}, {"between": ["h1", "rack"]}]
    file = tmp_path / "flows.csv"
    file.write_text("arrival_us,src,dst,size_bytes\n100,0,1,1000000\n")
    change: dict[str, Any] = {"link": "rack-h0-rack", "at-us": 1, "gbps": 10, "gbps-back": 100}
    done = rm.run(
        topology={"kind": "links", **names, "links": links},
        transport=rm.Dctcp(),
        workload={"pattern": "trace", "file": str(file)},
        faults={"changes": [change]},
        quiet=True,
    )
    assert column(done, "fct_ps")[0] > 800
    with pytest.raises(rm.PlanError, match="the ends of the link"):
        rm.Plan.of(
            topology={"kind": "links", **names, "links": links},
            transport=rm.Dctcp(),
            workload=rm.imc10(load=0.3, flows=10),
            faults={"changes": [{**change, "link": 0}]},
        ).check()


def test_lossless_networks_stay_so_when_a_link_becomes_longer(tmp_path: Path) -> None:
    """Headroom is that of links at their fastest and longest."""
    file = tmp_path / "flows.csv"
    rows = [f"0,{src},0,300000" for src in range(1, 16)]
    file.write_text("\n".join(["arrival_us,src,dst,size_bytes", *rows]) + "\n")
    changes: list[Any] = [
        {"link": f"h{host}-s0", "at-us": 10, "propagation-ns": 20_000} for host in range(16)
    ]
    done = rm.run(
        topology={"kind": "star", "hosts": 16},
        transport=rm.Hpcc(),
        fabric={"pfc": {"xoff-bytes": 10_000}},
        workload={"pattern": "trace", "file": str(file)},
        faults={"changes": changes},
        quiet=True,
    )
    assert sum(sum(tier["drops"].values()) for tier in done.summary["tiers"]) == 0


def test_a_controller_uses_the_rates_of_both_directions_of_a_link(tmp_path: Path) -> None:
    """CAPTON used the slower direction of a link between racks for both: 10 times the ideal."""
    file = tmp_path / "flows.csv"
    file.write_text("arrival_us,src,dst,size_bytes\n0,0,2,5000000\n")
    access: list[Any] = [
        {"between": [f"h{host}", f"s{host // 2}"], "gbps": 100} for host in range(4)
    ]
    core: Any = {"between": ["s0", "s1"], "gbps": 50, "gbps-back": 5}
    done = rm.run(
        topology={"kind": "links", "hosts": 4, "switches": 2, "links": [*access, core]},
        transport=rm.Capton(),
        workload={"pattern": "trace", "file": str(file)},
        quiet=True,
    )
    assert column(done, "fct_ps")[0] < 1.1 * column(done, "ideal_ps")[0]
