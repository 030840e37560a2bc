"""Files of other simulators, from the command to results."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rampmeter import Run
from rampmeter.results.critical_path import critical_paths

from . import commands
from .commands import error_line, ok

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
def files(here: Path) -> Path:
    """Files of HPCC's ns-3 in which node 0 is the switch."""
    links = "".join(f"0 {node} 25Gbps 1us 0\n" for node in (1, 2, 3))
    Path("topology.txt").write_text(f"4 1 3\n0\n{links}")
    Path("flow.txt").write_text("1\n1 3 3 100 200000 0\n")
    Path("plan.toml").write_text(PLAN)
    return here


def call(*arguments: str) -> str:
    return ok(*arguments).output


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
def test_convert_reads_node_names_from_the_topology() -> None:
    call("convert", "flow.txt", "f.csv", "--format", "hpcc", "--topology", "topology.txt")
    assert Path("f.csv").read_text().splitlines()[1] == "0,0,2,200000"
    plain = call("convert", "flow.txt", "g.csv")
    assert "numbers of nodes are read as numbers of hosts" in plain
    assert "3 links" in call("convert", "topology.txt", "t.toml", "--format", "hpcc")
    call("check", "plan.toml", "--set", "topology.file=t.toml", "--set", "workload.file=f.csv",
         "--set", "workload.format=csv")  # fmt: skip


@pytest.mark.usefixtures("files")
def test_an_unknown_file_is_named_and_so_are_the_formats() -> None:
    Path("odd.txt").write_text("1 2 3\n")
    assert (
        "odd.txt: expected a format by its name or contents, got none: name one of"
        in error_line("convert", "odd.txt", "f.csv")
    )


def numbered(tmp_path: Path) -> Path:
    """Returns a plan whose hosts are called 1, 2, 3, 4, and whose switch is called 0."""
    (tmp_path / "n.csv").write_text("from,to,gbps\n1,0,100\n2,0,10\n3,0,100\n4,0,100\n")
    (tmp_path / "t.csv").write_text("arrival_us,src,dst,size_bytes\n0,1,3,1000000\n")
    plan = tmp_path / "plan.toml"
    plan.write_text(
        '[topology]\nkind = "file"\nfile = "n.csv"\n[transport]\nname = "homa"\n'
        '[workload]\npattern = "trace"\nfile = "t.csv"\n[run]\npaths = true\n'
    )
    return plan


def test_numbers_that_are_names_of_hosts_are_names_in_traces(tmp_path: Path) -> None:
    plan = numbered(tmp_path)
    call("run", str(plan), "--out", str(tmp_path / "run"), "--quiet")
    assert pq.read_table(tmp_path / "run/paths.parquet")["path"].to_pylist() == ["1>0>3"]
    tiers = json.loads((tmp_path / "run/summary.json").read_text())["tiers"]
    assert tiers[1]["queue_max_at"]["to"] == "3"
    arguments = ["convert", str(tmp_path / "t.csv"), str(tmp_path / "o.csv")]
    assert "o.csv: expected a name that ends in .parquet" in error_line(
        *arguments, "--topology", tmp_path / "n.csv"
    )


@pytest.mark.parametrize(
    "workload",
    [
        'pattern = "collective"\noperation = "all-reduce"\nalgorithm = "ring"\n'
        "vector-bytes = 100000000",
    ],
)
def test_a_drain_shorter_than_the_last_flows_is_found_by_check(
    tmp_path: Path, workload: str
) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(
        '[topology]\nkind = "star"\nhosts = 4\naccess-gbps = 0.01\n[transport]\nname = "homa"\n'
        f"[workload]\n{workload}\n[run]\ndrain-us = 100000.0\n"
    )
    assert "run.drain-us: 0.1 s after the last arrival the run ends" in call("check", str(plan))


def varint(number: int) -> bytes:
    parts = []
    while number >= 0x80:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def text(field: int, value: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(value)) + value


