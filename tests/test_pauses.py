"""Priority flow control in tables and warnings: deadlocks by name, columns of pauses."""

from pathlib import Path

import pytest

import rampmeter as rm
from rampmeter.plan.plan import Plan
from rampmeter.results.comparison_tables import comparison_tables
from rampmeter.results.tables import tiers
from rampmeter.text.numbers import NONE
from rampmeter.text.text_table import TextTable

from .commands import call

N = 5
NAMES = 'names = { switches = ["north", "east", "south", "west", "hub"] }\n'


def ring(tmp_path: Path, hops: int, transport: str = "hpcc", names: str = "") -> Plan:
    """Returns a plan of ten flows around a ring of five switches, each over `hops` core links."""
    links = [f'{{ between = ["h{h}","s{h // 2}"], propagation-ns = 500 }}' for h in range(2 * N)]
    links += [f'{{ between = ["s{s}","s{(s + 1) % N}"], propagation-ns = 500 }}' for s in range(N)]
    rows = [f"0,{h},{(h + 2 * hops) % (2 * N)},5000000" for h in range(2 * N)]
    (tmp_path / "flows.csv").write_text("\n".join(["arrival_us,src,dst,size_bytes", *rows]))
    file = tmp_path / "plan.toml"
    file.write_text(f"""
{names}
[topology]
kind = "links"
hosts = {2 * N}
switches = {N}
links = [
  {", ".join(links)},
]
[fabric]
shared-buffer-bytes = 2000000
spray = "ecmp"
[fabric.pfc]
threshold = "static"
xoff-bytes = 20000
[transport]
name = "{transport}"
[workload]
pattern = "trace"
file = "flows.csv"
[run]
drain-us = 20000
""")
    return Plan.load(file)


def incast(tmp_path: Path) -> Plan:
    file = tmp_path / "plan.toml"
    file.write_text("""
[topology]
kind = "leaf-spine"
racks = 3
hosts-per-rack = 4
spines = 2
[fabric]
shared-buffer-bytes = 2000000
[fabric.pfc]
xoff-bytes = 20000
[transport]
name = "dctcp"
[workload]
pattern = "incast"
fan = 11
hub = 0
flow-bytes = 1000000
""")
    return Plan.load(file)


def deadlocks(done: rm.Run) -> list[str]:
    return [line for line in done.summary["warnings"] if "deadlock" in line]


def test_a_ring_locks_up_and_its_ports_are_named(tmp_path: Path) -> None:
    done = rm.run(ring(tmp_path, 2), out=tmp_path / "r", quiet=True)
    assert done.summary["flows"]["delivered"] == 0
    [lock] = done.summary["deadlocks"]
    assert lock["ports"] == ["s0>s1", "s1>s2", "s2>s3", "s3>s4", "s4>s0"]
    assert 0 < lock["since_ps"] < 100_000_000
    [line] = deadlocks(done)
    assert "5 ports have paused one another in a circle (s0>s1, " in line
    # Nothing more was sent, so the network did next to nothing in its window.
    assert done.summary["goodput_gbps"] < 20


def test_ports_have_the_names_of_the_user(tmp_path: Path) -> None:
    done = rm.run(ring(tmp_path, 2, names=NAMES), out=tmp_path / "r", quiet=True)
    assert done.summary["deadlocks"][0]["ports"][0] == "north>east"


@pytest.mark.parametrize("transport", ["hpcc", "dctcp"])
def test_flows_past_one_link_do_not_lock_up(tmp_path: Path, transport: str) -> None:
    done = rm.run(ring(tmp_path, 1, transport), out=tmp_path / "r", quiet=True)
    assert done.is_all_delivered
    assert "deadlocks" not in done.summary
    assert deadlocks(done) == []


def test_an_incast_that_pauses_is_no_deadlock(tmp_path: Path) -> None:
    done = rm.run(incast(tmp_path), out=tmp_path / "r", quiet=True)
    assert sum(tier["pfc"]["pauses"] for tier in done.summary["tiers"]) > 0
    assert deadlocks(done) == []


def cells(text_table: TextTable, heading: str) -> list[str]:
    place = list(text_table.headings).index(heading)
    return [row[place] for row in text_table.rows]


def test_tables_of_lossless_networks_have_pauses(tmp_path: Path, small_run: rm.Run) -> None:
    done = rm.run(incast(tmp_path), out=tmp_path / "r", quiet=True)
    text_table = tiers(done.summary).text()
    pauses = [tier["pfc"]["pauses"] for tier in done.summary["tiers"]]
    assert [int("".join(cell.split())) for cell in cells(text_table, "pauses")] == pauses
    assert max(map(float, cells(text_table, "paused"))) > 0
    assert "pauses" not in tiers(small_run.summary).text().headings


def test_the_command_prints_pauses(tmp_path: Path) -> None:
    ring(tmp_path, 2)
    arguments = ["run", str(tmp_path / "plan.toml"), "--quiet", "--out", str(tmp_path / "r")]
    shown = call(*arguments)
    assert shown.exit_code == 3
    assert "fabric.pfc: deadlock: since " in shown.output
    assert "paused" in shown.output


def test_comparisons_count_pauses_by_transport(tmp_path: Path) -> None:
    plan = incast(tmp_path).with_(("fabric", {"shared-buffer-bytes": 2_000_000}))
    done = rm.compare(plan, "hpcc,homa", out=tmp_path / "r", quiet=True)
    fabric = done.tables["fabric"]
    assert "pfc.classes" in fabric.keys()  # noqa: SIM118 (a method of the table)
    assert not any("{" in cell for row in fabric.texts() for cell in row)
    ports = next(s for s in comparison_tables(done) if s.name == "ports").text()
    hpcc, homa = cells(ports, "pauses")
    assert int("".join(hpcc.split())) > 0
    assert homa == NONE
