"""Hosts that forward: BCube and tori, from plans and from files."""

from pathlib import Path

import pytest

import rampmeter as rm
from rampmeter.plan.plan import Plan

RUN = """
[transport]
name = "{transport}"
[workload]
pattern = "trace"
file = "flows.csv"
"""
HINT = "hosts do not forward packets unless topology.hosts-forward is true"


def torus(side: int, name: str = "h") -> list[tuple[str, str]]:
    """Returns hosts in a square whose rows and columns are rings."""
    at = {(x, y): f"{name}{x + side * y}" for x in range(side) for y in range(side)}
    return [
        (at[x, y], at[other]) for x, y in at for other in (((x + 1) % side, y), (x, (y + 1) % side))
    ]


def plan(tmp_path: Path, topology: str, rest: str = "", transport: str = "homa") -> Plan:
    (tmp_path / "flows.csv").write_text("arrival_us,src,dst,size_bytes\n0,0,5,1000000\n")
    file = tmp_path / "plan.toml"
    file.write_text(f"[topology]\n{topology}\n{RUN.format(transport=transport)}\n{rest}")
    return Plan.load(file)


def links(ends: list[tuple[str, str]]) -> str:
    each = [f'{{ between = ["{a}", "{b}"], gbps = 100 }}' for a, b in ends]
    return f"links = [{', '.join(each)}]"


GRID = f'kind = "links"\nhosts = 16\nswitches = 0\n{links(torus(4))}'


@pytest.mark.parametrize("transport", ["homa", "ndp", "pfabric", "ideal"])
def test_a_lone_flow_takes_all_shortest_paths_of_a_torus(tmp_path: Path, transport: str) -> None:
    forwards = plan(tmp_path, f"{GRID}\nhosts-forward = true", transport=transport)
    done = rm.run(forwards, out=tmp_path / "r", quiet=True)
    [flow] = done.flows.to_pylist()
    slowdown = flow["fct_ps"] / flow["ideal_ps"]
    assert 1.0 <= slowdown < (2.2 if transport == "ideal" else 1.1)


def test_a_missing_key_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(rm.PlanError, match=HINT):
        plan(tmp_path, GRID).check()


def test_files_of_hosts_alone_need_the_key_too(tmp_path: Path) -> None:
    """The file of a ns-3 program in which hosts are linked directly."""
    ends = torus(4, "")
    rows = [f"{a} {b} 100Gbps 500ns 0" for a, b in ends]
    (tmp_path / "topology.txt").write_text("\n".join([f"16 0 {len(ends)}", "", *rows]) + "\n")
    file = 'kind = "file"\nfile = "topology.txt"'
    with pytest.raises(rm.PlanError, match=HINT):
        plan(tmp_path, file).check()
    links_file = plan(tmp_path, f"{file}\nhosts-forward = true", "[run]\npaths = true")
    done = rm.run(links_file, out=tmp_path / "r", quiet=True)
    assert done.paths is not None
    paths = done.paths["path"].to_pylist()
    assert all(str(path).startswith("n0>n0.switch>n") for path in paths)
    # One step along the row and one along the column, in either order.
    assert len(paths) == 2


def test_switches_of_named_hosts_have_names(tmp_path: Path) -> None:
    named = """
kind = "links"
hosts-forward = true
hosts = ["left", "middle", "right"]
switches = ["one", "two"]
links = [
  { between = ["left", "one"] }, { between = ["middle", "one"] },
  { between = ["middle", "two"] }, { between = ["right", "two"] },
]
"""
    faults = '[faults]\noutages = [{ link = "middle.switch-two", from-us = 1e6 }]'
    (tmp_path / "flows.csv").write_text("arrival_us,src,dst,size_bytes\n0,left,right,1000000\n")
    file = tmp_path / "plan.toml"
    paths = "[run]\npaths = true"
    file.write_text(f"[topology]{named}\n{RUN.format(transport='homa')}\n{paths}\n{faults}")
    done = rm.run(Plan.load(file), out=tmp_path / "r", quiet=True)
    assert done.paths is not None
    assert done.paths["path"].to_pylist() == ["left>one>middle.switch>two>right"]