def chakra(*nodes: bytes) -> bytes:
    """Returns a trace with metadata and nodes, each after its length."""
    return b"".join(varint(len(part)) + part for part in (text(1, b"0.0.4"), *nodes))


def attribute(name: bytes, value: int) -> bytes:
    return text(10, text(1, name) + number(9, value))


@pytest.mark.usefixtures("files")
def test_traces_of_chakra_run_with_their_collectives() -> None:
    compute = number(1, 0) + text(2, b"compute") + number(3, 4) + number(7, 5)
    reduce = number(1, 1) + text(2, b"all-reduce") + number(3, 7) + text(5, bytes([0]))
    reduce += attribute(b"comm_type", 0) + attribute(b"comm_size", 3 << 20)
    for rank in range(3):
        Path(f"step.{rank}.et").write_bytes(chakra(compute, reduce))
    assert "step.csv: 12 flows" in call("convert", "step.0.et", "step.csv")
    trace = 'workload={pattern="trace",file="step.1.et"}'
    call("run", "plan.toml", "--set", trace, "--out", "run", "--quiet")
    summary = json.loads(Path("run/summary.json").read_text())
    (collective,) = summary["collectives"]
    assert (collective["bytes"], collective["hosts"]) == (3 << 20, 3)
    assert collective["start_ps"] == 5_000_000
    assert collective["lower_bound_ratio"] >= 1.0
    result = commands.call("convert", "step.0.et", "x.csv", "--format", "goal")
    assert 'the file looks like format "chakra"' in result.output


@pytest.mark.usefixtures("files")
def test_groups_of_chakra_are_relative_to_the_plan() -> None:
    Path("traces").mkdir()
    Path("groups.json").write_text('{"pair": [0, 1]}')
    reduce = number(1, 1) + text(2, b"all-reduce") + number(3, 7)
    reduce += attribute(b"comm_type", 0) + attribute(b"comm_size", 2 << 20)
    reduce += text(10, text(1, b"pg_name") + text(29, b"pair"))
    for rank in range(2):
        Path(f"traces/step.{rank}.et").write_bytes(chakra(reduce))
    trace = 'workload={pattern="trace",file="traces/step.0.et",groups-file="groups.json"}'
    call("run", "plan.toml", "--set", trace, "--out", "run", "--quiet")
    assert critical_paths(Run("run")).keys() == {0}
    # The groups are an input of the run, whose change makes it another one.
    identity = json.loads(Path("run/identity.json").read_text())
    assert "groups.json" in json.dumps(identity)


@pytest.mark.usefixtures("files")
def test_algorithms_of_msccl_take_their_vector_from_the_plan() -> None:
    step = '<step type="{}" cnt="1" depid="-1" deps="-1"/>'
    block = '<tb id="0" send="{0}" recv="{0}" chan="0">' + step.format("s") + step.format("r")
    gpus = "".join(f'<gpu id="{gpu}">{block.format(1 - gpu)}</tb></gpu>' for gpu in range(2))
    algo = f'<algo name="x" nchunksperloop="2" ngpus="2" coll="alltoall">{gpus}</algo>'
    Path("x.xml").write_text(algo)
    trace = 'workload={pattern="trace",file="x.xml",vector-bytes=1000000}'
    call("run", "plan.toml", "--set", trace, "--out", "run", "--quiet")
    flows = pq.read_table("run/flows.parquet")
    assert flows["size_bytes"].to_pylist() == [500_000, 500_000]
    assert "x.csv: 2 flows" in call("convert", "x.xml", "x.csv", "--vector-bytes", "1000000")
    result = commands.call("convert", "x.xml", "x.csv")
    assert "x.xml:1: vector-bytes: expected vector-bytes with the file" in result.output


FAT_TREE = """\
Nodes 8
Tiers 3
Podsize 4
Tier 0
Downlink_speed_Gbps 200
Radix_Down 2
Radix_Up 2
Downlink_Latency_ns 1000
Tier 1
Downlink_speed_Gbps 200
Radix_Down 2
Radix_Up 2
Downlink_Latency_ns 1000
Tier 2
Downlink_speed_Gbps 100
Radix_Down 2
Downlink_Latency_ns 500
"""


