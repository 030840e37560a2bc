"""Files of other simulators, from the command to results."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from rampmeter.cli import main

PLAN = """
[topology]
kind = "file"
file = "topology.txt"
[transport]
name = "homa"
[workload]
pattern = "trace"
file = "flow.txt"
format = "hpcc"
[run]
links = true
sample-us = 50.0
paths = true
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of HPCC's ns-3 in which node 0 is the switch."""
    monkeypatch.chdir(tmp_path)
    links = "".join(f"0 {node} 25Gbps 1us 0\n" for node in (1, 2, 3))
    Path("topology.txt").write_text(f"4 1 3\n0\n{links}")
    Path("flow.txt").write_text("1\n1 3 3 100 200000 0\n")
    Path("plan.toml").write_text(PLAN)
    return tmp_path


def call(*arguments: str) -> str:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.usefixtures("files")
def test_results_have_the_names_of_the_topology_file() -> None:
    call("run", "plan.toml", "--out", "run", "--quiet")
    flows = pq.read_table("run/flows.parquet")
    assert flows.select(["src", "dst"]).to_pylist() == [{"src": 0, "dst": 2}]
    links = pq.read_table("run/links.parquet")
    assert {"n0", "n1", "n2", "n3"} == set(links["from"].to_pylist())
    assert pq.read_table("run/paths.parquet")["path"].to_pylist() == ["n1>n0>n3"]


@pytest.mark.usefixtures("files")
def test_results_are_the_input_of_the_next_run() -> None:
    call("run", "plan.toml", "--out", "run", "--quiet")
    trace = 'workload={pattern="trace",file="run/flows.parquet"}'
    call("run", "plan.toml", "--set", trace, "--out", "again", "--quiet")
    first, again = (pq.read_table(f"{run}/flows.parquet") for run in ("run", "again"))
    assert first["fct_ps"].to_pylist() == again["fct_ps"].to_pylist()


@pytest.mark.usefixtures("files")
def test_convert_looks_nodes_up_in_the_topology() -> None:
    call("convert", "flow.txt", "f.csv", "--format", "hpcc", "--topology", "topology.txt")
    assert Path("f.csv").read_text().splitlines()[1] == "0,0,2,200000"
    plain = call("convert", "flow.txt", "g.csv", "--format", "hpcc")
    assert "numbers of nodes are read as numbers of hosts" in plain
    assert "3 links" in call("convert", "topology.txt", "t.toml", "--format", "hpcc")
    call("check", "plan.toml", "--set", "topology.file=t.toml", "--set", "workload.file=f.csv",
         "--set", "workload.format=csv")  # fmt: skip