@pytest.mark.usefixtures("here")
def test_failures_of_htsim_become_outages() -> None:
    Path("fat.topo").write_text(FAT_TREE)
    failure = "failure switch_type AGG switch_id 1 link_id {}\n"
    matrix = "Nodes 8\nConnections 1\nFailures 1\n0->7 start 5000 size 100\n"
    Path("a.cm").write_text(matrix + failure.format(1))
    text = call("convert", "a.cm", "a.csv", "--topology", "fat.topo")
    assert 'faults.outages = [{ link = "agg1-core3", from-us = 0 }]' in text
    Path("a.cm").write_text(matrix + failure.format(2))
    done = commands.call("convert", "a.cm", "a.csv", "--topology", "fat.topo")
    assert "a.cm:5: failure: expected an uplink below 2 of agg1, got link 2 of AGG 1" in done.output


@pytest.mark.parametrize(
    ("links", "message"),
    [
        (
            "gpu-a,leaf,25\ngpu-b,leaf,0\n",
            "links.csv:3: link 1 (gpu-b-leaf): gbps: expected a rate",
        ),
        ("gpu-a,leaf,25\ngpu-b,other,25\n", "gpu-a"),
    ],
)
@pytest.mark.usefixtures("here")
def test_networks_that_cannot_be_built_are_not_converted(links: str, message: str) -> None:
    Path("links.csv").write_text(f"from,to,gbps\n{links}")
    assert message in error_line("convert", "links.csv", "links.toml")
    assert not Path("links.toml").exists()


NAMED = """
names.hosts = ["1", "2", "0"]
topology = { kind = "star", hosts = 3 }
transport.name = "ideal"
workload = { pattern = "trace", file = "FILE" }
"""


@pytest.mark.usefixtures("here")
def test_results_of_hosts_with_numbers_for_names_are_written_by_name() -> None:
    columns = "arrival_us,src,dst,size_bytes,tenant,deadline_us"
    Path("flows.csv").write_text(f"{columns}\n0,1,2,1000,0,\n1,2,0,500,1,7\n")
    tables: list[list[dict[str, object]]] = []
    for file in ("flows.csv", "run0/flows.parquet", "again.csv"):
        Path("plan.toml").write_text(NAMED.replace("FILE", file))
        out = f"run{len(tables)}"
        printed = call("run", "plan.toml", "--out", out, "--quiet")
        assert "not used" not in printed or file.endswith(".parquet")
        call("convert", f"{out}/flows.parquet", "again.csv")
        tables.append(pq.read_table(f"{out}/flows.parquet").to_pylist())
    assert tables[0] == tables[1] == tables[2]
    ends = [(row["src"], row["dst"], row["tenant"]) for row in tables[0]]
    assert ends == [(0, 1, 0), (1, 2, 1)]
    assert [row["deadline_ps"] for row in tables[0]] == [None, 7_000_000]
    assert ",1,2," in Path("again.csv").read_text().splitlines()[1]


@pytest.mark.usefixtures("here")
def test_a_trace_of_one_burst_has_no_intervals() -> None:
    rows = "".join(f"5,{n % 3},3,{1000 + n}\n" for n in range(300))
    Path("flows.csv").write_text(f"arrival_us,src,dst,size_bytes\n{rows}")
    plan = NAMED.replace("FILE", "flows.csv").replace("hosts = 3", "hosts = 4")
    Path("plan.toml").write_text(plan.replace('names.hosts = ["1", "2", "0"]', ""))
    call("run", "plan.toml", "--out", "run", "--quiet")
    summary = json.loads(Path("run/summary.json").read_text())
    assert summary["slowdown"]["delivered"]["overall"]["mean_ci"] is None
    assert any("flows arrive in bursts" in warning for warning in summary["warnings"])
